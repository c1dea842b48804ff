"""Which checkpoint leads to which, by parents and by notes; where that is a circle; pure.

Ids are not made of what a record holds, so that a bundle or a database made by hand can have two
checkpoints that are each other's parents. Whoever follows such links has to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.errors import CheckpointIntegrityError

NEXT = "next"
_SHOWN = 4


def is_next(key: str) -> bool:
    """Return whether a note with this key says which checkpoint followed, as of 0.2."""
    return key == NEXT or key.startswith(f"{NEXT}/")


def next_in(value: Any) -> str:
    """Return the checkpoint that such a note names; ValueError if it names none."""
    named = value.get("checkpoint") if isinstance(value, dict) else None
    if type(named) is not str:
        raise ValueError("a note of what followed names no checkpoint")
    return named


def circles(links: Mapping[str, str | None]) -> Iterator[list[str]]:
    """Return every circle of links that lead from each id to one other at most."""
    done: set[str] = set()
    for start in links:
        way: dict[str, None] = {}
        at: str | None = start
        while at is not None and at in links and at not in done and at not in way:
            way[at] = None
            at = links[at]
        if at in way and at is not None:
            ids = list(way)
            yield ids[ids.index(at) :]
        done.update(way)


def circle_error(ids: list[str], what: str = "its parents lead") -> CheckpointIntegrityError:
    """Return what to say of a circle."""
    return CheckpointIntegrityError(ids[0], shown(ids, what))


def shown(ids: list[str], what: str) -> str:
    """Return a circle in words: what leads, and along which ids."""
    listed = [*ids[:_SHOWN], "…"] if len(ids) > _SHOWN else ids
    return f"{what} in a circle: {' → '.join([*listed, ids[0]])}"
