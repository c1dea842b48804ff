"""Every Checkpointable class this process knows, by name: a state names its class and no more."""

from __future__ import annotations

from weakref import WeakValueDictionary

from holdfast.errors import SchemaMigrationError

# A class defined again (a notebook cell, a slots dataclass) takes the place of the one before.
_known: dict[str, WeakValueDictionary[tuple[str, str], type]] = {}


def add(cls: type) -> None:
    """Enter a class."""
    homes = _known.setdefault(cls.__name__, WeakValueDictionary())
    homes[cls.__module__, cls.__qualname__] = cls


def find(name: str, near: type, path: str) -> type | None:
    """Return the class of that name; of several, the one nearest to the class that holds it."""
    found: dict[tuple[str, str], type] = dict(_known.get(name) or {})
    if len(found) > 1:
        scope = f"{near.__qualname__}."
        while scope:
            scope = scope.rpartition(".")[0]
            home = (near.__module__, f"{scope}.{name}" if scope else name)
            if home in found:
                return found[home]
        homes = ", ".join(sorted(".".join(home) for home in found))
        raise SchemaMigrationError(
            f"{path}: several classes are named {name} ({homes}): rename one, or set the attribute "
            "to an object of the right one before loading"
        )
    return next(iter(found.values()), None)
