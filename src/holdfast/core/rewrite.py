"""The slow road of the encoder: walks a value in Python, rewriting what msgpack cannot take.

It is also where an error gets its path, and where circular references are found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack

from holdfast.core import basics
from holdfast.core.kinds import Unkeepable
from holdfast.errors import SerializationError

if TYPE_CHECKING:
    from holdfast.core.codec import Packer

MAX_DEPTH = 250

_as_they_are = frozenset({type(None), bool, float, bytes, ormsgpack.Ext, ormsgpack.Fragment})


def child_path(path: str, key: object) -> str:
    """The path of a dict's value: ``$.name`` where the key reads as a name, else ``$['a b']``."""
    if type(key) is str and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{_short(key)}]"


def _short(key: object) -> str:
    text = repr(key)
    return text if len(text) <= 60 else text[:57] + "..."


def rewrite(value: Any, packer: Packer, path: str = "$") -> Any:
    """The value with everything that msgpack cannot take turned into Ready extensions."""
    try:
        return _Rewriter(packer).walk(value, path)
    except RecursionError:
        raise SerializationError(path, "is nested too deep to be checkpointed") from None


class _Rewriter:
    def __init__(self, packer: Packer) -> None:
        self.packer = packer
        self.open: dict[int, str] = {}
        self.kinds = 0

    def walk(self, value: Any, path: str) -> Any:
        from holdfast.core.codec import MAX_NESTING, Ready

        cls = type(value)
        if cls in _as_they_are:
            return value
        if cls is int:
            return value if -(2**63) <= value < 2**64 else Ready(*self.packer.reduce(value))
        if cls is str:
            return value if _is_utf8(value) else Ready(*self.packer.reduce(value))
        if id(value) in self.open:
            raise SerializationError(
                path, f"is a circular reference to {self.open[id(value)]}; break the cycle or exclude it"
            )
        if len(self.open) >= MAX_DEPTH or self.kinds >= MAX_NESTING:
            raise SerializationError(
                f"{path[:80]}…", f"is nested too deep to be checkpointed (over {MAX_DEPTH} levels)"
            )
        self.open[id(value)] = path
        try:
            if cls is list:
                return [self.walk(part, f"{path}[{i}]") for i, part in enumerate(value)]
            if cls is dict:
                return self._dict(value, path)
            return self._object(value, path)
        finally:
            del self.open[id(value)]

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        from holdfast.core.codec import Ready

        if all(type(key) is str and _is_utf8(key) for key in value):
            return {key: self.walk(part, child_path(path, key)) for key, part in value.items()}
        pairs = []
        for key, part in value.items():
            pairs.append(self.walk(key, f"{path}<key {_short(key)}>"))
            pairs.append(self.walk(part, child_path(path, key)))
        return Ready(basics.PAIRS, pairs)

    def _object(self, value: Any, path: str) -> Any:
        from holdfast.core.codec import Ready

        cls = type(value)
        try:
            code, plain = self.packer.reduce(value)
        except Unkeepable as why:
            name = f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ != "builtins" else cls.__name__
            reason = str(why)
            raise SerializationError(
                path, f"{name} {reason}" if reason.startswith("cannot") else f"{name}: {reason}"
            ) from why
        self.kinds += 1
        try:
            if cls is set or cls is frozenset:
                # Elements are put in order by their bytes, which for odd ones only now exist.
                parts = [self.walk(part, f"{path}{{{_short(part)}}}") for part in plain]
                return Ready(code, sorted(parts, key=self.packer.pack))
            return Ready(code, self._plain(code, plain, path))
        finally:
            self.kinds -= 1

    def _plain(self, code: int, plain: Any, path: str) -> Any:
        """Walk a kind's plain data so that paths read as the user's attributes and elements."""
        if type(plain) is bytes:
            return plain
        if type(plain) is list:
            return [
                self.walk(part, path if isinstance(part, (dict, list)) else f"{path}[{i}]")
                for i, part in enumerate(plain)
            ]
        return self.walk(plain, path)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
