"""Calls as checkpoints and notes tell of them, of sessions that are not open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.core.codec import OnUnknown
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session import journal as journals
from holdfast.session.call_log import CallLog
from holdfast.session.effects import Block, Effect
from holdfast.session.folding import Calls, Entry
from holdfast.session.heads import Noted
from holdfast.session.volumes import Shelf, part


@dataclass(frozen=True)
class Parted:
    """What one log tells of that another does not."""

    later: list[Effect]
    """The calls that the other does not know, the oldest first."""
    undone: set[str]
    """The calls that were compensated, and not as the other tells of them."""


def parted(shelf: Shelf, log: CallLog, other: CallLog, noted: Iterable[Entry] = ()) -> Plan[Parted]:
    """Return what a log and what is ``noted`` beside it tell of that another log does not.

    Volumes that both have are not read.
    """
    rest = yield from part(shelf, log.older.volumes, other.older.volumes)
    mine = Calls((yield from shelf.entries(rest.mine)))
    theirs = Calls((yield from shelf.entries(rest.theirs)))
    theirs.extend([*other.older.standing.opened, *other.recent])
    mine.extend([*log.recent, *noted])
    later = [each for each in mine.effects.values() if each.id not in theirs.effects]
    if later and other.older:
        known = yield from other.older.calls(shelf, [each.id for each in later])
        later = [each for each in later if each.id not in known.effects]
    return Parted(later, mine.compensated() - theirs.compensated())


def calls_in(
    engine: Engine, entries: Sequence[Entry], on_unknown: OnUnknown = "raw"
) -> Plan[list[Effect]]:
    """Return all calls that a checkpoint holds, as they stand, the oldest first."""
    calls = Calls((yield from entries_in(engine, entries, on_unknown)))
    return list(calls.effects.values())


def entries_in(
    engine: Engine, entries: Sequence[Entry], on_unknown: OnUnknown = "raw"
) -> Plan[list[Entry]]:
    """Return the whole log of a checkpoint, with what is in closed volumes."""
    log = CallLog(entries)
    return [*(yield from log.older.entries(Shelf(engine, on_unknown))), *log.recent]


def calls_between(
    engine: Engine, before: Sequence[Entry], after: Sequence[Entry], noted: Iterable[Effect] = ()
) -> Plan[list[Effect]]:
    """Return the calls that a later checkpoint, or what is noted on it, tells of beside those."""
    entries = [call.as_dict() for call in noted]
    shelf = Shelf(engine, "raw")
    return (yield from parted(shelf, CallLog(after), CallLog(before), entries)).later


def calls_noted(noted: Noted) -> list[Effect]:
    """Return the calls that the notes on a head tell of, in no checkpoint yet."""
    return journals.read(noted)[0]


def unknown_calls_of(
    entries: Sequence[Entry], noted: Noted, is_open: Callable[[Block], bool]
) -> list[Effect]:
    """Return calls of unknown end that nobody has decided of, of a session that is not open."""
    opened = CallLog(entries).open_calls(is_open) if entries else []
    every, retried = journals.read(noted, opened)
    return [call for call in every if call.is_unknown and call.id not in retried]
