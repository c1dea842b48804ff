"""Values of any origin as plain data that JSON has, however deep, wide or odd they are."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

from holdfast.core.conversation.lost import Lost
from holdfast.core.value_paths import child_path
from holdfast.errors import AdapterError

DEEPEST = 100
MOST = 5_000_000
"""How many values a conversation may hold: one that names a part of itself again and again ends."""
_WIDEST = 8192  # bits: Python writes no longer numbers as text


def plain(value: Any, lost: Lost, path: str = "$") -> Any:
    """Return a copy in dict, list, str, int, float, bool and None; what has no such form is lost.

    Tuples are lists, bytes are base64 text. AdapterError if it nests too deep or leads to itself.
    """
    return _Copy(lost).of(value, path, 0)


class _Copy:
    def __init__(self, lost: Lost) -> None:
        self.lost = lost
        self.left = MOST

    def of(self, value: Any, path: str, depth: int) -> Any:
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            what = "nests deeper" if depth > DEEPEST else "holds more"
            limit = f"{DEEPEST} levels" if depth > DEEPEST else f"{MOST} values"
            raise AdapterError(
                f"{path[:200]}: {what} than the {limit} that a conversation may have; it is "
                "damaged, or no conversation"
            )
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            if value.bit_length() <= _WIDEST:
                return int(value)
            self.lost.add(path, "a number too long to be written")
            return None
        if isinstance(value, str):
            return str(value)
        if isinstance(value, float):
            if math.isfinite(value):
                return float(value)
            self.lost.add(path, f"the number {value}, which JSON does not have")
            return None
        if isinstance(value, (bytes, bytearray)):
            return base64.b64encode(value).decode()
        if isinstance(value, Mapping):
            return self._dict(value, path, depth)
        if isinstance(value, (list, tuple)):
            return [self.of(part, f"{path}[{i}]", depth + 1) for i, part in enumerate(value)]
        self.lost.add(path, f"a value of type {type(value).__name__}")
        return None

    def _dict(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        found = {}
        for key, part in value.items():
            if isinstance(key, str):
                found[str(key)] = self.of(part, child_path(path, key), depth + 1)
            else:
                self.lost.add(path, f"a key of type {type(key).__name__}")
        return found
