"""Entries of the log of calls, one by one, folded into the calls as they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.session.effects import Block, Effect
from holdfast.verbs import stored_values

Entry = Mapping[str, Any]


class Calls:
    """Calls as some entries tell of them, and what those say of calls that others tell of."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.effects: dict[str, Effect] = {}
        """By their ids, in the order in which they were begun."""
        self.undone: set[str] = set()
        """Calls that were compensated, and that these entries do not tell of."""
        self.left: set[str] = set()
        """Calls that a failed attempt made, and that these entries do not tell of."""
        self.extend(entries)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Add entries."""
        for entry in entries:
            self.take(entry)

    def take(self, entry: Entry) -> tuple[Effect | None, Effect | None]:
        """Add an entry; returns the call that it is, if it is one, and as what it was known."""
        if "id" in checked(entry):
            effect = Effect.from_dict(entry)
            known = self.effects.get(effect.id)
            self.effects[effect.id] = effect
            return effect, known
        if "undone" in entry:
            self._mark(entry["undone"], self.undone, compensated=True)
        elif "left" in entry:
            self._mark(entry["left"], self.left, left=True)
        elif "branched" in entry:
            self.leave_final()
        return None, None

    def _mark(self, effect_id: str, elsewhere: set[str], **how: bool) -> None:
        effect = self.effects.get(effect_id)
        if effect is None:
            elsewhere.add(effect_id)
        else:
            self.effects[effect_id] = replace(effect, **how)  # type: ignore[arg-type]

    def leave_final(self) -> None:
        """Have what was done and lasts count as left: a fork does not do it again."""
        for effect in list(self.effects.values()):
            if effect.is_final and effect.status == "done" and not effect.left:
                self.effects[effect.id] = replace(effect, left=True)

    def only(self, fits: Callable[[Effect], bool]) -> Calls:
        """Return those calls that fit."""
        found = Calls()
        found.effects = {each.id: each for each in self.effects.values() if fits(each)}
        return found

    def overlaid(self, newer: Calls) -> dict[str, Effect]:
        """Return these calls as they stand after newer entries."""
        found = {}
        for each in self.effects.values():
            compensated = each.compensated or each.id in newer.undone
            left = each.left or each.id in newer.left
            marked = replace(each, compensated=compensated, left=left)
            found[each.id] = newer.effects.get(each.id, marked)
        return found

    def compensated(self) -> set[str]:
        """Return the calls that were compensated, also those that others tell of."""
        return self.undone | {each.id for each in self.effects.values() if each.compensated}


_MARKS: dict[str, stored_values.Kind] = {
    "turned": stored_values.TEXT,
    "in": stored_values.LIST,
    "passed": stored_values.TEXT,
    "task": stored_values.MAYBE_TEXT,
    "undone": stored_values.TEXT,
    "left": stored_values.TEXT,
    "branched": stored_values.NUMBER,
}


def checked(entry: Any) -> Entry:
    """Return an entry of the log; a mark that lacks its fields is an error."""
    if not isinstance(entry, dict):
        raise stored_values.damaged(
            "the record of calls", "holds what is neither a call nor a mark"
        )
    if "id" not in entry:
        found = stored_values.fields_of(
            "a recorded mark", entry, _MARKS, ("in",) if "turned" in entry else ()
        )
        for block in found.get("in", ()):
            block_of(block)
    return entry


def block_of(value: Any) -> Block:
    """Return a block that was kept."""
    match value:
        case [str() | None as task, int() as attempt]:
            return task, attempt
    raise stored_values.damaged("a recorded mark", "has something else as its in")
