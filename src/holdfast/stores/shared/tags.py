"""Tags as the stores that speak SQL file sessions by them.

A session is filed under the numbers of the tags that its records have, once for each: so a tag that
it has already costs a save nothing. Which of its records has the tag is found by looking through
them. A name with ever new values, as a counter has, is soon filed as such, whatever the value.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from types import NoneType
from typing import Any

from holdfast.core.codec import pack

VALUES = 8
"""How many values of one name are filed for a session; after that the name alone."""
_HALF = 32
_PLAIN = (str, int, bool, bytes, NoneType)
"""Of these values those that are equal are packed alike; others are filed by their name."""


def numbers_of(name: str, value: Any) -> tuple[int, ...]:
    """Return under which numbers the sessions are filed that may have a record with this tag."""
    any_value = _named(name)
    return (any_value, any_value | _valued(value)) if type(value) in _PLAIN else (any_value,)


def unfiled_in(metadata: Mapping[str, Any], filed: Container[int]) -> list[str]:
    """Return the names of those tags by which a session is not found that is filed under these."""
    return [
        name
        for name, value in metadata.items()
        if _named(name) not in filed
        and not any(number in filed for number in numbers_of(name, value))
    ]


class FiledTags:
    """The tags under which a session was filed."""

    def __init__(self) -> None:
        self._seen: dict[str, set[tuple[type, Any]] | None] = {}
        """The values by name; None for a name that is filed whatever the value."""

    def unfiled(self, metadata: Mapping[str, Any]) -> Iterator[int]:
        """Give the numbers under which the session has to be filed as well, and remember them."""
        for name, value in metadata.items():
            seen = self._seen.setdefault(name, set())
            if seen is None:
                continue
            tag = type(value), value if type(value) in _PLAIN else None
            if tag in seen:
                continue
            if len(seen) < VALUES and type(value) in _PLAIN:
                seen.add(tag)
            else:
                self._seen[name] = None
            yield numbers_of(name, value)[-1] if self._seen[name] is not None else _named(name)


@lru_cache(1024)
def _named(name: str) -> int:
    """Return a number for a name; what has room for a value beside it is zero."""
    number = int.from_bytes(blake2b(pack(name), digest_size=4).digest(), "big", signed=True)
    return number << _HALF


def _valued(value: Any) -> int:
    """Return a number for a value, which is never zero."""
    return int.from_bytes(blake2b(pack(value), digest_size=4).digest(), "big") or 1
