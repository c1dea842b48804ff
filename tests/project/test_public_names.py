"""One flat public namespace, complete and documented."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast


def documented_objects() -> Iterator[tuple[str, object]]:
    """The public functions, classes and modules, and the methods a class of ours defines."""
    for name in dir(holdfast):
        value = getattr(holdfast, name)
        if inspect.isclass(value):
            yield name, value
            for method, member in vars(value).items():
                if not method.startswith("_") and is_method(member):
                    yield f"{name}.{method}", getattr(value, method)
        elif inspect.isroutine(value) or inspect.ismodule(value):
            yield name, value


def is_method(member: object) -> bool:
    return inspect.isroutine(member) or isinstance(member, property)


def test_all_is_sorted() -> None:
    assert list(dir(holdfast)) == sorted(dir(holdfast))


def test_all_is_what_dir_shows() -> None:
    shown = {name for name in dir(holdfast) if not name.startswith("_")}

    assert shown == {name for name in dir(holdfast) if not name.startswith("_")}


@pytest.mark.parametrize("name", dir(holdfast))
def test_every_public_name_resolves(name: str) -> None:
    assert hasattr(holdfast, name)


def test_a_name_that_is_not_public_does_not_resolve() -> None:
    assert not hasattr(holdfast, "no_such_name")


OBJECTS = dict(documented_objects())


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_object_has_a_docstring(name: str) -> None:
    value = OBJECTS[name]
    text = (value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)) or ""

    assert text
    # A dataclass without a docstring gets its signature as one.
    assert not text.startswith(f"{name}(")


def test_types_are_shipped() -> None:
    assert Path(holdfast.__file__).with_name("py.typed").is_file()
