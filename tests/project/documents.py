"""Running the examples of documents and docstrings, in whatever environment has what they need."""

import doctest
import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from holdfast.adapters.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"
RUNNER = Path(__file__).with_name("run_document.py")
ELSEWHERE = FRAMEWORKS.keys() - {"langgraph"}
"""Frameworks that are not installed where the other tests run, but for tests/frameworks."""
APART = frozenset({"crewai"})
"""Those of them with an environment of their own."""


def page_of(framework: str) -> Path:
    """Return the page of a framework."""
    return ROOT / "docs" / f"{framework.replace('_', '-')}.md"


def adapter_of(module: str) -> str | None:
    """Return the framework that a module is part of the adapter of."""
    parts = module.split(".")
    is_adapter = parts[:2] == ["holdfast", "adapters"] and len(parts) > 2
    return parts[2] if is_adapter and parts[2] in FRAMEWORKS else None


def modules() -> list[str]:
    """Return the names of all modules of the package."""
    return [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "__main__.py"
    ]


def run_document(path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run all examples of a page, in a process of their own."""
    left_out = ("HOLDFAST_URL", "PYTEST_ADDOPTS")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.run(
        [sys.executable, RUNNER, path],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
    )


def run_docstrings(name: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the examples of a module, and return how many of them failed."""
    monkeypatch.chdir(directory)
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder().find(importlib.import_module(name), globs={}):
        # Each one starts in an empty __main__, so that a reader can paste it.
        main = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", main)
        example.globs = main.__dict__
        runner.run(example, clear_globs=False)
    return runner.failures
