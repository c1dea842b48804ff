"""Names of a package that are imported when they are asked for, and names of before."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # as of typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Getter = Callable[[str], object]

OLD_ERRORS = {"ApprovalDenied": "ApprovalDeniedError", "StillWaiting": "StillWaitingError"}
"""What errors were called, which still leads to the same classes."""


def lazy(
    package: str, homes: Mapping[str, tuple[str, ...]], old_names: Mapping[str, str] | None = None
) -> tuple[list[str], Getter, Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package.

    ``homes`` names the modules of ``holdfast`` in which its names are defined.
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    public = sorted(home_of)

    def get(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            return _of_before(package, old_names or {}, name)
        value = getattr(import_module(f"holdfast.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return public, get, lambda: public


def renamed(module: str, old_names: Mapping[str, str], home: str = "") -> Getter:
    """Return a ``__getattr__`` that leads from names of before to those of now, and warns.

    They are found in ``home``, by default in the module itself.
    """

    def get(name: str) -> object:
        return _of_before(module, old_names, name, home)

    return get


def _of_before(module: str, old_names: Mapping[str, str], name: str, home: str = "") -> object:
    now = old_names.get(name)
    if now is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    from warnings import warn

    # Not kept in the module: every place that uses the name is told.
    home = home or module
    warn(f"{module}.{name} is called {home}.{now} now", DeprecationWarning, stacklevel=3)
    return getattr(import_module(home), now)
