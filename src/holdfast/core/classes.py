"""Names of classes, and the one way a name from stored data becomes a class again."""

from __future__ import annotations

import sys
import weakref

# Classes made inside functions cannot be found by name, so those this process has encoded are kept.
_local_classes: weakref.WeakValueDictionary[str, type] = weakref.WeakValueDictionary()


def class_name(cls: type) -> str:
    """The stored name of a class: ``module:qualified.name``."""
    name = f"{cls.__module__}:{cls.__qualname__}"
    if "<locals>" in cls.__qualname__:
        _local_classes[name] = cls
    return name


def find_class(name: str) -> type | None:
    """The class of that name if its module is imported already; nothing is imported or called."""
    module_name, _, qualname = name.partition(":")
    if "<locals>" in qualname:
        return _local_classes.get(name)
    module = sys.modules.get(module_name)
    if module is None:
        return None
    found: object = module
    for part in qualname.split("."):
        # Plain dictionary look-ups: a module's __getattr__ or a descriptor would run code.
        found = getattr(found, "__dict__", {}).get(part)
    return found if isinstance(found, type) else None
