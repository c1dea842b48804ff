"""Writes docs/names.md: ``python -m tests.project.names_page``."""

import ast
import inspect
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from holdfast.adapters.frameworks import FRAMEWORKS
from tests.project.annotations import Function, assigned, imports_of, tree_of
from tests.project.documents import ELSEWHERE, adapter_of

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
    "holdfast.adapters.portable": "One form of conversations, and going on in another framework: "
    "see [frameworks](frameworks.md).",
    **{
        f"holdfast.adapters.{framework}": f"See [its page]({framework.replace('_', '-')}.md)."
        for framework in FRAMEWORKS
    },
}
HEAD = """\
# Public names

What a program may rely on, by the module to import it from.
A name that goes is kept for a while as another name of the same thing, and warns
(`DeprecationWarning`) where it is used. All that is not here may change with any version. This
page is made of the docstrings (`python -m tests.project.names_page`), and a test keeps it so.
"""


def is_elsewhere(module: str) -> bool:
    """Return whether a module needs a framework that is not installed with the other tests."""
    return adapter_of(module) in ELSEWHERE


def names(module: str) -> list[str]:
    """Return the public names of a module."""
    if is_elsewhere(module):
        return list(ast.literal_eval(assigned(module)["__all__"]))
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
    if is_elsewhere(module):
        return _first_sentence(defined(module, name))
    value = getattr(import_module(module), name)
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        text = inspect.getdoc(value) or ""
    else:
        text = beside(module, name)
    assert text, f"{module}.{name} has no docstring"
    return _first_sentence(text)


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|").replace("``", "`")


def defined(module: str, name: str) -> str:
    """Return the docstring of a class or function, which may need what is not installed here."""
    home, known_as = module, name
    while known_as in imports_of(home):
        home, known_as = imports_of(home)[known_as]
    for node in tree_of(home).body:
        if isinstance(node, ast.ClassDef | Function) and node.name == known_as:
            text = ast.get_docstring(node)
            assert text, f"{module}.{name} has no docstring"
            return text
    return beside(module, name)


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
