"""Every example in the documentation and in docstrings runs, and says what it builds on."""

import builtins
import symtable
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import HAS_TORCH
from tests.project.documents import (
    ELSEWHERE,
    ROOT,
    adapter_of,
    modules,
    page_of,
    run_docstrings,
    run_document,
)
from tests.project.run_document import Block, parse

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LEFT_OUT = {page_of(framework) for framework in ELSEWHERE}
"""Run by tests/frameworks, where what they need is installed."""
if not HAS_TORCH:
    LEFT_OUT.add(ROOT / "docs" / "torch.md")
RUN = [path for path in DOCUMENTS if path not in LEFT_OUT]


@pytest.mark.parametrize("path", RUN, ids=lambda path: str(path.relative_to(ROOT)))
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


@pytest.mark.parametrize("name", [m for m in modules() if adapter_of(m) not in ELSEWHERE])
def test_the_examples_of_a_module_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_docstrings(name, tmp_path, monkeypatch) == 0, "see the captured output"


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
