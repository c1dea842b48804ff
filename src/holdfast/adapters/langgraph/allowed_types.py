"""Which of the types that stored bytes name are allowed, by what the user said of them."""

from __future__ import annotations

import importlib
import sys
from collections import deque
from collections.abc import Collection
from dataclasses import is_dataclass
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from types import ModuleType
from typing import Any
from uuid import UUID

from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast.adapters.langgraph.named_types import Allows
from holdfast.core.class_names import class_attribute, find_class
from holdfast.core.codec import Trusts
from holdfast.errors import InvalidArgumentError

_WRITTEN = (
    *(set, frozenset, deque, Enum, PurePath, UUID, Decimal),
    *(date, time, timedelta, tzinfo),
)
_MARKS = ("model_dump", "get_secret_value", "dict", "_asdict")
"""What a class has whose values LangGraph writes by its name."""
_OWN_MODULES = ("builtins", "langgraph.checkpoint.serde.types", "holdfast.core.raw")
"""Modules of which Holdfast's own form names classes that are always made."""


def is_safe(module: str, name: str) -> bool:
    """Return whether LangGraph lists a type as safe: plain values, messages, its own."""
    return (module, name) in SAFE_MSGPACK_TYPES


def is_data_of_program(module: str, name: str) -> bool | None:
    """Return whether it is safe, or a class of data in a module that the program has imported.

    A function is never one, nor a class such as ``subprocess.Popen``. Of a class that its module
    does not have (any more, or because it was made in a function) LangGraph gives the fields.
    """
    if is_safe(module, name):
        return True
    there = sys.modules.get(module)
    # Past a lazy module's own way of looking, which might import more.
    if isinstance(there, ModuleType) and name not in object.__getattribute__(there, "__dict__"):
        return None
    cls = find_class(f"{module}:{name}")
    return cls is not None and "." not in name and (issubclass(cls, _WRITTEN) or is_data(cls))


def is_data(cls: type) -> bool:
    """Return whether LangGraph writes the fields of such values, and makes them of those again."""
    return is_dataclass(cls) or any(class_attribute(cls, mark) is not None for mark in _MARKS)


def safe_or_named(named: Collection[str | type]) -> Allows:
    """Return the rule that allows these classes beside the safe ones.

    Each is ``module:Class`` or a class. The modules are imported here, because the user names
    them; those that data name never are.
    """
    allowed = {_pair(each) for each in named}
    return lambda module, name: (module, name) in allowed or is_safe(module, name)


def safe_or_listed(serde: JsonPlusSerializer, otherwise: bool | None) -> Allows:
    """Return the rule that allows what is safe or on a serializer's own list."""
    listed = serde._allowed_msgpack_modules
    allowed = listed if isinstance(listed, set) else set()
    return lambda module, name: (
        True if (module, name) in allowed or is_safe(module, name) else otherwise
    )


def trusts_of(serde: Any) -> Trusts | None:
    """Return the same rule for Holdfast's own form; None where the serializer allows all."""
    listed = getattr(getattr(serde, "serde", serde), "_allowed_msgpack_modules", True)
    if listed is True:
        return None

    def trusts(name: str) -> bool:
        module, _, qualname = name.partition(":")
        pair = (module, qualname.rpartition(".")[2])
        return pair in SAFE_MSGPACK_TYPES or pair in (listed or ()) or module in _OWN_MODULES

    return trusts


def _pair(named: str | type) -> tuple[str, str]:
    """Return the module and name of a class that the user trusts, once it is there."""
    if isinstance(named, type):
        return named.__module__, named.__name__
    module, _, name = str(named).partition(":")
    if not module or not name.isidentifier():
        raise InvalidArgumentError(f"a class to trust is named module:Class, not {named!r}")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise InvalidArgumentError(
            f"{named} cannot be trusted: {error}; run this where your modules are found"
        ) from error
    if not isinstance(found, type):
        raise InvalidArgumentError(f"{named} cannot be trusted: {module} has no class {name}")
    return module, name
