"""What is true of every adapter: its page and docstrings run, and it imports its framework alone.

Run in each of the two environments, for the frameworks that are there.
"""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast.adapters.frameworks import FRAMEWORKS
from tests.project.documents import (
    APART,
    ELSEWHERE,
    adapter_of,
    modules,
    page_of,
    run_docstrings,
    run_document,
)
from tests.project.names_page import names

HERE = sorted(APART if find_spec("crewai") is not None else ELSEWHERE - APART)


@pytest.mark.parametrize("framework", HERE)
def test_the_examples_of_its_page_run(framework: str, tmp_path: Path) -> None:
    done = run_document(page_of(framework), cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.filterwarnings("ignore::ImportWarning")  # of CrewAI, when it is first imported
@pytest.mark.parametrize("name", [each for each in modules() if adapter_of(each) in HERE])
def test_the_examples_of_its_modules_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_docstrings(name, tmp_path, monkeypatch) == 0, "see the captured output"


@pytest.mark.parametrize("framework", HERE)
def test_it_imports_no_other_framework(framework: str) -> None:
    script = f"import sys, holdfast.adapters.{framework}; print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True
    )
    imported = ast.literal_eval(done.stdout.splitlines()[-1])
    others = {each.module for name, each in FRAMEWORKS.items() if name != framework}

    assert FRAMEWORKS[framework].module in imported
    assert not others & set(imported)


@pytest.mark.parametrize("framework", HERE)
def test_its_public_names_are_sorted_and_say_what_they_are(framework: str) -> None:
    module = import_module(f"holdfast.adapters.{framework}")
    public = {name: getattr(module, name) for name in names(module.__name__)}

    assert list(public) == sorted(public)
    assert list(public) == module.__all__
    for name, value in public.items():
        if inspect.isclass(value) or inspect.isroutine(value):
            assert inspect.getdoc(value), name


@pytest.mark.parametrize("framework", HERE)
def test_without_its_framework_it_says_what_to_install(framework: str, tmp_path: Path) -> None:
    needed = FRAMEWORKS[framework]
    script = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        f"gone = {needed.module.partition('.')[0]!r}\n"
        "importlib.util.find_spec = lambda name, *more: (\n"
        "    None if name.partition('.')[0] == gone else find(name, *more)\n"
        ")\n"
        f"import holdfast.adapters.{framework}\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True
    )

    assert done.returncode != 0
    assert f"pip install 'holdfast[{needed.extra}]'" in done.stderr
