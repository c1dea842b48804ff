"""What the bytes that LangGraph's serializers wrote name, found without making anything of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import ormsgpack
from langchain_core.load.mapping import SERIALIZABLE_MAPPING
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS as _SAFE_METHODS
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_METHOD_SINGLE_ARG,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V2,
)

from holdfast.adapters.langgraph.msgpack_keys import check_dicts, check_elements
from holdfast.core.value_paths import child_path
from holdfast.errors import SerializationError

Allows = Callable[[str, str], bool | None]
"""Says of a module and a name in it whether values are made with it; None: they stay fields."""

_SETS = (["builtins", "set"], ["builtins", "frozenset"])
_MAX_EXTENSIONS = 100
_MAX_CONTAINERS = 3000
"""How deep objects, and lists and dicts, may stand in each other: LangGraph's reader recurses."""


@dataclass(frozen=True, slots=True)
class _Extension:
    code: int
    data: bytes


def opened(tag: str, data: bytes) -> Any:
    """Return what bytes hold, with extensions closed; ValueError or RecursionError if nothing."""
    return _unpacked(data) if tag == "msgpack" else json.loads(data)


def _unpacked(data: bytes) -> Any:
    try:
        return ormsgpack.unpackb(data, ext_hook=_Extension)
    except ValueError:  # a key that is no text, or no value at all
        check_dicts(data)
        return ormsgpack.unpackb(data, ext_hook=_Extension, option=ormsgpack.OPT_NON_STR_KEYS)


def plain_text(tag: str, data: bytes) -> str | None:
    """Return the text that a serializer of LangGraph's wrote; None where it wrote anything else."""
    found = _unpacked(data) if tag == "msgpack" else None
    return found if type(found) is str else None


class NamedTypes:
    """The types that are named in a value, told apart by whether they are allowed."""

    def __init__(self, allows: Allows, is_json: bool) -> None:
        self._allows = allows
        self._is_json = is_json
        self.allowed: set[tuple[str, str]] = set()
        self.refused: dict[tuple[str, str], str] = {}
        """Each with the path where it is first."""

    def is_fine(self, value: Any) -> bool:
        """Return whether nothing in a value is refused, as quickly as that can be told."""
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
        """Return what is in these lists and dicts; extensions are put with those found."""
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
        """Return what an extension is made of, and meet the type it names."""
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
        """Meet the type of an object that LangChain or LangGraph may make something of."""
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


def _check_array(plain: Any, path: str) -> None:
    """Refuse an array that LangGraph would silently make None of."""
    import numpy

    try:
        kind, shape, order, data = plain
        numpy.frombuffer(data, numpy.dtype(kind)).reshape(shape, order=order)
    except (ValueError, TypeError) as error:
        raise SerializationError(path, f"is no array that can be read ({error})") from error
