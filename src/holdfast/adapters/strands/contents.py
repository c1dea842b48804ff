"""What is kept of the bytes under a key: the value that they are the JSON of, where they are that.

A snapshot is written whole with every message. Kept as a value, it costs what changed of it.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from holdfast.adapters.strands.errors import HoldfastStorageError

Content = dict[str, Any]

_STYLES: tuple[dict[str, Any], ...] = (
    {"ensure_ascii": False},  # as Strands writes
    {},
    {"ensure_ascii": False, "separators": (",", ":")},
    {"separators": (",", ":")},
    {"ensure_ascii": False, "indent": 2},
    {"indent": 2},
)
"""How JSON is written; the number of one is stored, so none is ever removed or moved."""
_DEEPEST = 100
"""How deep a value may nest; one that nests deeper is kept as bytes."""


def content_of(data: bytes) -> Content:
    """Return what is kept of bytes: a value if it gives the very same bytes again, else those."""
    try:
        value = json.loads(data)
        styles = range(len(_STYLES)) if _is_shallow(value, _DEEPEST) else ()
        for style in styles:
            if _written(value, style) == data:
                return {"json": value, "style": style} if style else {"json": value}
    except (ValueError, RecursionError):
        pass  # not JSON, or none that can be written: kept as bytes
    return {"bytes": bytes(data)}


def _is_shallow(value: Any, levels: int) -> bool:
    """Return whether a value nests no deeper than this."""
    if isinstance(value, dict):
        return levels > 0 and all(_is_shallow(each, levels - 1) for each in value.values())
    if isinstance(value, list):
        return levels > 0 and all(_is_shallow(each, levels - 1) for each in value)
    return True


def bytes_of(content: Any, key: str) -> bytes:
    """Return the bytes that were written under a key."""
    if isinstance(content, dict):
        if isinstance(content.get("bytes"), bytes):
            return bytes(content["bytes"])
        style = content.get("style", 0)
        if "json" in content and style in range(len(_STYLES)):
            return _written(content["json"], style)
    raise HoldfastStorageError(
        f"what is kept under {key!r} is damaged: roll its session back to a checkpoint before that"
    )


def fingerprint(data: bytes) -> str:
    """Return what tells bytes from others."""
    return sha256(data).hexdigest()


def _written(value: Any, style: int) -> bytes:
    return json.dumps(value, **_STYLES[style]).encode("utf-8")
