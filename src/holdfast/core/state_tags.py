"""How a state dict says whose it is: ``__class__`` and ``__version__`` beside the fields."""

from __future__ import annotations

from typing import Any

from holdfast.core.safe_repr import briefly
from holdfast.errors import InvalidArgumentError

CLASS, VERSION = "__class__", "__version__"
MARK = CLASS.encode()
"""Packed values without these bytes hold no nested state."""

AGENT_ID = "holdfast.state"
"""The agent of whom every key of a manager is a session."""

State = dict[str, Any]
Version = int | str

DEFAULT_VERSION = "1.0"
"""The version of a class that says nothing of it; states of 0.2 have 1, which is the same."""

PLAIN_DICT = "dict"
"""The tag of a user's own dict that happens to look like a state."""


def is_tagged(value: object) -> bool:
    """Return whether a value is the state of an object, or looks like one."""
    return type(value) is dict and CLASS in value and VERSION in value


def fields_of(state: State) -> State:
    """Return a state without its tags."""
    return {name: value for name, value in state.items() if name not in (CLASS, VERSION)}


def escaped(plain: dict[Any, Any]) -> State:
    """Return a user's dict that looks like a state, marked so that it comes back as a dict."""
    return {CLASS: PLAIN_DICT, VERSION: 1, "items": plain}


def is_escaped(state: State) -> bool:
    """Return whether a tagged dict is what ``escaped`` gave."""
    return state[CLASS] == PLAIN_DICT and state.keys() == {CLASS, VERSION, "items"}


def same_version(a: object, b: object) -> bool:
    """Return whether two versions are one, however they are written.

    >>> from holdfast.core.state_tags import same_version
    >>> same_version(1, "1.0"), same_version("1.0", "1.1")
    (True, False)
    """
    try:
        return ordered(a) == ordered(b)
    except InvalidArgumentError:
        return False


def ordered(version: object) -> tuple[int, ...]:
    """Return a version as numbers to compare: 2 as (2,), "1.10" as (1, 10), "1.0" as (1,)."""
    if isinstance(version, int) and not isinstance(version, bool) and version >= 0:
        return (version,)
    if isinstance(version, str):
        parts = version.split(".")
        if all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
            numbers = [int(part) for part in parts]
            while len(numbers) > 1 and not numbers[-1]:
                numbers.pop()
            return tuple(numbers)
    raise InvalidArgumentError(
        f'a version is a whole number, or numbers and dots such as "1.2", not {briefly(version)}'
    )
