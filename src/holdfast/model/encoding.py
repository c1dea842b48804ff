"""How a record is written: the one place for every store, bundle, checksum and JSON.

Databases keep a list of *packed* values, some of them in columns and the rest as the body of a row.
Documents and bundles are dicts: of *text* for people, of *plain* values otherwise. In each, what
later versions added comes behind, by name and as plain values, so that a Holdfast which does not
know a field can carry it along and prove it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from holdfast.model.field_types import Form
from holdfast.model.fields import FIELDS, FIRST, LATER, Field

Values = Mapping[str, Any]
"""The fields of a record by name."""


def _choosing(fields: Sequence[Field], form: Form) -> Callable[[Values], list[Any]]:
    """Return a function that gives these fields of a record in that form, and behind them what
    the record says of later versions, if anything.
    """
    get = itemgetter(*(f.name for f in fields))
    writes = [(at, both[0]) for at, f in enumerate(fields) if (both := f.type.both(form))]

    def choose(values: Values) -> list[Any]:
        chosen = [*get(values)]
        for at, write in writes:
            chosen[at] = write(chosen[at])
        if (LATER or "later" in values) and (later := _later(values)):
            chosen.append(later)
        return chosen

    return choose


NAMES = tuple(f.name for f in FIRST)
COVERED = tuple(f.name for f in FIRST if f.covered)

packed_of = _choosing(FIRST, "packed")
"""Return a record as a list; its id comes first."""

body_of = _choosing([f for f in FIRST if not f.column], "packed")
"""Return what of a record has no column of its own."""

covered = _choosing([f for f in FIRST if f.covered], "plain")
"""Return what the checksum of a record covers: all that its schema version has.

That is the fields of the first version, and what the record says of later ones. A record that says
nothing of those has the checksum that it had before they came.
"""

_plain = _choosing(FIRST, "plain")
_text = _choosing(FIRST, "text")
_all_text = _choosing(FIELDS, "text")
_ALL_NAMES = tuple(f.name for f in FIELDS)


def plain_of(values: Values) -> dict[str, Any]:
    """Return a record as a bundle holds it."""
    return dict(zip(NAMES, _plain(values), strict=False)) | _later(values)


def text_of(values: Values) -> dict[str, Any]:
    """Return a record as a document holds it."""
    return dict(zip(NAMES, _text(values), strict=False)) | _later(values)


def shown_of(values: Values) -> dict[str, Any]:
    """Return all fields that this Holdfast knows as people read them, said or not."""
    return dict(zip(_ALL_NAMES, _all_text(values), strict=False))


def _later(values: Values) -> dict[str, Any]:
    """Return what a record says of later versions, in the order of names; mostly nothing."""
    later = values.get("later")
    said = {} if later is None else dict(later)
    for f in LATER:
        value = values[f.name]
        if value != f.default:
            said[f.name] = f.type.plain[0](value) if f.type.plain else value
    return dict(sorted(said.items())) if said else said
