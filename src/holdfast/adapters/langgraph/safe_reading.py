"""Reading what LangGraph's serializers wrote, without running what it names.

Left to itself, LangGraph's reader imports and calls whatever stored bytes name: ``os.system``, say.
So the names in a value are looked at first, and it is read only if each of them is allowed: types
that LangGraph lists as safe, those a user listed, and, where a user gave a serializer that lists
none, data classes of modules the program has imported. How a value is marked in the store never
decides which of these rules holds for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast.adapters.langgraph.allowed_types import (
    is_data_of_program,
    is_safe,
    safe_or_listed,
    safe_or_named,
)
from holdfast.adapters.langgraph.named_types import Allows, NamedTypes, opened
from holdfast.core.value_paths import child_path
from holdfast.errors import SerializationError, UnknownTypeError

WHOLE, LIST, DICT = "whole", "list", "dict"
"""The shapes in which a value is sealed: at once, or the elements or items in pages."""

DEFAULT: SerializerProtocol = BaseCheckpointSaver.serde
"""The serializer of a saver that was given none: every saver without one has this very object."""

_PLAIN_TAGS = frozenset({"null", "bytes", "bytearray"})
_NAMED_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class SealedPath:
    """Where sealed bytes belong: a value at a path, or a page of the list or dict that is there."""

    path: str
    shape: str = WHOLE
    offset: int = 0

    def parts(self, held: Any) -> Iterator[tuple[Any, str]]:
        """Yield what the bytes hold, each with its path."""
        if self.shape == WHOLE or not isinstance(held, list):
            yield held, self.path
            return
        for index, part in enumerate(held, self.offset):
            if self.shape == LIST:
                yield part, f"{self.path}[{index}]"
            elif isinstance(part, list) and len(part) == 2:
                yield part[1], child_path(self.path, part[0])
            else:
                yield part, self.path


def _list_it(pairs: Sequence[tuple[str, str]]) -> str:
    """Return how a saver's user allows these types."""
    listed = ", ".join(map(repr, pairs))
    return (
        "allow it with a serializer of your own: "
        f"serde=JsonPlusSerializer(allowed_msgpack_modules=[{listed}])"
    )


def _trust_it(pairs: Sequence[tuple[str, str]]) -> str:
    """Return how these types are allowed for a move."""
    names = [":".join(pair) for pair in pairs]
    return f"if you trust it: {' '.join(f'--trust {n}' for n in names)}, or move_in(trust={names})"


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets LangGraph's serializer read only what names nothing but what is allowed."""

    allows: Allows
    remedy: Callable[[Sequence[tuple[str, str]]], str] = _list_it

    def load(self, tag: str, data: bytes, at: SealedPath) -> Any:
        """Return the value; UnknownTypeError names the path of what is not allowed."""
        serde = _serde_for(self.check(tag, data, at))
        try:
            return serde.loads_typed((tag, data))
        except (NotImplementedError, ValueError, RecursionError) as error:
            raise SerializationError(at.path, f"cannot be read as {tag} ({error})") from error

    def check(self, tag: str, data: bytes, at: SealedPath) -> frozenset[tuple[str, str]]:
        """Return what a value names, if that is all allowed."""
        if tag in _PLAIN_TAGS:
            return frozenset()
        if tag not in ("msgpack", "json"):
            raise SerializationError(
                at.path,
                f"is sealed ({tag!r}): only the serializer it was written with reads it; "
                "give that one (serde=...)",
            )
        try:
            held = opened(tag, data)
        except (ValueError, RecursionError) as error:
            raise SerializationError(at.path, f"is no {tag} that can be read ({error})") from error
        named = NamedTypes(self.allows, tag == "json")
        if named.is_fine(held):
            return frozenset(named.allowed)
        named.through(at.parts(held))  # once more, with the path of each
        if named.refused:
            (pair, path), *_ = named.refused.items()
            raise UnknownTypeError(
                path,
                ":".join(pair),
                "is named by what was stored, and nobody has said that it may be",
                self.remedy([*named.refused][:_NAMED_AT_ONCE]),
            )
        return frozenset(named.allowed)


STRICT = Guard(is_safe)
"""Reads what a saver without a serializer has sealed."""


def trusting(named: Collection[str | type]) -> Guard:
    """Return a guard that lets these classes through as well, each ``module:Class`` or a class."""
    return Guard(safe_or_named(named), _trust_it)


@lru_cache(64)
def _serde_for(named: frozenset[tuple[str, str]]) -> JsonPlusSerializer:
    """Return LangGraph's serializer, allowed these and no more."""
    others = named - SAFE_MSGPACK_TYPES
    return JsonPlusSerializer(
        allowed_msgpack_modules=others or None,
        allowed_json_modules=[(*module.split("."), name) for module, name in others] or None,
    )


def load(serde: Any, tag: str, data: bytes, at: SealedPath) -> Any:
    """Return a value as the serializer of a saver reads it, under the rules for that serializer."""
    if serde is DEFAULT:
        return STRICT.load(tag, data, at)
    if _is_plain(serde, EncryptedSerializer):
        if "+" in tag:
            inner, _, cipher = tag.partition("+")
            return load(serde.serde, inner, serde.cipher.decrypt(cipher, data), at)
        if _is_plain(serde.serde, JsonPlusSerializer):
            # No key was needed to write this, so it may be anybody's.
            return Guard(safe_or_listed(serde.serde, otherwise=False)).load(tag, data, at)
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
    return Guard(safe_or_listed(serde, otherwise=None)).load(tag, data, at)


def _is_plain(serde: Any, kind: type) -> bool:
    """Return whether it reads as LangGraph's class of that name does, not in a way of its own."""
    return isinstance(serde, kind) and type(serde).loads_typed is kind.loads_typed  # type: ignore[attr-defined]
