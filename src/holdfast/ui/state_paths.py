"""Paths by which the page asks for a part of a state: those of the command line, and places.

Every part has one that survives an address: ``$.plan[0]``, ``$["a b"]``, and ``$.seen[#3]`` for the
fourth part of something whose key is no text and no number, or a very long one.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.cli.exits import UsageError
from holdfast.core.short_repr import brief

_STEP = re.compile(
    r"\.?(?P<name>[^.\[\]]+)"
    r"|\[#(?P<place>[0-9]{1,15})\]"
    r"|\[(?P<index>-?[0-9]{1,18})\]"
    r'|\[(?P<json>"(?:[^"\\]|\\.)*")\]'
    r"|\[(?P<python>'(?:[^'\\]|\\.)*')\]",
    re.DOTALL,
)
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Place:
    """The part at a place, whatever its key is."""

    at: int


def steps_of(path: str) -> Iterator[str | int | Place]:
    """Yield the keys, positions and places that a path leads by."""
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise UsageError(f"{brief(path)} is no path: write $.plan[0].name or $.files['a b']")
        if step["place"] is not None:
            yield Place(int(step["place"]))
        elif step["index"] is not None:
            yield int(step["index"])
        else:
            yield step["name"] or _quoted(step, path)
        at = step.end()


def _quoted(step: re.Match[str], path: str) -> str:
    try:
        found = json.loads(step["json"]) if step["json"] else literal_eval(step["python"])
    except (SyntaxError, ValueError):
        raise UsageError(f"{brief(path)} is no path: {brief(step[0])} cannot be a key") from None
    return str(found)


def key_step(key: Any) -> str | None:
    """Return the step to a key; None if only its place names it."""
    if type(key) is int:
        return f"[{key}]" if -(10**15) < key < 10**15 else None
    if type(key) is not str or len(key) > _LONGEST:
        return None
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"


def place_step(at: int) -> str:
    """Return the step to the part at a place."""
    return f"[#{at}]"
