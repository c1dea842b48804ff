"""Reading the JSON form of values; ``holdfast.core.json_form`` says what it looks like."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from typing import Any

from holdfast.core.codec import OnUnknown, Unpacker
from holdfast.core.kinds import Kind, Ready, by_name
from holdfast.core.value_paths import child_path
from holdfast.errors import CheckpointIntegrityError, SerializationError, UnknownTypeError

TAG = "$type"
MAX_LEVELS = 500
"""Lists, dicts and objects within each other."""


class JsonFormReader(Unpacker):
    """JSON data to values. The trail says where in the value the reader is."""

    __slots__ = ("trail",)

    def __init__(self, on_unknown: OnUnknown = "raise", allow_pickle: bool = False) -> None:
        super().__init__(on_unknown, allow_pickle)
        self.trail: list[Any] = []

    def read(self, data: Any) -> Any:
        try:
            return self.value(data)
        except UnknownTypeError:
            raise  # it has the path already
        except SerializationError as error:
            raise SerializationError(self.path(), error.problem) from error.__cause__
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(None, f"{self.path()}: {error.reason}") from None
        except RecursionError:
            raise CheckpointIntegrityError(None, "values nest too deep") from None

    def path(self) -> str:
        path = "$"
        for step in self.trail:
            if step is not None:
                path = f"{path}[{step}]" if type(step) is int else child_path(path, step)
        return path

    def missing(self, code: int, plain: Any, why: str) -> Any:
        try:
            return super().missing(code, plain, why)
        except UnknownTypeError as error:
            raise UnknownTypeError(self.path(), error.type_name, why) from None

    def made(self, kind: Kind, plain: Any) -> Any:
        """Return the value of a kind and its plain data."""
        return self._checked(kind, plain)

    def value(self, data: Any, has_steps: bool = True) -> Any:
        """Return a value; in plain data such as (class name, main part) positions are no steps."""
        cls = type(data)
        if cls is str or data is None or cls is int or cls is bool:
            return data
        if cls is float:
            if not math.isfinite(data):
                raise _MalformedError("a number out of range")
            return data
        if len(self.trail) > MAX_LEVELS:
            raise _MalformedError("values nest too deep")
        if cls is list:
            parts = []
            self.trail.append(None)
            for at, part in enumerate(data):
                self.trail[-1] = at if has_steps else None
                parts.append(self.value(part))
            self.trail.pop()
            return parts
        if cls is not dict:
            raise _MalformedError(f"{cls.__name__} is no JSON")
        return self._tagged(data) if TAG in data else self._items(data)

    def _items(self, data: dict[Any, Any]) -> dict[str, Any]:
        items = {}
        self.trail.append(None)
        for key, part in data.items():
            if type(key) is not str:
                raise _MalformedError("a key that is no string")
            self.trail[-1] = key
            items[key] = self.value(part)
        self.trail.pop()
        return items

    def _tagged(self, data: dict[str, Any]) -> Any:
        name, plain = data[TAG], data.get("value")
        if type(name) is not str or data.keys() != {TAG, "value"}:
            raise _MalformedError(f'"{TAG}" beside other keys than "value"')
        if name in _own:
            return _own_value(name, plain)
        if name == "escaped":
            if type(plain) is not dict:
                raise _MalformedError("an escaped dict that is none")
            return self._items(plain)
        kind = by_name.get(name)
        if kind is None:
            raise _MalformedError(f"unknown kind of value {name[:60]!r}")
        self.trail.append(None)
        plain = self.value(plain, has_steps=kind.shape.has_steps)
        self.trail.pop()
        try:
            plain = kind.shape.from_json(plain)
        except ValueError as error:
            raise _MalformedError(str(error)) from None
        return self.made(kind, plain)


class UnrevivingReader(JsonFormReader):
    """JSON data to what the packed form is made of."""

    __slots__ = ()

    def made(self, kind: Kind, plain: Any) -> Any:
        if kind.shape.is_bytes and type(plain) is not bytes:
            raise _MalformedError(f"{kind.name} does not fit its data")
        return Ready(kind.code, plain)


class _MalformedError(CheckpointIntegrityError):
    def __init__(self, reason: str) -> None:
        super().__init__(None, reason)


def _make_float(text: str) -> float:
    if text in ("nan", "inf", "-inf"):
        return float(text)
    (value,) = struct.unpack(">d", bytes.fromhex(text))
    return float(value)


_own: dict[str, Callable[[str], Any]] = {
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "utf8": str.encode,
    "float": _make_float,
}


def _own_value(name: str, plain: Any) -> Any:
    if type(plain) is not str:
        raise _MalformedError(f"{name} does not fit its data")
    try:
        return _own[name](plain)
    except (ValueError, struct.error) as error:
        raise _MalformedError(f"{name} does not fit its data ({error})") from None
