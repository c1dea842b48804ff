"""Flat public namespaces, complete and documented."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import holdfast
from holdfast._lazy import OLD_ERRORS
from holdfast.stores import Store, WrappedStore
from tests.project.annotations import signatures, tree_of
from tests.project.names_page import MODULES, PAGE, is_elsewhere, names, page

LAZY = ("holdfast", "holdfast.stores")
PUBLIC = {
    f"{module}.{name}": getattr(import_module(module), name)
    for module in MODULES
    if not is_elsewhere(module)
    for name in names(module)
}
MADE = {
    *("CheckpointBuilder", "CheckpointManager", "Client", "Keep", "SyncClient", "Workspace"),
    *("AsyncRuntime", "SyncRuntime", "HoldfastSaver", "LangGraphAdapter"),
}
"""Classes whose objects users make; of all others, but stores and errors, they are given some."""
UNSPOKEN = ("holdfast.stores.", "holdfast.testing.")
NOT_FOR_USERS = ("Snapshot.root", "Engine.")
"""What leads into a store, and what a client remembers: to be handed on, not looked into."""


def documented_objects() -> Iterator[tuple[str, object]]:
    """The public functions, classes and modules, and the methods a class of ours defines."""
    for name, value in PUBLIC.items():
        if inspect.isclass(value):
            yield name, value
            # A store does what Store says of each method, and a test says it with its name.
            members = {} if name.startswith(UNSPOKEN) else vars(value)
            for method, member in members.items():
                if not method.startswith("_") and is_method(member):
                    yield f"{name}.{method}", getattr(value, method)
        elif inspect.isroutine(value) or inspect.ismodule(value):
            yield name, value


def is_method(member: object) -> bool:
    return inspect.isroutine(member) or isinstance(member, property)


@pytest.mark.parametrize("module", MODULES)
def test_all_is_sorted_and_has_each_name_once(module: str) -> None:
    assert names(module) == sorted(set(names(module)))


@pytest.mark.parametrize("module", LAZY)
def test_all_is_what_dir_shows(module: str) -> None:
    assert dir(import_module(module)) == names(module)


@pytest.mark.parametrize("name", dir(holdfast))
def test_every_public_name_resolves(name: str) -> None:
    assert hasattr(holdfast, name)


@pytest.mark.parametrize("module", LAZY)
def test_a_name_that_is_not_public_does_not_resolve(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'no_such_name'"):
        _ = import_module(module).no_such_name


@pytest.mark.parametrize("module", LAZY)
def test_type_checkers_see_the_same_names(module: str) -> None:
    (block,) = (
        node
        for node in tree_of(module).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = [
        (f"{node.module}", alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name not in OLD_ERRORS
    ]
    homes = vars(import_module(module))["_homes"].items()

    assert sorted(seen) == sorted((f"holdfast.{home}", name) for home, all in homes for name in all)


def test_the_names_of_stores_are_there_without_importing_one() -> None:
    script = (
        "import sys; import holdfast.stores; dir(holdfast.stores); holdfast.stores.Store; "
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    heavy = {"redis", "psycopg", "obstore", "sqlite3", "asyncio"}
    assert not heavy & set(done.stdout.split())


OBJECTS = dict(documented_objects())


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_object_has_a_docstring(name: str) -> None:
    value = OBJECTS[name]
    text = (value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)) or ""

    assert text
    # A dataclass without a docstring gets its signature as one.
    assert not text.startswith(f"{name.rpartition('.')[2]}(")


def is_made(value: object) -> bool:
    return inspect.isclass(value) and (
        value.__name__ in MADE or issubclass(value, Store | BaseException)
    )


def promised(value: object, where: str) -> bool:
    """Whether it is for users: of a store that is shipped, what every store does."""
    shipped = inspect.isclass(value) and issubclass(value, Store)
    if shipped and value not in (Store, WrappedStore):
        return where.endswith(".__init__")
    return not where.startswith(NOT_FOR_USERS)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_type_that_a_public_signature_names_is_public(name: str) -> None:
    value = PUBLIC[name]
    public = {id(each) for each in PUBLIC.values()}
    hidden = {
        f"{where} names {found.__module__}.{found.__qualname__}"
        for where, found in signatures(value, is_made(value))
        if id(found) not in public and promised(value, where)
    }

    assert not hidden


def test_what_signatures_name_is_found() -> None:
    found = {(where, each.__name__) for where, each in signatures(holdfast.SyncClient, True)}

    assert found >= {
        ("SyncClient.session", "Run"),  # imported for type checkers alone
        ("SyncClient.tree", "Tree"),
        ("Handoffs.inbox", "Offer"),
        ("ClientBase.__init__", "Store"),
    }


def test_the_page_of_public_names_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m tests.project.names_page"


def test_types_are_shipped() -> None:
    assert Path(holdfast.__file__).with_name("py.typed").is_file()
