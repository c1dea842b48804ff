"""The slow road of the encoder: walks a value in Python, rewriting what msgpack cannot take.

It is also where an error gets its path, and where circular references are found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack

from holdfast.core.kinds import Ready, Unkeepable, shape_of, standard
from holdfast.core.raw import Raw
from holdfast.core.value_paths import child_path, short_key
from holdfast.errors import SerializationError

if TYPE_CHECKING:
    from holdfast.core.codec import Packer

MAX_DEPTH = 250

_as_they_are = frozenset({type(None), bool, float, bytes, ormsgpack.Ext, ormsgpack.Fragment})


def rewrite(value: Any, packer: Packer, path: str = "$") -> Any:
    """Return the value with everything that msgpack cannot take turned into Ready extensions."""
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
        cls = type(value)
        if cls in _as_they_are:
            return value
        if cls is int:
            return value if -(2**63) <= value < 2**64 else self._object(value, path)
        if cls is str:
            return value if _is_utf8(value) else self._object(value, path)
        if id(value) in self.open:
            first = self.open[id(value)]
            raise SerializationError(
                path, f"is a circular reference to {first}; break the cycle or exclude it"
            )
        if len(self.open) >= MAX_DEPTH:
            raise _too_deep(path, f"over {MAX_DEPTH} levels")
        self.open[id(value)] = path
        try:
            if cls is list:
                return self.walk_list(value, path)
            if cls is dict:
                return self._dict(value, path)
            return self._object(value, path)
        finally:
            del self.open[id(value)]

    def walk_list(self, value: list[Any], path: str) -> list[Any]:
        return [self.walk(part, f"{path}[{i}]") for i, part in enumerate(value)]

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        if all(type(key) is str and _is_utf8(key) for key in value):
            return {key: self.walk(part, child_path(path, key)) for key, part in value.items()}
        self._enter_kind(path)
        pairs = self.walk_pairs(self._reduced(value, path)[1], path)
        self.kinds -= 1
        return Ready(standard.PAIRS, pairs)

    def walk_pairs(self, pairs: list[Any], path: str) -> list[Any]:
        walked = []
        for key, part in zip(pairs[::2], pairs[1::2], strict=True):
            walked.append(self.walk(key, f"{path}<key {short_key(key)}>"))
            walked.append(self.walk(part, child_path(path, key)))
        return walked

    def _enter_kind(self, path: str) -> None:
        from holdfast.core.codec import MAX_NESTING

        if self.kinds >= MAX_NESTING:
            raise _too_deep(path, f"over {MAX_NESTING} objects within each other")
        self.kinds += 1

    def _object(self, value: Any, path: str) -> Any:
        self._enter_kind(path)
        code, plain = self._reduced(value, path)
        plain = shape_of(code).walk(self, plain, path)
        self.kinds -= 1
        return Ready(code, plain)

    def _reduced(self, value: Any, path: str) -> tuple[int, Any]:
        cls = type(value)
        name = (
            cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
        )
        try:
            self.packer.rewriting = True
            return self.packer.reduce(value, ordered=False)
        except Unkeepable as why:
            reason = str(why)
            between = " " if reason.startswith("cannot") else ": "
            raise SerializationError(path, f"{name}{between}{reason}") from why
        except RecursionError:
            raise
        except Exception as error:
            raise SerializationError(
                path, f"{name} could not be read ({error!r}); exclude it or register_type(...)"
            ) from error
        finally:
            self.packer.rewriting = False

    def walk_elements(self, plain: list[Any], path: str) -> list[Any]:
        walked = [self.walk(part, f"{path}{{{short_key(part)}}}") for part in plain]
        return sorted(walked, key=self.packer.pack)


class _FoundAt(Exception):
    """Where the value is that was looked for."""


class _Finder(_Rewriter):
    def __init__(self, packer: Packer, type_name: str) -> None:
        super().__init__(packer)
        self.type_name = type_name

    def walk(self, value: Any, path: str) -> Any:
        if type(value) is Raw and value.type_name == self.type_name:
            raise _FoundAt(path)
        return super().walk(value, path)


def path_of_raw(value: Any, type_name: str) -> str:
    """Return the path of the first stand-in for a class of that name."""
    from holdfast.core.codec import Packer

    try:
        _Finder(Packer(allow_pickle=True), type_name).walk(value, "$")
    except _FoundAt as found:
        return str(found)
    return "$"


def _too_deep(path: str, how: str) -> SerializationError:
    return SerializationError(f"{path[:80]}…", f"is nested too deep to be checkpointed ({how})")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
