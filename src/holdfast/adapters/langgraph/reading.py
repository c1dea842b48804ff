"""Reading what LangGraph's serializers wrote, without running what it names.

Left to itself, LangGraph's reader imports and calls whatever stored bytes name: ``os.system``, say.
So the names in a value are looked at first, and it is read only if each of them is allowed: types
that LangGraph lists as safe, those a user listed, and, where a user gave a serializer that lists
none, data classes of modules the program has imported. How a value is marked in the store never
decides which of these rules holds for it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from types import ModuleType
from typing import Any
from uuid import UUID

import ormsgpack
from langchain_core.load.mapping import SERIALIZABLE_MAPPING
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS as _SAFE_METHODS
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_METHOD_SINGLE_ARG,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)

from holdfast.adapters.langgraph.collisions import check_dicts, check_elements
from holdfast.core.class_names import class_attribute, find_class
from holdfast.core.value_paths import child_path
from holdfast.errors import InvalidArgumentError, SerializationError, UnknownTypeError

WHOLE, LIST, DICT = "whole", "list", "dict"
"""The shapes in which a value is sealed: at once, or the elements or items in pages."""

DEFAULT: SerializerProtocol = BaseCheckpointSaver.serde
"""The serializer of a saver that was given none: every saver without one has this very object."""

Allows = Callable[[str, str], bool | None]
"""Says of a module and a name in it whether values are made with it; None: they stay fields."""

_PLAIN_TAGS = frozenset({"null", "bytes", "bytearray"})
_SETS = (["builtins", "set"], ["builtins", "frozenset"])
_MAX_EXTENSIONS = 100
_MAX_CONTAINERS = 3000
"""How deep objects, and lists and dicts, may stand in each other: LangGraph's reader recurses."""
_NAMED_AT_ONCE = 10


def _remedy(pairs: Sequence[tuple[str, str]]) -> str:
    listed = ", ".join(map(repr, pairs))
    return (
        "allow it with a serializer of your own: "
        f"serde=JsonPlusSerializer(allowed_msgpack_modules=[{listed}])"
    )


@dataclass(frozen=True, slots=True)
class At:
    """Where sealed bytes belong: a value at a path, or a page of the list or dict that is there."""

    path: str
    shape: str = WHOLE
    offset: int = 0

    def parts(self, opened: Any) -> Iterator[tuple[Any, str]]:
        """What the bytes hold, by path."""
        if self.shape == WHOLE or not isinstance(opened, list):
            yield opened, self.path
            return
        for index, part in enumerate(opened, self.offset):
            if self.shape == LIST:
                yield part, f"{self.path}[{index}]"
            elif isinstance(part, list) and len(part) == 2:
                yield part[1], child_path(self.path, part[0])
            else:
                yield part, self.path


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets LangGraph's serializer read only what names nothing but what is allowed."""

    allows: Allows
    remedy: Callable[[Sequence[tuple[str, str]]], str] = _remedy

    def load(self, tag: str, data: bytes, at: At) -> Any:
        """The value; UnknownTypeError names the path of what is not allowed."""
        serde = _serde_for(self.check(tag, data, at))
        try:
            return serde.loads_typed((tag, data))
        except (NotImplementedError, ValueError, RecursionError) as error:
            raise SerializationError(at.path, f"cannot be read as {tag} ({error})") from error

    def check(self, tag: str, data: bytes, at: At) -> frozenset[tuple[str, str]]:
        """What a value names, if that is all allowed."""
        if tag in _PLAIN_TAGS:
            return frozenset()
        if tag not in ("msgpack", "json"):
            raise SerializationError(
                at.path,
                f"is sealed ({tag!r}): only the serializer it was written with reads it; "
                "give that one (serde=...)",
            )
        try:
            opened = _unpacked(data) if tag == "msgpack" else json.loads(data)
        except (ValueError, RecursionError) as error:
            raise SerializationError(at.path, f"is no {tag} that can be read ({error})") from error
        look = _Look(self.allows, tag == "json")
        if look.is_fine(opened):
            return frozenset(look.allowed)
        look.through(at.parts(opened))  # once more, with the path of each
        if look.refused:
            (pair, path), *_ = look.refused.items()
            raise UnknownTypeError(
                path,
                ":".join(pair),
                "is named by what was stored, and nobody has said that it may be",
                self.remedy([*look.refused][:_NAMED_AT_ONCE]),
            )
        return frozenset(look.allowed)


class _Look:
    """What is named in a value, found without making anything of it."""

    def __init__(self, allows: Allows, is_json: bool) -> None:
        self._allows = allows
        self._is_json = is_json
        self.allowed: set[tuple[str, str]] = set()
        self.refused: dict[tuple[str, str], str] = {}
        """Each with the path where it is first."""

    def is_fine(self, value: Any) -> bool:
        """Whether nothing in a value is refused, told as quickly as can be."""
        level, containers = [value], 0
        try:
            for _ in range(_MAX_EXTENSIONS):
                found: list[_Extension] = []
                while level:
                    containers += 1
                    if containers > _MAX_CONTAINERS:
                        return False
                    level = self._below(level, found)
                if not found:
                    return not self.refused
                for each in found:
                    level += [part for part, _ in self._inside(each, "$")]
        except SerializationError:
            pass  # it is told with its path
        return False

    def _below(self, level: list[Any], found: list[_Extension]) -> list[Any]:
        """What is in these lists and dicts; extensions are put with those found."""
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is list:
                below += value
            elif kind is dict:
                if self._is_json:
                    self._meet_json(value, "$")
                below += value.values()
            elif kind is _Extension:
                found.append(value)
        return below

    def through(self, parts: Iterable[tuple[Any, str]]) -> None:
        """Look at these values, each at its path, and at all that is in them."""
        self.refused.clear()
        # No recursion: what LangGraph's reader could not bear is refused here.
        ahead: list[tuple[Any, str, int, int]] = [(*part, 0, 0) for part in parts][::-1]
        while ahead:
            value, path, extensions, containers = ahead.pop()
            if extensions > _MAX_EXTENSIONS or containers > _MAX_CONTAINERS:
                raise SerializationError(path[:200], "is nested too deep to be read")
            inside: list[tuple[Any, str]] = []
            if type(value) is _Extension:
                inside = self._inside(value, path)
                extensions += 1
            elif type(value) is list:
                inside = [(part, f"{path}[{index}]") for index, part in enumerate(value)]
            elif type(value) is dict:
                if self._is_json:
                    self._meet_json(value, path)
                inside = [(part, child_path(path, key)) for key, part in value.items()]
            ahead += [(*part, extensions, containers + 1) for part in reversed(inside)]

    def _inside(self, found: _Extension, path: str) -> list[tuple[Any, str]]:
        """What an extension is made of."""
        try:
            plain = _unpacked(found.data)
            if type(plain) is list and plain[:2] in _SETS:
                check_elements(plain[2], _unpacked)
        except (ValueError, LookupError) as error:
            raise SerializationError(path, f"cannot be read ({error})") from error
        if found.code == EXT_DELTA_SNAPSHOT:
            return [(plain, path)]
        if found.code == EXT_NUMPY_ARRAY:
            _check_array(plain, path)
            return []
        if (
            not 0 <= found.code <= EXT_PYDANTIC_V2
            or type(plain) is not list
            or len(plain) < 3
            or not all(type(name) is str for name in plain[:2])
        ):
            raise SerializationError(path, f"is of no kind that is known (code {found.code})")
        module, name, content, *method = plain
        if found.code == EXT_METHOD_SINGLE_ARG and (module, name, *method) in _SAFE_METHODS:
            return [(content, path)]
        if found.code == EXT_METHOD_SINGLE_ARG:
            name = ".".join(map(str, (name, *method)))  # is on no list
        self._meet(module, name, path)
        return [(content, path)]

    def _meet_json(self, value: dict[str, Any], path: str) -> None:
        """Look at an object that LangChain or LangGraph may make something of."""
        form, kind = value.get("lc"), value.get("type")
        if form not in (1, 2) or kind not in ("constructor", "secret", "not_implemented"):
            return
        named = value.get("id")
        if type(named) is not list or not named or not all(type(part) is str for part in named):
            raise SerializationError(path, f"names no class (lc {kind}, id {named!r})")
        target = tuple(named)
        if form == 1:
            target = SERIALIZABLE_MAPPING.get(target, target)
        name = target[-1] if kind == "constructor" else f"{kind} {target[-1]}"
        self._meet(".".join(target[:-1]), name, path)

    def _meet(self, module: str, name: str, path: str) -> None:
        answer = self._allows(module, name)
        if answer:
            self.allowed.add((module, name))
        elif answer is False:
            self.refused.setdefault((module, name), path)


@dataclass(frozen=True, slots=True)
class _Extension:
    code: int
    data: bytes


def _unpacked(data: bytes) -> Any:
    try:
        return ormsgpack.unpackb(data, ext_hook=_Extension)
    except ValueError:  # a key that is no text, or no value at all
        check_dicts(data)
        return ormsgpack.unpackb(data, ext_hook=_Extension, option=ormsgpack.OPT_NON_STR_KEYS)


def plain_text(tag: str, data: bytes) -> str | None:
    """The text that a serializer of LangGraph's wrote; None where it wrote anything else."""
    opened = _unpacked(data) if tag == "msgpack" else None
    return opened if type(opened) is str else None


def _check_array(plain: Any, path: str) -> None:
    """Refuse an array that LangGraph would silently make None of."""
    import numpy

    try:
        kind, shape, order, data = plain
        numpy.frombuffer(data, numpy.dtype(kind)).reshape(shape, order=order)
    except (ValueError, TypeError) as error:
        raise SerializationError(path, f"is no array that can be read ({error})") from error


def is_safe(module: str, name: str) -> bool:
    """Whether LangGraph lists a type as safe: plain values, messages, its own."""
    return (module, name) in SAFE_MSGPACK_TYPES


def is_data_of_program(module: str, name: str) -> bool | None:
    """Whether it is safe, or a class of data that LangGraph writes, in a module that is imported.

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
    """Whether LangGraph writes the fields of such values, and makes them of those again."""
    return is_dataclass(cls) or any(class_attribute(cls, mark) is not None for mark in _MARKS)


_WRITTEN = (
    *(set, frozenset, deque, Enum, PurePath, UUID, Decimal),
    *(date, time, timedelta, tzinfo),
)
_MARKS = ("model_dump", "get_secret_value", "dict", "_asdict")
"""What a class has whose values LangGraph writes by its name."""

STRICT = Guard(is_safe)
"""Reads what a saver without a serializer has sealed."""


@lru_cache(64)
def _serde_for(named: frozenset[tuple[str, str]]) -> JsonPlusSerializer:
    """LangGraph's serializer, allowed these and no more."""
    others = named - SAFE_MSGPACK_TYPES
    return JsonPlusSerializer(
        allowed_msgpack_modules=others or None,
        allowed_json_modules=[(*module.split("."), name) for module, name in others] or None,
    )


def trusting(named: Collection[str | type]) -> Guard:
    """A guard that lets these classes through as well, each ``module:Class`` or a class.

    The modules are imported here, because the user names them; those that data name never are.
    """
    allowed = {_pair(each) for each in named}
    return Guard(
        lambda module, name: (module, name) in allowed or is_safe(module, name), _trust_remedy
    )


def _trust_remedy(pairs: Sequence[tuple[str, str]]) -> str:
    names = [":".join(pair) for pair in pairs]
    return f"if you trust it: {' '.join(f'--trust {n}' for n in names)}, or move_in(trust={names})"


def _pair(named: str | type) -> tuple[str, str]:
    """The module and name of a class that the user trusts, once it is there."""
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


def load(serde: Any, tag: str, data: bytes, at: At) -> Any:
    """A value as the serializer of a saver reads it, under the rules for that serializer."""
    if serde is DEFAULT:
        return STRICT.load(tag, data, at)
    if _is_plain(serde, EncryptedSerializer):
        if "+" in tag:
            inner, _, cipher = tag.partition("+")
            return load(serde.serde, inner, serde.cipher.decrypt(cipher, data), at)
        if _is_plain(serde.serde, JsonPlusSerializer):
            # No key was needed to write this, so it may be anybody's.
            return Guard(_listed(serde.serde, otherwise=False)).load(tag, data, at)
        return load(serde.serde, tag, data, at)
    if (
        not _is_plain(serde, JsonPlusSerializer)
        or serde._custom_unpack_ext_hook
        or (tag == "pickle" and serde.pickle_fallback)
        or (tag == "json" and serde._allowed_json_modules)
    ):
        return serde.loads_typed((tag, data))  # in a way that the user chose
    if serde._allowed_msgpack_modules is True:
        return Guard(is_data_of_program).load(tag, data, at)
    return Guard(_listed(serde, otherwise=None)).load(tag, data, at)


def _is_plain(serde: Any, kind: type) -> bool:
    """Whether it reads as LangGraph's class of that name does, and not in a way of its own."""
    return isinstance(serde, kind) and type(serde).loads_typed is kind.loads_typed  # type: ignore[attr-defined]


def _listed(serde: JsonPlusSerializer, otherwise: bool | None) -> Allows:
    """What is safe, or on the list that the user gave a serializer; of others their fields."""
    listed = serde._allowed_msgpack_modules
    allowed = listed if isinstance(listed, set) else set()
    return lambda module, name: (
        True if (module, name) in allowed or is_safe(module, name) else otherwise
    )
