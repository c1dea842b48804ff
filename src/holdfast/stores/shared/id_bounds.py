"""Ids as short keys, and the bounds between which all lie that begin in the same way.

Most ids are UUIDs, which take 16 bytes instead of 36. Keys sort as the texts do, so that what
begins with a prefix lies between two bounds and is found by an index.
"""

from __future__ import annotations

import re

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LOWEST = "00000000-0000-0000-0000-000000000000"
_HIGHEST = _LOWEST.replace("0", "f")

AFTER_ALL = b"\xff"
"""Greater than any byte of a text."""


def uuid_bytes(text: str) -> bytes | None:
    """Return the 16 bytes of a UUID as it is written here; None for any other text."""
    return bytes.fromhex(text.replace("-", "")) if _UUID.fullmatch(text) else None


def uuid_text(data: bytes) -> str:
    """Return the UUID that has these 16 bytes."""
    text = data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid_bounds(prefix: str) -> tuple[bytes, bytes] | None:
    """Return the first and the last UUID that begin so; None if none does.

    >>> from holdfast.stores.shared.id_bounds import uuid_bounds
    >>> [bound.hex() for bound in uuid_bounds("0190-no uuid") or uuid_bounds("0190")]
    ['01900000000000000000000000000000', '0190ffffffffffffffffffffffffffff']
    """
    lowest, highest = (uuid_bytes(prefix + ends[len(prefix) :]) for ends in (_LOWEST, _HIGHEST))
    return None if lowest is None or highest is None else (lowest, highest)


def byte_bounds(prefix: bytes) -> tuple[bytes, bytes]:
    """Return bounds for texts as bytes: what begins so is from the one on, and below the other."""
    return prefix, prefix + AFTER_ALL


def text_bounds(prefix: str) -> tuple[str, str | None]:
    """Return the same for texts that a database compares as such; no upper one if none is greater.

    >>> from holdfast.stores.shared.id_bounds import text_bounds
    >>> text_bounds("run-")
    ('run-', 'run.')
    """
    rest = prefix.rstrip("\U0010ffff")
    if not rest:
        return prefix, None
    following = ord(rest[-1]) + 1
    return prefix, rest[:-1] + chr(0xE000 if following == 0xD800 else following)
