"""The table of kinds: how a value that msgpack does not know becomes plain data, and back.

A kind turns an object into *plain* data (lists, dicts and scalars, whose elements may be values of
any kind again) and revives it from that. Its code is stored, so codes are never reused. Where a
class is named, plain data is ``[class name, main part, ...]``, so that it can be shown raw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.errors import InvalidArgumentError, SerializationError


class Reviver(Protocol):
    """What a kind may ask while it revives a value."""

    allow_pickle: bool

    def missing(self, code: int, plain: Any, why: str) -> Any:
        """Raise UnknownTypeError for ``plain[0]``, or give the raw stand-in if that was asked."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value: its stored code, its name in JSON documents, and both directions."""

    code: int
    name: str
    reduce: Callable[[Any], Any]
    revive: Callable[[Any, Reviver], Any]


class Ready:
    """A value already turned into a kind's plain data; only its bytes are still to be made.

    A kind may reduce a value to one of another kind, which knows what it does not.
    """

    __slots__ = ("code", "plain")

    def __init__(self, code: int, plain: Any) -> None:
        self.code = code
        self.plain = plain


class Unkeepable(Exception):
    """A value cannot be checkpointed; the encoder adds the path."""


def exactly(value: Any, *types: type) -> Any:
    """The value, if its type is one of these and no subclass of them.

    Stored data may hold any object anywhere, and a constructor would call its methods; or a range
    of 10**12, which ``tuple`` would write out.
    """
    if type(value) not in types:
        raise ValueError(f"{type(value).__name__} where {types[0].__name__} belongs")
    return value


def all_exactly(values: Any, *types: type) -> list[Any]:
    """A list, if that is what it is and all its elements are of these very types."""
    for value in exactly(values, list):
        exactly(value, *types)
    return values  # type: ignore[no-any-return]


by_code: dict[int, Kind] = {}
by_name: dict[str, Kind] = {}
by_type: dict[type, Kind] = {}
_matchers: list[Callable[[type], Kind | None]] = []
_last_matchers: list[Callable[[type], Kind | None]] = []
_found: dict[type, Kind] = {}
registered: dict[str, Registration] = {}


def add(kind: Kind, *types: type) -> Kind:
    """Enter a kind into the table, for exactly these types."""
    by_code[kind.code] = kind
    by_name[kind.name] = kind
    for cls in types:
        by_type[cls] = kind
    return kind


def add_matcher(match: Callable[[type], Kind | None], *, last: bool = False) -> None:
    """Ask this for the kind of a type that has no entry of its own; the first answer counts.

    One that knows a library's own types is asked before those (``last``) that take any class.
    """
    (_last_matchers if last else _matchers).append(match)


def kind_of(cls: type) -> Kind:
    """The kind that keeps values of this class; raises Unkeepable with the reason."""
    kind = by_type.get(cls) or _found.get(cls)
    if kind is None:
        for match in (*_matchers, *_last_matchers):
            kind = match(cls)
            if kind is not None:
                break
        else:
            raise Unkeepable("cannot be checkpointed; exclude it or register_type(...)")
        _found[cls] = kind
    return kind


@dataclass(frozen=True, slots=True)
class Registration:
    """What the user said of a class with register_type."""

    cls: type
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def register_type(
    cls: type,
    encode: Callable[[Any], Any],
    decode: Callable[[Any], Any],
    *,
    name: str | None = None,
) -> None:
    """Teach Holdfast to keep a class: ``encode`` gives plain data, ``decode`` makes it again.

    >>> from holdfast import register_type
    >>> class Celsius:
    ...     def __init__(self, degrees): self.degrees = degrees
    >>> register_type(Celsius, lambda c: c.degrees, Celsius, name="celsius")
    """
    if not isinstance(cls, type):
        raise InvalidArgumentError(f"register_type wants a class, not {cls!r}")
    if not callable(encode) or not callable(decode):
        raise InvalidArgumentError(
            f"register_type({cls.__qualname__}): encode and decode are functions"
        )
    key = name or f"{cls.__module__}:{cls.__qualname__}"
    known = registered.get(key)
    if known is not None and (known.cls.__module__, known.cls.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise InvalidArgumentError(f"the name {key!r} is registered for {known.cls.__qualname__}")
    registered[key] = Registration(cls, encode, decode)
    by_type[cls] = Kind(
        REGISTERED, "registered", lambda value: [key, encode(value)], by_code[REGISTERED].revive
    )
    _found.clear()


def _revive_registered(plain: Any, reader: Reviver) -> Any:
    key, data = exactly(plain, list)
    registration = registered.get(exactly(key, str))
    if registration is None:
        return reader.missing(
            REGISTERED, plain, "was registered with register_type where it was saved"
        )
    try:
        return registration.decode(data)
    except Exception as error:
        raise SerializationError("$", f"the decode function of {key} failed: {error!r}") from error


REGISTERED = 30
add(Kind(REGISTERED, "registered", lambda value: value, _revive_registered))
