"""Checks of what callers hand in: each returns the value as it is kept, or says what is wrong."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from functools import lru_cache
from typing import Any

from holdfast.core.safe_repr import briefly
from holdfast.errors import InvalidArgumentError

LONGEST_NAME = 1024
_COUNT_BITS = 2048
"""Of the numbers in a record, which a readable document writes in decimal."""
_SIZE_BITS = 63
"""Of those that have a column of their own."""
_VERSION = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")


def is_count(value: object) -> bool:
    """Return whether a value is a whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def checked_name(what: str, value: object) -> str:
    """Return an agent's, session's or checkpoint's name; refuse what is no readable string."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{what} is a string, not {type(value).__name__}")
    if problem := _problem_of_name(value):
        raise InvalidArgumentError(f"{what} {problem}")
    return str.__str__(value)  # of an enum's member its value, not its name


@lru_cache(4096)  # the same few names come again with every save
def _problem_of_name(value: str) -> str:
    if not value.strip():
        return "is empty: give it a name"
    if len(value) > LONGEST_NAME or "\x00" in value:
        return f"is longer than {LONGEST_NAME} characters or holds a NUL"
    try:
        value.encode()
    except UnicodeEncodeError:
        return f"holds a lone surrogate: {value!r}"
    return ""


def checked_id(what: str, value: object) -> str:
    """Return the name of a checkpoint; its notes are kept under it, so it begins with no '/'."""
    name = checked_name(what, value)
    if name.startswith("/"):  # else its notes would be leases, or decisions
        raise InvalidArgumentError(f"{what} {name!r} begins with '/', as no checkpoint's does")
    return name


def checked_text(what: str, value: object) -> str:
    """Return any text; refuse what is none."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{what} is a string, not {type(value).__name__}")
    return str.__str__(value)


def checked_version(what: str, value: object) -> str:
    """Return a version of two numbers."""
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise InvalidArgumentError(f"{what} is two numbers such as '1.0', not {briefly(value)}")
    return value


def checked_count(what: str, value: Any, bits: int = _COUNT_BITS) -> int:
    """Return a whole number from 0."""
    if not is_count(value) or value.bit_length() > bits:
        raise InvalidArgumentError(f"{what} is a number from 0, not {briefly(value)}")
    return int(value)


def checked_size(what: str, value: Any) -> int:
    """Return how many there are, of what a column can hold."""
    return checked_count(what, value, _SIZE_BITS)


def checked_seconds(what: str, value: Any) -> float:
    """Return a number of seconds from 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgumentError(f"{what} is a number, not {type(value).__name__}")
    if not 0 <= value <= sys.float_info.max:  # nor is nan
        raise InvalidArgumentError(f"{what} is {briefly(value)}: give a number of seconds from 0")
    return value


def checked_moment(what: str, value: object) -> datetime:
    """Return a time that has a zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidArgumentError(f"{what} is a datetime with a time zone")
    return value


def checked_metadata(what: str, value: Any) -> dict[str, Any]:
    """Return a dict of one's own."""
    return dict(value or {})
