"""Marks: how far a list of what is settled one by one has been looked through.

What waits (an offer, a question) is entered in the order of writing, and what became of it is noted
elsewhere. A mark says: of all that was entered up to these places, this alone is open. What is
settled stays so, so that a mark is true for ever: of several that were written at once any will do,
and without one all is looked through.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from holdfast.errors import NoteExistsError
from holdfast.ids import new_id
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Fence
from holdfast.verbs import notes, stored_values

_MARKS = "/marks/"
FEW = 32
"""Up to so much that is settled is looked at again and again; a mark would cost as much."""
_TURN = 16
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a list was looked through, and what of that is open."""

    places: Mapping[str, int]
    """By scope, the place of the last that was looked at."""
    open: Mapping[str, int]
    """By its id, the place at which it was entered; 0 where nobody asks for that."""


_KINDS: dict[str, stored_values.Kind] = {
    "places": stored_values.FIELDS,
    "open": stored_values.FIELDS,
}


def last(engine: Engine, names: Collection[str]) -> Plan[dict[str, Mark]]:
    """Return the last mark of each of some lists; those that have none are left out."""
    scopes = {_MARKS + name: name for name in names}
    found: dict[str, Mark] = {}
    if scopes:
        for note, value in (yield from notes.read_last(engine, list(scopes), 1, "raw")):
            what = f"the mark of {scopes[note.scope]!r}"
            said = stored_values.fields_of(what, value, _KINDS, tuple(_KINDS))
            places = (_places_in(what, said[each]) for each in _KINDS)
            found[scopes[note.scope]] = Mark(*places)
    return found


def _places_in(what: str, value: Mapping[Any, Any]) -> dict[str, int]:
    if all(
        type(key) is str and type(place) is int and 0 <= place < _LARGEST
        for key, place in value.items()
    ):
        return dict(value)
    raise stored_values.damaged(what, "has something else where places were kept")


def write(engine: Engine, name: str, mark: Mark) -> Plan[None]:
    """Keep a mark, for all who look at the list from now on."""
    batch = notes.NoteBatch()
    value = {"places": dict(mark.places), "open": dict(mark.open)}
    batch.add(engine, _MARKS + name, new_id(), value)
    yield from batch.write()


def beginning(name: str) -> Fence:
    """Return the note that is there before all is looked through for the first mark of a list.

    What is written unless it is there needs no entry: it is seen by who looks after that.
    """
    return f"{_MARKS}{name}/begun", "begun"


def begin(engine: Engine, name: str) -> Plan[None]:
    """Write that note."""
    batch = notes.NoteBatch()
    batch.add(engine, *beginning(name), None)
    with suppress(NoteExistsError):  # somebody began and was cut short, or is about to end
        yield from batch.write()


def ends(engine: Engine, scopes: Collection[str]) -> Plan[dict[str, int]]:
    """Return the place of the last note of each scope that has any.

    Asked for before all is looked through: what is entered meanwhile comes behind.
    """
    return {note.scope: note.seq for note in (yield from notes.last(engine, scopes, 1))}


def is_worth_it(settled: int, unsettled: int) -> bool:
    """Return whether so much was looked at in vain that a mark costs less."""
    return settled > max(FEW, unsettled)


def is_turn(settled_id: str) -> bool:
    """Return whether who settles this sees to the mark: one in some does, told by its id."""
    return crc32(settled_id.encode("utf-8", "surrogatepass")) % _TURN == 0
