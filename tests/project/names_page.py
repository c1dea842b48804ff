"""Writes docs/names.md: ``python -m tests.project.names_page``."""

import ast
import inspect
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from tests.project.annotations import imports_of, tree_of

PAGE = Path(__file__).parents[2] / "docs" / "names.md"
MODULES = {
    "holdfast": "What programs meet. Nothing is imported before it is asked for.",
    "holdfast.state": "State as in PyTorch: see [state](state.md).",
    "holdfast.client": "What a client is made of: the [groups of its verbs](coordination.md), "
    "sync and async. Its own verbs are those of all groups, and more.",
    "holdfast.stores": "The stores, and what it takes to [write one](stores.md#writing-your-own).",
    "holdfast.runtime": "What carries out plans, for those who write an adapter: a client has one "
    "as `client.runtime`.",
    "holdfast.testing": "For the tests of a store of your own: see "
    "[stores](stores.md#writing-your-own).",
    "holdfast.adapters.langgraph": "See [LangGraph](langgraph.md).",
}
HEAD = """\
# Public names

What a program may rely on, by the module to import it from.
A name that goes is kept for a while as another name of the same thing, and warns
(`DeprecationWarning`) where it is used. All that is not here may change with any version. This
page is made of the docstrings (`python -m tests.project.names_page`), and a test keeps it so.
"""


def names(module: str) -> list[str]:
    """Return the public names of a module."""
    return list(vars(import_module(module))["__all__"])


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for module, about in MODULES.items():
        parts += [f"\n## `{module}`\n\n{about}\n\n| name | what it is |\n|---|---|\n"]
        parts += [f"| `{name}` | {described(module, name)} |\n" for name in names(module)]
    return "".join(parts)


def described(module: str, name: str) -> str:
    """Return the first sentence of what is said of a name where it is defined."""
    value = getattr(import_module(module), name)
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        text = inspect.getdoc(value) or ""
    else:
        text = beside(module, name)
    assert text, f"{module}.{name} has no docstring"
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|").replace("``", "`")


def beside(module: str, name: str) -> str:
    """Return the text that stands below an assignment."""
    while name in imports_of(module):
        module, name = imports_of(module)[name]
    body = tree_of(module).body
    for node, below in pairwise(body):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return str(ast.literal_eval(below.value)) if isinstance(below, ast.Expr) else ""
    return ""


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
