"""Values to bytes and back, types kept exactly.

Plain values go through msgpack in C. Anything else becomes a msgpack extension: the code of its
kind and its plain data, packed the same way. What msgpack would refuse or quietly alter (lone
surrogates, keys that are not strings, bytearrays) is found first and rewritten in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import ormsgpack

from holdfast.core.hooked_unpacker import HookedUnpacker
from holdfast.core.kinds import (
    Kind,
    Ready,
    Revives,
    Unkeepable,
    by_code,
    bytes_codes,
    exactly,
    kind_of,
)
from holdfast.core.kinds.pickled import PICKLE, stable_pickle
from holdfast.core.raw import Raw
from holdfast.errors import CheckpointIntegrityError, SerializationError, UnknownTypeError

OnUnknown = Literal["raise", "raw"]
Trusts = Callable[[str], bool]
"""Says of a class, as ``module:qualified.name``, whether its values may be revived."""

MAX_NESTING = 100
"""Objects within objects; lists and dicts alone may nest 250 deep."""

_QUICK_NESTING = 16
"""Objects within objects that are packed without looking at the depth of all that is in them."""

_PACK = (
    ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


class Packer:
    """Packs values; one per thread of work."""

    __slots__ = (
        *("_depth", "_depth_allowed", "_interrupt", "_trusting"),
        *("allow_pickle", "rewriting", "saw_bytes"),
    )

    def __init__(self, allow_pickle: bool = False) -> None:
        self.allow_pickle = allow_pickle
        self.saw_bytes = False
        """Set when bytes, or what msgpack takes for bytes, were among the values packed."""
        self.rewriting = False
        """Set while a value is rewritten, which puts the elements of sets in order itself."""
        self._depth = 0
        self._depth_allowed = _QUICK_NESTING
        self._trusting = False
        self._interrupt: BaseException | None = None

    def pack_trusting(self, value: Any) -> bytes:
        """Pack, but take a bytearray for bytes: only good for comparing."""
        self._trusting = True
        try:
            return self.pack(value)
        finally:
            self._trusting = False

    def pack(self, value: Any) -> bytes:
        """Return the bytes of a value; SerializationError names the path of what cannot be kept."""
        try:
            data = ormsgpack.packb(value, self._extension, _PACK)
            if self._trusting or not _may_hold_bytes(data):
                return data
            types = _bytes_types(value)
            if types:
                self.saw_bytes = True
            if types <= {bytes}:
                return data
        except (TypeError, ValueError, RecursionError):
            self._raise_interrupt()
            if self._depth:
                raise  # only the outermost call knows the whole value, and so the path
        else:
            if self._depth:
                raise TypeError("a buffer has to be rewritten")
        return self._pack_rewritten(value)

    def _pack_rewritten(self, value: Any) -> bytes:
        from holdfast.core.rewrite import rewrite

        self._depth = 0
        self._depth_allowed = MAX_NESTING  # rewriting looks at the whole depth
        try:
            return ormsgpack.packb(rewrite(value, self), self._extension, _PACK)
        except (TypeError, ValueError, RecursionError) as error:
            self._raise_interrupt()
            if isinstance(error, SerializationError):
                raise
            raise SerializationError("$", f"cannot be checkpointed ({error})") from error
        finally:
            self._depth_allowed = _QUICK_NESTING

    def reduce(self, value: Any, ordered: bool = True) -> tuple[int, Any]:
        """Return the code and plain data of a value that msgpack does not know.

        The elements of a set are put in order, unless the caller does that.
        """
        cls = type(value)
        if cls is Ready:
            return value.code, value.plain
        if cls is Raw:
            return value.reduced()  # type: ignore[no-any-return]
        try:
            kind = kind_of(cls)
            plain = kind.reduce(value)
        except Unkeepable:
            if not self.allow_pickle:
                raise
            return PICKLE, stable_pickle(value)
        if type(plain) is Ready:
            return plain.code, plain.plain
        if ordered and kind.shape.may_be_unordered:
            elements = kind.shape.unordered(plain)
            if elements is not None:
                self._put_in_order(elements)
        return kind.code, plain

    def _put_in_order(self, elements: list[Any]) -> None:
        """Order the elements of a set by their bytes, whatever order the set has them in."""
        if self._depth:
            # Each element is packed once, for its place and for its bytes alike.
            elements[:] = map(ormsgpack.Fragment, sorted(map(self.pack, elements)))
        elif not self.rewriting:
            elements.sort(key=self.pack)

    def _extension(self, value: Any) -> ormsgpack.Ext:
        self._depth += 1
        try:
            if self._depth > self._depth_allowed:
                raise RecursionError
            code, plain = self.reduce(value)
            data = plain if code in bytes_codes else self.pack(plain)
            return ormsgpack.Ext(code, data)
        except BaseException as error:
            if not isinstance(error, Exception):  # an interrupt, which msgpack would hide
                self._interrupt = error
            raise
        finally:
            self._depth -= 1

    def _raise_interrupt(self) -> None:
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt


def _may_hold_bytes(data: bytes) -> bool:
    return b"\xc4" in data or b"\xc5" in data or b"\xc6" in data


def _bytes_types(value: Any) -> set[type]:
    """Return which of bytes, bytearray and memoryview are among plain lists and dicts.

    msgpack writes all three as bytes.
    """
    seen: set[type] = set()
    level = [value]
    while level:
        types = set(map(type, level))
        seen |= types
        below: list[Any] = []
        if list in types:
            for part in level:
                if type(part) is list:
                    below += part
        if dict in types:
            for part in level:
                if type(part) is dict:
                    below += part.values()
        level = below
    return seen & {bytes, bytearray, memoryview}


_OWN_TYPES, _NAMED_CLASS = Revives.OWN_TYPES, Revives.NAMED_CLASS


class Unpacker(HookedUnpacker):
    """Revives values under the safety rules; ``extra`` adds extension codes (chunks)."""

    __slots__ = ("allow_pickle", "extra", "on_unknown", "trusts")

    def __init__(
        self,
        on_unknown: OnUnknown = "raise",
        allow_pickle: bool = False,
        extra: Callable[[int, bytes], Any] | None = None,
        trusts: Trusts | None = None,
    ) -> None:
        super().__init__()
        self.on_unknown = on_unknown
        self.trusts = trusts
        self.allow_pickle = allow_pickle
        self.extra = extra

    def missing(self, code: int, plain: Any, why: str) -> Any:
        """Raise, or give the stand-in, as Reviver.missing says."""
        if self.on_unknown == "raw":
            return Raw(code, plain)
        raise UnknownTypeError("$", exactly(plain[0], str), why)

    def meet(self, code: int, data: bytes) -> Any:
        """Return the value of an extension, of the kind that has its code."""
        kind = by_code.get(code)
        if kind is not None:
            plain = data if code in bytes_codes else self.unpack(data)
            return self._checked(kind, plain)
        if self.extra is not None:
            return self.extra(code, data)
        raise CheckpointIntegrityError(None, f"unknown kind of value {code}")

    def _checked(self, kind: Kind, plain: Any) -> Any:
        try:
            if kind.revives is _NAMED_CLASS:
                if self.trusts is not None and not self.trusts(exactly(plain[0], str)):
                    return Raw(kind.code, plain)
            elif kind.revives is not _OWN_TYPES and not self.allow_pickle:
                raise _pickled(kind)
            return kind.revive(plain, self)
        except (CheckpointIntegrityError, SerializationError, MemoryError):
            raise
        except Exception as error:
            raise CheckpointIntegrityError(
                None, f"{kind.name} does not fit its data ({error})"
            ) from error


def _pickled(kind: Kind) -> SerializationError:
    return SerializationError(
        "$",
        f"a value of the kind {kind.name} is only loaded where the client was opened with "
        "allow_pickle=True",
    )


def pack(value: Any, allow_pickle: bool = False) -> bytes:
    """Return the bytes of a value, types kept exactly.

    >>> from holdfast.core.codec import pack, unpack
    >>> unpack(pack({"when": (1, 2.0)}))
    {'when': (1, 2.0)}
    """
    return Packer(allow_pickle).pack(value)


def unpack(data: bytes, on_unknown: OnUnknown = "raise", allow_pickle: bool = False) -> Any:
    """Return the value of packed bytes; loads no module and calls nothing that the bytes name."""
    return Unpacker(on_unknown, allow_pickle).unpack(data)
