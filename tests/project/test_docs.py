"""Every example in the documentation and in docstrings runs, and says what it builds on."""

import builtins
import doctest
import importlib
import os
import subprocess
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import HAS_TORCH
from tests.project.run_document import Block, parse

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"
RUNNER = Path(__file__).with_name("run_document.py")

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if HAS_TORCH or path.name != "torch.md"
    ),
]
MODULES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "__main__.py"
]


LEFT_OUT = ("HOLDFAST_URL", "PYTEST_ADDOPTS")


def run_document(path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    return subprocess.run(
        [sys.executable, RUNNER, path],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_document_run(path: Path, tmp_path: Path) -> None:
    done = run_document(path, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


def names_of(table: symtable.SymbolTable) -> Iterator[tuple[str, bool]]:
    """The global names of a block, and whether it binds them."""
    for symbol in table.get_symbols():
        if table.get_type() == "module" or symbol.is_global():
            binds = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            yield symbol.get_name(), binds
    for inner in table.get_children():
        yield from names_of(inner)


def missing_in(block: Block, known: set[str]) -> set[str]:
    """What a block takes from those before it; adds what it has to `known`."""
    names = set(names_of(symtable.symtable(block.text, "block", "exec")))
    bound = {name for name, binds in names if binds}
    missing = {name for name, binds in names if not binds} - bound - vars(builtins).keys()
    taken = missing & known
    known |= bound
    return taken


BUILDS = "build on each other, from top to bottom"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_runs_by_itself_or_its_page_says_what_it_builds_on(path: Path) -> None:
    text = path.read_text("utf-8")
    known: set[str] = set()
    taken = {
        f"line {block.line}: {', '.join(sorted(missing))}"
        for block in parse(text)
        if block.info == "python" and (missing := missing_in(block, known))
    }

    assert not taken or BUILDS in " ".join(text.split())


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)

    for example in doctest.DocTestFinder().find(importlib.import_module(name), globs={}):
        # Each one starts in an empty __main__, so that a reader can paste it.
        main = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", main)
        example.globs = main.__dict__
        runner.run(example, clear_globs=False)

    assert runner.failures == 0, "see the captured output"


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n```\nthen\n```python\nassert x == 1\n```",
        "1. A step\n   ```python\n   assert True\n   ```",
        "````markdown\n```python\nassert False\n```\n````",
        '```python title="hi.py"\nprint("hi")\n```\n```console\n$ python hi.py\nhi\n```',
        "```console\n$ python -c 'print(12345)'\n1...5\n$ python -c 'print(6)'\n```",
        "```python title=tools.py\nx = 1\n```\n```python\nfrom tools import x\n```",
        "```console\n$ make no-such-target\n```\n```sh\nexit 1\n```",
    ],
)
def test_a_document_that_holds_what_it_shows_passes(text: str, tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(text)

    done = run_document(document, cwd=tmp_path)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("first\n\n```python\nassert False\n```", 'page.md", line 4'),
        ("```python no-run\nx = 1\n```", "the only forms are"),
        ("```py\nx = 1\n```", "the only forms are"),
        ("```python\nx = 1\n", "has no end"),
        ("```python title=unused.py\nx = 1\n```", "no later block runs or imports unused.py"),
        ("```console\n$ python -c 'print(1)'\n2\n```", "but the document shows"),
        ("```console\n$ python -c 'raise SystemExit(3)'\n```", "ended with 3"),
    ],
)
def test_a_document_that_shows_something_else_fails(
    text: str, complaint: str, tmp_path: Path
) -> None:
    document = tmp_path / "page.md"
    document.write_text(text)

    done = run_document(document, cwd=tmp_path)

    assert done.returncode != 0
    assert complaint in done.stderr
