"""Which classes of Holdfast the signatures of its public ones name, read from the source.

Not from ``get_type_hints``: much is imported for type checkers alone. A name for a union or a
Literal counts as what it stands for.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import ParamSpec, TypeVar

Function = ast.FunctionDef | ast.AsyncFunctionDef
SRC = Path(__file__).parents[2] / "src"
CALLED = ("__init__", "__enter__", "__aenter__", "__iter__", "__getitem__")


@cache
def tree_of(module: str) -> ast.Module:
    """Return the source of a module, parsed; what it imports need not be installed."""
    path = SRC.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text("utf-8"))


@cache
def imports_of(module: str) -> dict[str, tuple[str, str]]:
    """Return what a module imports by name, for type checkers alone too, and from where."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def assigned(module: str) -> dict[str, ast.expr]:
    """Return what names of a module stand for."""
    return {
        ast.unparse(node.targets[0]): node.value
        for node in tree_of(module).body
        if isinstance(node, ast.Assign)
    }


def classes(module: str, annotation: ast.expr | None) -> Iterator[type]:
    """Return the classes of Holdfast that an annotation names."""
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Name):
            yield from called(module, node.id)


def called(module: str, name: str) -> Iterator[type]:
    """Return the class that a module knows by a name, or those that an alias stands for."""
    while name in imports_of(module):
        module, name = imports_of(module)[name]
        if module.partition(".")[0] != "holdfast":
            return
    found = vars(import_module(module)).get(name)
    if inspect.isclass(found) and found.__module__.partition(".")[0] == "holdfast":
        yield found
    elif name in assigned(module) and not isinstance(found, TypeVar | ParamSpec):
        yield from classes(module, assigned(module)[name])


def of_function(module: str, node: Function) -> Iterator[type]:
    """Return the classes in a signature."""
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    every += [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
    for each in every:
        yield from classes(module, each.annotation)
    yield from classes(module, node.returns)


def of_class(module: str, node: ast.ClassDef, is_made: bool) -> Iterator[tuple[str, type]]:
    """Return the classes in the public methods, properties and fields of a class."""
    for part in node.body:
        if isinstance(part, Function):
            what, found = part.name, of_function(module, part)
        elif isinstance(part, ast.AnnAssign):
            what, found = ast.unparse(part.target), classes(module, part.annotation)
        else:
            continue
        if not what.startswith("_") or (what in CALLED and (is_made or what != "__init__")):
            yield from ((f"{node.name}.{what}", each) for each in found)


def signatures(value: object, is_made: bool) -> Iterator[tuple[str, type]]:
    """Return where a public class or function names which classes of Holdfast.

    The constructor of a class counts if users make its objects rather than being given them.
    """
    if inspect.isclass(value):
        for base in value.__mro__:
            if base.__module__.partition(".")[0] == "holdfast":
                for node in ast.walk(tree_of(base.__module__)):
                    if isinstance(node, ast.ClassDef) and node.name == base.__name__:
                        yield from of_class(base.__module__, node, is_made)
    elif inspect.isfunction(value):
        for node in tree_of(value.__module__).body:
            if isinstance(node, Function) and node.name == value.__name__:
                for found in of_function(value.__module__, node):
                    yield node.name, found
