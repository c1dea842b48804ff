"""Names of classes, and the one way a name from stored data becomes a class again."""

from __future__ import annotations

import sys
import types
import weakref
from typing import Any

from holdfast._lazy import OLD_ERRORS

# Classes that no name leads to (made inside functions, say): those this process has encoded.
_unlisted: weakref.WeakValueDictionary[str, type] = weakref.WeakValueDictionary()
_names: dict[type, str] = {}

_OLD_NAMES = {
    **{f"holdfast.errors:{old}": f"holdfast.errors:{now}" for old, now in OLD_ERRORS.items()},
    "holdfast.adapters.langgraph.moving:Moved": "holdfast.adapters.langgraph.importing.move:Moved",
    "holdfast.session.explore:Exploration": "holdfast.session.exploration:Exploration",
    "holdfast.session.explore:Outcome": "holdfast.session.exploration:Outcome",
    "holdfast.session.replay:Step": "holdfast.session.replay:ReplayedStep",
    "holdfast.verbs.lineage:Node": "holdfast.verbs.lineage:TreeNode",
    "holdfast.workspace.scan:Skipped": "holdfast.workspace.results:Skipped",
}
"""What public classes of Holdfast were called when an older version saved one in a state."""

# Past any __getattribute__ of a metaclass or a lazy module: looking must not run code.
_mro = vars(type)["__mro__"].__get__
_class_dict = vars(type)["__dict__"].__get__
_module_dict = vars(types.ModuleType)["__dict__"].__get__


def class_name(cls: type) -> str:
    """Return the stored name of a class: ``module:qualified.name``."""
    name = _names.get(cls)
    if name is None:
        name = f"{cls.__module__}:{cls.__qualname__}"
        if is_listed(cls, name):
            _names[cls] = name
        else:
            _unlisted[name] = cls
    return name


def find_class(name: str) -> type | None:
    """Return the class of that name if its module is imported; nothing is imported or called."""
    if type(name) is not str:
        raise ValueError("a class name that is no string")
    found = _listed(name)
    if found is None and name in _OLD_NAMES:
        return _listed(_OLD_NAMES[name])
    return found if found is not None else _unlisted.get(name)


def is_listed(cls: type, name: str) -> bool:
    """Return whether a later process finds the class by that name, once its module is there."""
    return _listed(name) is cls


def unlisted_in(data: bytes) -> str | None:
    """Return the name of a class in encoded data that no later process finds, if there is one."""
    for name, cls in list(_unlisted.items()):
        if name.encode("utf-8", "surrogatepass") in data and not is_listed(cls, name):
            return name
    return None


def _listed(name: str) -> type | None:
    module_name, _, qualname = name.partition(":")
    module = sys.modules.get(module_name)
    if not issubclass(type(module), types.ModuleType):
        return None
    names = _module_dict(module)
    found: Any = None
    for part in qualname.split("."):
        found = names.get(part)
        if not issubclass(type(found), type):
            return None
        names = _class_dict(found)
    return found  # type: ignore[no-any-return]


def class_attribute(cls: type, name: str) -> Any:
    """Return what a class or one of its bases has under that name, or None; runs no descriptor."""
    for base in _mro(cls):
        names = _class_dict(base)
        if name in names:
            return names[name]
    return None


def is_name(name: object) -> bool:
    """Return whether an attribute can have this name, and it is not one of Python's own."""
    is_dunder = isinstance(name, str) and name.startswith("__") and name.endswith("__")
    return isinstance(name, str) and name.isidentifier() and not is_dunder
