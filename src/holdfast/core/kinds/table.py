"""The table of kinds: how a value that msgpack does not know becomes plain data, and back.

A kind turns an object into *plain* data (lists, dicts and scalars, whose elements may be values of
any kind again) and revives it from that. Its code is stored, so codes are never reused. Where a
class is named, plain data is ``[class name, main part, ...]``, so that it can be shown raw.

Whatever else must be known of a kind is said where it is made: there is no other list of kinds.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from holdfast.core.kinds.plain_shapes import WHOLE, PlainShape
from holdfast.errors import InvalidArgumentError, SerializationError


class Reviver(Protocol):
    """What a kind may ask while it revives a value."""

    def missing(self, code: int, plain: Any, why: str) -> Any:
        """Raise UnknownTypeError for ``plain[0]``, or give the raw stand-in if that was asked."""


class Revives(enum.Enum):
    """What comes of the stored data of a kind, by which a reader decides whether to revive it."""

    OWN_TYPES = "a value of types that the kind itself knows, whatever the data says"
    NAMED_CLASS = "a value of the class that the data names first: only if that is trusted"
    ANYTHING = "whatever the data asks for, by running it: only where the reader allows pickle"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value: its stored code, its name in JSON documents, and all that holds for it."""

    code: int
    name: str
    reduce: Callable[[Any], Any]
    revive: Callable[[Any, Reviver], Any]
    revives: Revives
    shape: PlainShape


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
    """Return the value, if its type is one of these and no subclass of them.

    Stored data may hold any object anywhere, and a constructor would call its methods; or a range
    of 10**12, which ``tuple`` would write out.
    """
    if type(value) not in types:
        raise ValueError(f"{type(value).__name__} where {types[0].__name__} belongs")
    return value


def all_exactly(values: Any, *types: type) -> list[Any]:
    """Return a list, if that is what it is and all its elements are of these very types."""
    for value in exactly(values, list):
        exactly(value, *types)
    return values  # type: ignore[no-any-return]


LAST_CODE = 63
"""Codes above it say how chunks refer to each other; below 1, msgpack has its own."""
JSON_WORDS = frozenset({"bytes", "utf8", "float", "escaped"})
"""What the JSON form calls values that msgpack knows and JSON does not."""

by_code: dict[int, Kind] = {}
by_name: dict[str, Kind] = {}
by_type: dict[type, Kind] = {}
bytes_codes: set[int] = set()
"""The codes of kinds whose shape is bytes; looked at for every value."""
_matchers: list[Callable[[type], Kind | None]] = []
_last_matchers: list[Callable[[type], Kind | None]] = []
_found: dict[type, Kind] = {}
registered: dict[str, Registration] = {}


def add(kind: Kind, *types: type) -> Kind:
    """Enter a kind into the table, for exactly these types; nothing that is there is replaced."""
    _check_properties(kind)
    for taken in (by_code.get(kind.code), by_name.get(kind.name)):
        if taken is not None:
            raise InvalidArgumentError(
                f"the kind {kind.name!r} cannot have the code {kind.code}: the kind {taken.name!r} "
                f"has the code {taken.code}, and stored data relies on it; take another code and "
                "name"
            )
    for cls in types:
        if cls in by_type:
            raise InvalidArgumentError(
                f"{cls.__qualname__} is of the kind {by_type[cls].name!r} already, not of "
                f"{kind.name!r}: a type is of one kind"
            )
    by_code[kind.code] = kind
    by_name[kind.name] = kind
    if kind.shape.is_bytes:
        bytes_codes.add(kind.code)
    for cls in types:
        by_type[cls] = kind
    return kind


def _check_properties(kind: Kind) -> None:
    if type(kind.code) is not int or not 1 <= kind.code <= LAST_CODE:
        raise InvalidArgumentError(
            f"the kind {kind.name!r} cannot have the code {kind.code!r}: codes are whole numbers "
            f"from 1 to {LAST_CODE}"
        )
    if type(kind.name) is not str or not kind.name or kind.name in JSON_WORDS:
        raise InvalidArgumentError(
            f"a kind cannot be called {kind.name!r}: its name is what JSON documents call it, and "
            f"{', '.join(sorted(JSON_WORDS))} are taken"
        )
    if not isinstance(kind.revives, Revives) or not isinstance(kind.shape, PlainShape):
        raise InvalidArgumentError(
            f"the kind {kind.name!r} does not say what it revives (a Revives) and what its plain "
            "data looks like (a PlainShape)"
        )


def shape_of(code: int) -> PlainShape:
    """Return what plain data of a code looks like; of a code that is not known, nothing is."""
    kind = by_code.get(code)
    return WHOLE if kind is None else kind.shape


def add_matcher(match: Callable[[type], Kind | None], *, last: bool = False) -> None:
    """Ask this for the kind of a type that has no entry of its own; the first answer counts.

    One that knows a library's own types is asked before those (``last``) that take any class.
    """
    (_last_matchers if last else _matchers).append(match)


def kind_of(cls: type) -> Kind:
    """Return the kind that keeps values of this class; raise Unkeepable with the reason."""
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
    decode: Callable[[Any], Any]
    by: str
    """The module that said it."""


def register_type(
    cls: type,
    encode: Callable[[Any], Any],
    decode: Callable[[Any], Any],
    *,
    name: str | None = None,
) -> None:
    """Teach Holdfast to keep a class: ``encode`` gives plain data, ``decode`` makes it again.

    A module may register its class again, as when it is reloaded; a class that another module has
    registered, or that Holdfast keeps itself, is refused.

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
    if name is not None and (type(name) is not str or not name):
        raise InvalidArgumentError(f"register_type({cls.__qualname__}): name is text, not {name!r}")
    key = name or f"{cls.__module__}:{cls.__qualname__}"
    caller = str(sys._getframe(1).f_globals.get("__name__"))
    _refuse_taken(cls, key, caller)
    registered[key] = Registration(cls, decode, caller)
    by_type[cls] = replace(by_code[REGISTERED], reduce=lambda value: [key, encode(value)])
    _found.clear()


def _is_kept_itself(cls: type) -> bool:
    """Return whether Holdfast knows the type, and not only how to keep objects of any class."""
    if cls in _NATIVE or cls in by_type:
        return cls in _NATIVE or by_type[cls].code != REGISTERED
    try:
        return kind_of(cls).revives is Revives.OWN_TYPES
    except Unkeepable:
        return False


def _refuse_taken(cls: type, key: str, caller: str) -> None:
    known = registered.get(key)
    if known is not None and _home(known.cls) != _home(cls):
        raise InvalidArgumentError(
            f"the name {key!r} is registered for {known.cls.__qualname__} of "
            f"{known.cls.__module__}, and what is saved under it is of that: give another name="
        )
    if _is_kept_itself(cls):
        raise InvalidArgumentError(
            f"{cls.__qualname__} is kept by Holdfast itself: register a class of yours that holds "
            "or extends it"
        )
    for other in registered.values():
        if other.cls is cls and other.by != caller:
            raise InvalidArgumentError(
                f"{'.'.join(_home(cls))} is registered by {other.by} already, and now by {caller}: "
                "one class is kept in one way; remove one of the two register_type(...)"
            )


_NATIVE = (type(None), bool, float, bytes, list)
"""What msgpack knows, so that no kind is asked. The others of these have kinds for rare values."""


def _home(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def _revive_registered(plain: Any, reviver: Reviver) -> Any:
    key, data = exactly(plain, list)
    registration = registered.get(exactly(key, str))
    if registration is None:
        return reviver.missing(
            REGISTERED, plain, "was registered with register_type where it was saved"
        )
    try:
        return registration.decode(data)
    except Exception as error:
        raise SerializationError("$", f"the decode function of {key} failed: {error!r}") from error


REGISTERED = 30
add(
    Kind(
        REGISTERED,
        "registered",
        lambda value: value,
        _revive_registered,
        Revives.NAMED_CLASS,
        WHOLE,
    )
)
