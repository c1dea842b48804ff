"""Kinds of objects with a class of the user's: made with ``__new__``, never by a constructor."""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Iterable
from typing import Any

from holdfast.core.class_names import class_attribute, class_name, find_class, is_listed
from holdfast.core.kinds import standard
from holdfast.core.kinds.plain_shapes import WHOLE, Parts, PartsShape, PlainShape, Walker
from holdfast.core.kinds.subclasses import SubclassShape, base_by_name, base_of
from holdfast.core.kinds.table import (
    Kind,
    Reviver,
    Revives,
    Unkeepable,
    add,
    add_matcher,
    all_exactly,
    exactly,
)

OBJECT, ENUM, NAMED_TUPLE, EXCEPTION, SUBCLASS, CLASS, PYDANTIC, PYDANTIC_V1, STRUCT = range(40, 49)

_slots_of: dict[type, dict[str, Any]] = {}
_kinds: dict[type, Kind | None] = {}
_HEAP_TYPE = 1 << 9


def _slots(cls: type) -> dict[str, Any]:
    """Return the slot descriptors of a class and its bases, by attribute name."""
    slots = _slots_of.get(cls)
    if slots is None:
        slots = _slots_of[cls] = {
            name: descriptor
            for base in reversed(cls.__mro__)
            for name, descriptor in vars(base).items()
            if isinstance(descriptor, types.MemberDescriptorType)
        }
    return slots


def _is_native(slot: Any) -> bool:
    """Return whether a slot belongs to a class written in C, as OSError.errno does.

    Such a class has no ``__slots__``; its flags say nothing, as they differ between Pythons.
    """
    return "__slots__" not in vars(slot.__objclass__)


def attributes(obj: object) -> dict[str, Any]:
    """Return all that an object holds, in its slots and its ``__dict__``."""
    cls = type(obj)
    slots = _slots(cls)
    chosen = getattr(cls, "_checkpoint_fields", None)
    if not slots and chosen is None:
        return getattr(obj, "__dict__", {})  # as it is: whoever asks only reads it
    values = {}
    for name, slot in slots.items():
        if _is_native(slot):
            continue  # contents, which its kind keeps
        try:
            values[name] = slot.__get__(obj, cls)
        except AttributeError:  # an empty slot stays empty
            continue
    values.update(getattr(obj, "__dict__", ()))
    if chosen is not None:
        wanted = set(obj._checkpoint_fields())  # type: ignore[attr-defined]
        values = {name: value for name, value in values.items() if name in wanted}
    return values


def all_attributes(cls: type, objects: Iterable[Any]) -> list[dict[str, Any]]:
    """Return all that each of some objects of a class holds."""
    if _slots(cls) or getattr(cls, "_checkpoint_fields", None) is not None:
        return list(map(attributes, objects))
    return [each.__dict__ for each in objects]


def set_attributes(obj: Any, values: dict[str, Any]) -> None:
    """Set what ``attributes`` gave, past any ``__setattr__`` or property of the class."""
    slots = _slots(type(obj))
    rest = {}
    for name, value in exactly(values, dict).items():
        if name in slots and not _is_native(slots[name]):
            slots[name].__set__(obj, value)
        else:
            rest[name] = value
    if rest:
        object.__getattribute__(obj, "__dict__").update(rest)


def _reduce_object(obj: object) -> list[Any]:
    return [class_name(type(obj)), attributes(obj)]


def _revive_object(plain: list[Any], reviver: Reviver) -> Any:
    name, values = exactly(plain, list)
    cls = find_class(name)
    if cls is None or kind_by_type(cls) is not OBJECT_KIND:
        return reviver.missing(OBJECT, plain, _why_missing(cls))
    obj: Any = object.__new__(cls)
    set_attributes(obj, values)
    return obj


def _is_plain_flag(cls: type) -> bool:
    """Return whether any combination of its members can be made without running the user's code."""
    return (
        issubclass(cls, enum.Flag)
        and class_attribute(cls, "_missing_") is vars(enum.Flag)["_missing_"]
        and type(cls) is type(enum.Flag)
    )


def _reduce_enum(member: enum.Enum) -> list[Any]:
    cls = type(member)
    if not isinstance(member, enum.Flag) or member.name in cls.__members__:
        return [class_name(cls), member.name]
    if not _is_plain_flag(cls):
        raise Unkeepable("cannot be checkpointed: it has its own _missing_; register_type(...) it")
    return [class_name(cls), int(member.value)]


def _revive_enum(plain: list[Any], reviver: Reviver) -> Any:
    name, member = exactly(plain, list)
    cls: Any = find_class(name)
    if cls is None or kind_by_type(cls) is not ENUM_KIND:
        return reviver.missing(ENUM, plain, _why_missing(cls))
    if type(member) is str:
        found = class_attribute(cls, "_member_map_").get(member)
        if found is None:
            return reviver.missing(ENUM, plain, f"has no member {member!r} now")
        return found
    if not _is_plain_flag(cls):
        return reviver.missing(ENUM, plain, "is no plain Flag now")
    return exactly(cls(exactly(member, int)), cls)


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and type(class_attribute(cls, "_fields")) is tuple


def _reduce_named_tuple(value: Any) -> list[Any]:
    extra = attributes(value)
    return [class_name(type(value)), list(tuple.__iter__(value)), *([extra] if extra else [])]


def _revive_named_tuple(plain: list[Any], reviver: Reviver) -> Any:
    name, parts, *extra = exactly(plain, list)
    cls = find_class(name)
    if cls is None or kind_by_type(cls) is not NAMED_TUPLE_KIND:
        return reviver.missing(NAMED_TUPLE, plain, _why_missing(cls))
    if len(class_attribute(cls, "_fields")) != len(exactly(parts, list)):
        return reviver.missing(NAMED_TUPLE, plain, "has other fields now")
    value: Any = tuple.__new__(cls, parts)
    for values in extra:
        set_attributes(value, values)
    return value


def _native_slots(error: BaseException) -> dict[str, Any]:
    """Return the fields that the built-in errors keep in C, but for those that are empty."""
    cls = type(error)
    values = {
        name: slot.__get__(error, cls)
        for name, slot in _slots(cls).items()
        if _is_native(slot) and slot.__objclass__ is not BaseExceptionGroup
    }
    return {
        name: value for name, value in values.items() if value is not None and value is not False
    }


def _reduce_exception(error: BaseException) -> list[Any]:
    args: Any = list(error.args)
    plain = [class_name(type(error)), {**_native_slots(error), **attributes(error)}, args]
    if isinstance(error, BaseExceptionGroup):
        plain += [error.message, list(error.exceptions)]
        if args == [error.message, plain[4]]:
            plain[2] = None  # or nested groups would be kept twice at every level
    return plain


def _native_base(cls: type) -> type[BaseException]:
    return next(base for base in cls.__mro__ if not base.__flags__ & _HEAP_TYPE)


def _revive_exception(plain: list[Any], reviver: Reviver) -> Any:
    name, values, args, *group = exactly(plain, list)
    exactly(values, dict)
    cls: Any = find_class(name)
    if cls is None or kind_by_type(cls) is not EXCEPTION_KIND:
        return reviver.missing(EXCEPTION, plain, _why_missing(cls))
    if issubclass(cls, BaseExceptionGroup):
        message, errors = group
        error: Any = BaseExceptionGroup.__new__(cls, exactly(message, str), exactly(errors, list))
    else:
        error = _native_base(cls).__new__(cls)
    if args is not None:
        BaseException.args.__set__(error, tuple(exactly(args, list)))  # type: ignore[attr-defined]
    slots = _slots(cls)
    native = {n: value for n, value in values.items() if n in slots and _is_native(slots[n])}
    for field, value in native.items():
        slots[field].__set__(error, value)
    set_attributes(error, {n: value for n, value in values.items() if n not in native})
    if issubclass(cls, UnicodeError):
        _check_unicode_error(error)
    return error


def _check_unicode_error(error: Any) -> None:
    """Refuse an error that points beyond its text: Python would read past the end to show it."""
    slots = _slots(type(error))
    if "object" in slots:
        text, start, end = (slots[name].__get__(error) for name in ("object", "start", "end"))
        expected = bytes if isinstance(error, UnicodeDecodeError) else str
        if text is not None and not 0 <= start <= end <= len(exactly(text, expected)):
            raise ValueError("it points outside its text")


def _reduce_subclass(value: Any) -> list[Any]:
    cls = type(value)
    base = base_of(cls)
    assert base is not None
    return [class_name(cls), base.reduce(value), base.name, attributes(value)]


def _revive_subclass(plain: list[Any], reviver: Reviver) -> Any:
    name, main, base_name, values = exactly(plain, list)
    cls = find_class(name)
    base = base_by_name[exactly(base_name, str)]
    if cls is None or kind_by_type(cls) is not SUBCLASS_KIND or base_of(cls) is not base:
        return reviver.missing(SUBCLASS, plain, _why_missing(cls))
    value = base.revive(cls, main)
    set_attributes(value, values)
    return value


def _reduce_class(cls: type) -> list[Any]:
    name = class_name(cls)
    if not is_listed(cls, name):
        raise Unkeepable("cannot be checkpointed as a value: no module has the class by its name")
    return [name, None]


def _revive_class(plain: list[Any], reviver: Reviver) -> Any:
    cls = find_class(plain[0])
    return cls if cls is not None else reviver.missing(CLASS, plain, "is not imported")


_PYDANTIC_PARTS = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")


def _reduce_pydantic(obj: Any) -> list[Any]:
    private = obj.__pydantic_private__
    if private:
        undefined = sys.modules["pydantic_core"].PydanticUndefined
        private = {k: v for k, v in private.items() if v is not undefined}
    chosen = sorted(obj.__pydantic_fields_set__)
    return [class_name(type(obj)), obj.__dict__, chosen, obj.__pydantic_extra__, private]


def _revive_pydantic(plain: list[Any], reviver: Reviver) -> Any:
    name, values, chosen, extra, private = exactly(plain, list)
    cls = find_class(name)
    if cls is None or kind_by_type(cls) is not PYDANTIC_KIND:
        return reviver.missing(PYDANTIC, plain, _why_missing(cls))
    obj: Any = object.__new__(cls)
    object.__setattr__(obj, "__dict__", exactly(values, dict))
    parts = (
        set(all_exactly(chosen, str)),
        exactly(extra, dict, type(None)),
        exactly(private, dict, type(None)),
    )
    slots = _slots(cls)  # a RootModel hides them behind class attributes
    for part, value in zip(_PYDANTIC_PARTS, parts, strict=True):
        slots[part].__set__(obj, value)
    return obj


def _reduce_pydantic_v1(obj: Any) -> list[Any]:
    private = {
        name: getattr(obj, name) for name in type(obj).__private_attributes__ if hasattr(obj, name)
    }
    return [class_name(type(obj)), obj.__dict__, sorted(obj.__fields_set__), private]


def _revive_pydantic_v1(plain: list[Any], reviver: Reviver) -> Any:
    name, values, chosen, private = exactly(plain, list)
    cls = find_class(name)
    if cls is None or kind_by_type(cls) is not PYDANTIC_V1_KIND:
        return reviver.missing(PYDANTIC_V1, plain, _why_missing(cls))
    obj: Any = object.__new__(cls)
    object.__setattr__(obj, "__dict__", exactly(values, dict))
    object.__setattr__(obj, "__fields_set__", set(all_exactly(chosen, str)))
    slots = _slots(cls)
    for attribute, value in exactly(private, dict).items():
        slots[attribute].__set__(obj, value)
    return obj


def _is_struct(cls: type) -> bool:
    struct = getattr(sys.modules.get("msgspec"), "Struct", None)
    return struct is not None and issubclass(cls, struct)


def _reduce_struct(obj: Any) -> list[Any]:
    cls = type(obj)
    if class_attribute(cls, "__post_init__") is not None:
        raise Unkeepable(
            "a Struct with __post_init__ cannot be revived safely; register_type(...) it"
        )
    values = attributes(obj)
    names = cls.__struct_fields__
    if not values.keys() >= set(names):
        raise Unkeepable("a Struct with fields deleted cannot be checkpointed; exclude it")
    extra = {name: value for name, value in values.items() if name not in names}
    return [class_name(cls), {name: values[name] for name in names}, *([extra] if extra else [])]


def _revive_struct(plain: list[Any], reviver: Reviver) -> Any:
    name, values, *extra = exactly(plain, list)
    cls: Any = find_class(name)
    if cls is None or kind_by_type(cls) is not STRUCT_KIND:
        return reviver.missing(STRUCT, plain, _why_missing(cls))
    if type(cls) is not type(sys.modules["msgspec"].Struct):
        return reviver.missing(STRUCT, plain, "has a metaclass, which data must not call")
    if class_attribute(cls, "__post_init__") is not None:
        return reviver.missing(STRUCT, plain, "has a __post_init__, which data must not call")
    if set(cls.__struct_fields__) != set(exactly(values, dict)):
        return reviver.missing(STRUCT, plain, "has other fields now")
    # A Struct cannot be made empty; without __post_init__ its constructor is msgspec's own C code.
    obj = cls(**values)
    for others in extra:
        set_attributes(obj, others)
    return obj


def _object_members(plain: list[Any]) -> Parts:
    name, fields, *extra = plain
    return Parts(same=(name,), mappings=(fields, extra[0] if extra else {}))


def _named_tuple_members(plain: list[Any]) -> Parts:
    name, elements, *extra = plain
    return Parts(same=(name,), mappings=(extra[0] if extra else {},), places=(elements,))


def _pydantic_members(plain: list[Any]) -> Parts:
    name, fields, chosen, extra, private = plain
    return Parts(
        same=(name,),
        mappings=(fields, {} if extra is None else extra, {} if private is None else private),
        unseen=(chosen, extra is None, not private),
    )


def _pydantic_v1_members(plain: list[Any]) -> Parts:
    name, fields, chosen, private = plain
    return Parts(same=(name,), mappings=(fields, private), unseen=(chosen,))


class _ExceptionShape(PlainShape):
    opened_for_parts = 1

    def walk(self, walker: Walker, plain: Any, path: str) -> Any:
        where = (path, path, f"{path}.args", path, f"{path}.exceptions")
        return [walker.walk(*part) for part in zip(plain, where, strict=False)]

    def parts(self, plain: Any) -> Parts | None:
        if type(plain) is not list or len(plain) < 2:
            return None
        name, fields, *rest = plain
        return Parts(same=(name, *rest), mappings=(fields,))


OBJECT_KIND = add(
    Kind(
        OBJECT,
        "object",
        _reduce_object,
        _revive_object,
        Revives.NAMED_CLASS,
        PartsShape(_object_members, only_attributes=True),
    )
)
ENUM_KIND = add(Kind(ENUM, "enum", _reduce_enum, _revive_enum, Revives.NAMED_CLASS, WHOLE))
NAMED_TUPLE_KIND = add(
    Kind(
        NAMED_TUPLE,
        "namedtuple",
        _reduce_named_tuple,
        _revive_named_tuple,
        Revives.NAMED_CLASS,
        PartsShape(_named_tuple_members),
    )
)
EXCEPTION_KIND = add(
    Kind(
        EXCEPTION,
        "exception",
        _reduce_exception,
        _revive_exception,
        Revives.NAMED_CLASS,
        _ExceptionShape(),
    )
)
SUBCLASS_KIND = add(
    Kind(
        SUBCLASS,
        "subclass",
        _reduce_subclass,
        _revive_subclass,
        Revives.NAMED_CLASS,
        SubclassShape(),
    )
)
CLASS_KIND = add(
    Kind(CLASS, "class", _reduce_class, _revive_class, Revives.NAMED_CLASS, WHOLE), type
)
PYDANTIC_KIND = add(
    Kind(
        PYDANTIC,
        "pydantic",
        _reduce_pydantic,
        _revive_pydantic,
        Revives.NAMED_CLASS,
        PartsShape(_pydantic_members, only_attributes=True),
    )
)
PYDANTIC_V1_KIND = add(
    Kind(
        PYDANTIC_V1,
        "pydantic.v1",
        _reduce_pydantic_v1,
        _revive_pydantic_v1,
        Revives.NAMED_CLASS,
        PartsShape(_pydantic_v1_members, only_attributes=True),
    )
)
STRUCT_KIND = add(
    Kind(
        STRUCT,
        "msgspec",
        _reduce_struct,
        _revive_struct,
        Revives.NAMED_CLASS,
        PartsShape(_object_members),
    )
)


def kind_by_type(cls: type) -> Kind | None:
    """Return the kind of a class by what it is; None where its values cannot be kept."""
    try:
        return _kinds[cls]
    except KeyError:
        _kinds[cls] = kind = _classify(cls)
        return kind


def _classify(cls: type) -> Kind | None:
    if issubclass(cls, type):
        return CLASS_KIND
    if issubclass(cls, enum.Enum):
        return ENUM_KIND
    if class_attribute(cls, "__del__") is not None:
        return None
    if _has(cls, "__pydantic_fields__") or _has(cls, "__pydantic_core_schema__"):
        return PYDANTIC_KIND if _has(cls, "model_fields") else _if_made(OBJECT_KIND, object, cls)
    if _has(cls, "__fields_set__") and _has(cls, "__private_attributes__"):
        return PYDANTIC_V1_KIND
    if _is_struct(cls):
        return STRUCT_KIND
    if cls.__module__ == "zoneinfo" and cls.__name__ == "ZoneInfo":
        return standard.ZONE_INFO
    if issubclass(cls, BaseExceptionGroup):
        return _if_made(EXCEPTION_KIND, BaseExceptionGroup, cls, "", [Exception()])
    if issubclass(cls, BaseException):
        return _if_made(EXCEPTION_KIND, _native_base(cls), cls)
    if _is_named_tuple(cls):
        return _if_made(NAMED_TUPLE_KIND, tuple, cls)
    base = base_of(cls)
    if base is not None:
        return _if_made(SUBCLASS_KIND, base.cls, cls, *base.smallest)
    return _if_made(OBJECT_KIND, object, cls)


def _has(cls: type, name: str) -> bool:
    return class_attribute(cls, name) is not None


def _if_made(kind: Kind, base: Any, cls: type, *arguments: Any) -> Kind | None:
    """Return the kind, or None if the class has state in C, which ``__new__`` cannot make."""
    if not isinstance(class_attribute(cls, "__dict__"), (types.GetSetDescriptorType, type(None))):
        return None
    try:
        base.__new__(cls, *arguments)
    except TypeError:
        return None
    return kind


def _why_missing(cls: type | None) -> str:
    if cls is None:
        return "is not imported"
    if class_attribute(cls, "__del__") is not None:
        return "has a __del__ method, which data must not trigger"
    return "is a class of another kind now"


def _match(cls: type) -> Kind | None:
    kind = kind_by_type(cls)
    if kind is None and type(class_attribute(cls, "__del__")) is types.FunctionType:
        raise Unkeepable(
            "cannot be checkpointed: it has a __del__ method, which a restore must not trigger; "
            "exclude it or register_type(...)"
        )
    return kind


add_matcher(_match, last=True)  # numbers of numpy, dates of pandas are subclasses too
