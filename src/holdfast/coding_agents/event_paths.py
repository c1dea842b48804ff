"""Paths into the JSON of an event, such as ``workspace_roots.0|cwd``; imports nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DIGITS = 9


def at(data: Any, paths: str) -> Any:
    """Return what is at a path; of several, parted by ``|``, at the first that leads somewhere."""
    found = (_at_one(data, path) for path in paths.split("|"))
    return next((each for each in found if each is not None), None)


def _at_one(data: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and _is_index(part) and int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) <= _DIGITS
