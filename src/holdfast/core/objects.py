"""Kinds of objects with a class of the user's: made with ``__new__``, never by a constructor."""

from __future__ import annotations

import datetime as dt
import enum
import sys
import types
from collections import deque
from decimal import Decimal
from typing import Any

from holdfast.core import basics
from holdfast.core.classes import class_name, find_class
from holdfast.core.kinds import Kind, Reader, Unkeepable, add, add_matcher

OBJECT, ENUM, NAMED_TUPLE, EXCEPTION, SUBCLASS, CLASS, PYDANTIC, PYDANTIC_V1, STRUCT = range(40, 49)


def _slots(cls: type) -> dict[str, Any]:
    """The slot descriptors of a class and its bases, by attribute name."""
    return {
        name: descriptor
        for base in reversed(cls.__mro__)
        for name, descriptor in vars(base).items()
        if isinstance(descriptor, types.MemberDescriptorType)
    }


def attributes(obj: object) -> dict[str, Any]:
    """All that an object holds, in its slots and its ``__dict__``."""
    cls = type(obj)
    chosen = getattr(cls, "_checkpoint_fields", None)
    values = {}
    for name, slot in _slots(cls).items():
        try:
            values[name] = slot.__get__(obj, cls)
        except AttributeError:  # an empty slot stays empty
            continue
    values.update(getattr(obj, "__dict__", ()))
    if chosen is not None:
        wanted = set(chosen(obj))
        values = {name: value for name, value in values.items() if name in wanted}
    return values


def set_attributes(obj: Any, values: dict[str, Any]) -> None:
    """Set what ``attributes`` gave, past any ``__setattr__`` or property of the class."""
    slots = _slots(type(obj))
    rest = {}
    for name, value in values.items():
        if name in slots:
            slots[name].__set__(obj, value)
        else:
            rest[name] = value
    if rest:
        obj.__dict__.update(rest)


def _why_not_made(cls: type) -> str | None:
    """Why instances of a class may not be made from data, or None where they may."""
    if hasattr(cls, "__del__"):
        return "has a __del__ method, which data must not trigger"
    try:
        object.__new__(cls)
    except TypeError:
        return "holds state outside Python"
    return None


def _reduce_object(obj: object) -> list[Any]:
    return [class_name(type(obj)), attributes(obj)]


def _revive_object(plain: list[Any], reader: Reader) -> Any:
    cls = find_class(plain[0])
    if cls is None:
        return reader.missing(OBJECT, plain, "is not imported")
    why_not = _why_not_made(cls) if kind_by_type(cls) is OBJECT_KIND else "is no plain class now"
    if why_not:
        return reader.missing(OBJECT, plain, why_not)
    obj = object.__new__(cls)
    set_attributes(obj, plain[1])
    return obj


def _reduce_enum(member: enum.Enum) -> list[Any]:
    name = class_name(type(member))
    if isinstance(member, enum.Flag) and member.name not in type(member).__members__:
        return [name, member.value]
    return [name, member.name]


def _revive_enum(plain: list[Any], reader: Reader) -> Any:
    cls = find_class(plain[0])
    if cls is None or not issubclass(cls, enum.Enum):
        return reader.missing(ENUM, plain, "is not imported")
    if isinstance(plain[1], str):
        member = cls._member_map_.get(plain[1])
        return member if member is not None else reader.missing(
            ENUM, plain, f"has no member {plain[1]!r} now"
        )
    if not issubclass(cls, enum.Flag) or cls._missing_.__func__ is not enum.Flag._missing_.__func__:  # type: ignore[attr-defined]
        return reader.missing(ENUM, plain, "is no plain Flag now")
    return cls(plain[1])


def _reduce_named_tuple(value: Any) -> list[Any]:
    return [class_name(type(value)), list(value)]


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def _revive_named_tuple(plain: list[Any], reader: Reader) -> Any:
    cls = find_class(plain[0])
    if cls is None or not _is_named_tuple(cls):
        return reader.missing(NAMED_TUPLE, plain, "is not imported")
    if len(cls._fields) != len(plain[1]):  # type: ignore[attr-defined]
        return reader.missing(NAMED_TUPLE, plain, "has other fields now")
    return tuple.__new__(cls, plain[1])


def _reduce_exception(error: BaseException) -> list[Any]:
    return [class_name(type(error)), attributes(error), list(error.args)]


def _revive_exception(plain: list[Any], reader: Reader) -> Any:
    cls = find_class(plain[0])
    if cls is None or not issubclass(cls, BaseException):
        return reader.missing(EXCEPTION, plain, "is not imported")
    if hasattr(cls, "__del__"):
        return reader.missing(EXCEPTION, plain, "has a __del__ method, which data must not trigger")
    # The C constructors of the built-in errors (OSError's errno…) read their arguments in __new__.
    base = next(b for b in cls.__mro__ if b.__module__ == "builtins")
    error = base.__new__(cls, *plain[2])
    error.args = tuple(plain[2])  # type: ignore[attr-defined]
    set_attributes(error, plain[1])
    return error


_bases: dict[str, type] = {
    cls.__name__: cls
    for cls in (str, int, float, bytes, list, dict, tuple, set, frozenset, deque)
}
_bases |= {"datetime": dt.datetime, "Decimal": Decimal}


def _base_of(cls: type) -> type | None:
    return next((base for base in cls.__mro__ if _bases.get(base.__name__) is base), None)


def _reduce_subclass(value: Any) -> list[Any]:
    cls = type(value)
    base: Any = _base_of(cls)
    if base is dt.datetime:
        plain: Any = basics.datetime_fields(value)
    elif base is Decimal:
        plain = str(value)
    elif base is dict:
        plain = basics._pairs(value)
    elif base is deque:
        plain = [value.maxlen, list(value)]
    elif base is int:
        plain = int.__add__(value, 0)
    elif base is float:
        plain = float.__add__(value, -0.0)
    elif base is str:
        plain = str.__str__(value)
    elif base is bytes:
        plain = bytes.__getitem__(value, slice(None))
    else:
        plain = list(base.__iter__(value))
    return [class_name(cls), plain, base.__name__, attributes(value)]


def _revive_subclass(plain: list[Any], reader: Reader) -> Any:
    name, main, base_name, attrs = plain
    cls: Any = find_class(name)
    base: Any = _bases[base_name]
    if cls is None or kind_by_type(cls) is not SUBCLASS_KIND or not issubclass(cls, base):
        return reader.missing(SUBCLASS, plain, "is not imported")
    if hasattr(cls, "__del__"):
        return reader.missing(SUBCLASS, plain, "has a __del__ method, which data must not trigger")
    if base is dt.datetime:
        value: Any = basics.make_datetime(cls, main)
    elif base is dict:
        value = dict.__new__(cls)
        dict.update(value, zip(main[::2], main[1::2], strict=True))
    elif base is list:
        value = list.__new__(cls)
        list.extend(value, main)
    elif base is set:
        value = set.__new__(cls)
        set.update(value, main)
    elif base is deque:
        value = deque.__new__(cls)
        deque.__init__(value, main[1], main[0])
    else:
        value = base.__new__(cls, main)
    set_attributes(value, attrs)
    return value


def _reduce_class(cls: type) -> list[Any]:
    if "<locals>" in cls.__qualname__:
        raise Unkeepable("a class made inside a function cannot be checkpointed as a value")
    return [class_name(cls), None]


def _revive_class(plain: list[Any], reader: Reader) -> Any:
    cls = find_class(plain[0])
    return cls if cls is not None else reader.missing(CLASS, plain, "is not imported")


_PYDANTIC_PARTS = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_PYDANTIC_V1_PARTS = ("__fields_set__",)


def _model_parts(obj: Any, parts: tuple[str, ...]) -> list[Any]:
    return [class_name(type(obj)), dict(obj.__dict__), *(getattr(obj, part) for part in parts)]


def _reduce_pydantic(obj: Any) -> list[Any]:
    plain = _model_parts(obj, _PYDANTIC_PARTS)
    if type(obj).__private_attributes__ and plain[-1]:
        undefined = sys.modules["pydantic_core"].PydanticUndefined
        plain[-1] = {k: v for k, v in plain[-1].items() if v is not undefined}
    return plain


def _reduce_pydantic_v1(obj: Any) -> list[Any]:
    private = {
        name: getattr(obj, name)
        for name in type(obj).__private_attributes__
        if hasattr(obj, name)
    }
    return [*_model_parts(obj, _PYDANTIC_V1_PARTS), private]


def _revive_model(code: int, parts: tuple[str, ...]) -> Any:
    def revive(plain: list[Any], reader: Reader) -> Any:
        cls = find_class(plain[0])
        if cls is None or getattr(kind_by_type(cls), "code", None) != code:
            return reader.missing(code, plain, "is not imported")
        obj = object.__new__(cls)
        object.__setattr__(obj, "__dict__", plain[1])
        for part, value in zip(parts, plain[2:], strict=False):
            object.__setattr__(obj, part, value)
        if code == PYDANTIC_V1:
            for name, value in plain[3].items():
                object.__setattr__(obj, name, value)
        return obj

    return revive


def _reduce_struct(obj: Any) -> list[Any]:
    cls = type(obj)
    if hasattr(cls, "__post_init__"):
        raise Unkeepable("a Struct with __post_init__ cannot be revived safely; register_type(...) it")
    return [class_name(cls), {name: getattr(obj, name) for name in cls.__struct_fields__}]


def _revive_struct(plain: list[Any], reader: Reader) -> Any:
    cls = find_class(plain[0])
    if cls is None or not hasattr(cls, "__struct_fields__") or hasattr(cls, "__post_init__"):
        return reader.missing(STRUCT, plain, "is not imported")
    if set(cls.__struct_fields__) != set(plain[1]):
        return reader.missing(STRUCT, plain, "has other fields now")
    # A Struct cannot be made empty; without __post_init__ its constructor is msgspec's own C code.
    return cls(**plain[1])


OBJECT_KIND = add(Kind(OBJECT, "object", _reduce_object, _revive_object))
ENUM_KIND = add(Kind(ENUM, "enum", _reduce_enum, _revive_enum))
NAMED_TUPLE_KIND = add(Kind(NAMED_TUPLE, "namedtuple", _reduce_named_tuple, _revive_named_tuple))
EXCEPTION_KIND = add(Kind(EXCEPTION, "exception", _reduce_exception, _revive_exception))
SUBCLASS_KIND = add(Kind(SUBCLASS, "subclass", _reduce_subclass, _revive_subclass))
CLASS_KIND = add(Kind(CLASS, "class", _reduce_class, _revive_class), type)
PYDANTIC_KIND = add(
    Kind(PYDANTIC, "pydantic", _reduce_pydantic, _revive_model(PYDANTIC, _PYDANTIC_PARTS))
)
PYDANTIC_V1_KIND = add(
    Kind(
        PYDANTIC_V1, "pydantic.v1", _reduce_pydantic_v1, _revive_model(PYDANTIC_V1, _PYDANTIC_V1_PARTS)
    )
)
STRUCT_KIND = add(Kind(STRUCT, "msgspec", _reduce_struct, _revive_struct))


def kind_by_type(cls: type) -> Kind | None:
    """The kind of a class of the user's, by what the class is; None where it cannot be kept."""
    if issubclass(cls, type):
        return CLASS_KIND
    if issubclass(cls, enum.Enum):
        return ENUM_KIND
    if hasattr(cls, "__pydantic_fields__") or hasattr(cls, "__pydantic_core_schema__"):
        return PYDANTIC_KIND if hasattr(cls, "model_fields") else OBJECT_KIND
    if hasattr(cls, "__fields_set__") and hasattr(cls, "__private_attributes__"):
        return PYDANTIC_V1_KIND
    if hasattr(cls, "__struct_fields__"):
        return STRUCT_KIND
    if cls.__module__ == "zoneinfo" and cls.__name__ == "ZoneInfo":
        return basics.ZONE_INFO
    if issubclass(cls, BaseException):
        return EXCEPTION_KIND
    if _is_named_tuple(cls):
        return NAMED_TUPLE_KIND
    if _base_of(cls) is not None:
        return SUBCLASS_KIND
    return OBJECT_KIND if _why_not_made(cls) is None else None


add_matcher(kind_by_type)
