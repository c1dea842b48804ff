"""Verbs that look after a store: expire and gc."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_format import checked
from holdfast.errors import CheckpointNotFoundError, InvalidArgumentError
from holdfast.model import CheckpointInfo, microseconds
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import NOTE_TIES, Collected, Query, end_of_page
from holdfast.system.unfinished import left_behind
from holdfast.verbs.ids import resolve
from holdfast.verbs.links import links_of
from holdfast.verbs.notes import needs_of

_PAGE = 500
_LONGEST_GRACE = 10**9


def expire(engine: Engine, checkpoint_id: str) -> Plan[bool]:
    """Remove a checkpoint now; False if there is none."""
    try:
        whole_id = yield from resolve(checkpoint_id)
    except CheckpointNotFoundError:
        return False
    engine.forget(whole_id)
    return (yield from steps.delete([whole_id])) > 0


def gc(engine: Engine, grace_seconds: float, dry_run: bool) -> Plan[Collected]:
    """Remove what has expired, and what no checkpoint needs and nobody wrote lately.

    That is chunks, and notes whose checkpoint is not there.
    """
    grace = _checked_grace(grace_seconds)
    started = datetime.now(UTC)
    if not dry_run:
        yield from steps.sweep(started)
    noted = yield from _noted()
    lost = yield from _left_behind(noted, started - grace)
    if lost and not dry_run:
        yield from steps.delete(lost)
    live: dict[bytes, bool] = {}
    # In one view, not page by page: a record that is not seen here loses its chunks.
    infos = yield from steps.query(Query(include_expired=not dry_run))
    level: list[tuple[bytes, bool]] = []
    if engine.shares_chunks:
        level = [(root, True) for root in {bytes.fromhex(info.content_id) for info in infos}]
    else:
        level = yield from _linked(infos, started - grace)
    level += [need for scope in noted.keys() - lost for need in noted[scope].needs.items()]
    while level:
        fresh: dict[bytes, bool] = {}
        for name, refers in level:  # opened if anyone says that it refers to more
            if name not in live or refers > live[name]:
                fresh[name] = refers or fresh.get(name, False)
        live.update(fresh)
        following: list[tuple[bytes, bool]] = []
        nodes = [name for name, refers in fresh.items() if refers]
        for start in range(0, len(nodes), _PAGE):
            stored = yield from steps.fetch(nodes[start : start + _PAGE])
            for name, data in stored.items():
                following += references(checked(name, data), links=True)
        level = following
    collected = yield from steps.collect(live.keys(), started - grace, dry_run)
    left = yield from steps.do(lambda: left_behind(engine.files, remove=not dry_run))
    return replace(collected, unfinished=tuple(left))


def _linked(infos: list[CheckpointInfo], before: datetime) -> Plan[list[tuple[bytes, bool]]]:
    """Return what the links of states lead to, in a store whose records hold their other chunks."""
    if not (yield from steps.collect((), before, True)).chunks:
        return []  # there is nothing that could be removed
    level: list[tuple[bytes, bool]] = []
    for info in infos:
        record = yield from steps.load(info.checkpoint_id)
        if record is not None:
            level += links_of(bytes.fromhex(record.info.content_id), record.chunks).items()
    return level


@dataclass(slots=True)
class _Noted:
    """The notes of a scope: the place of the last one, and the chunks they all need."""

    last: int = 0
    needs: dict[bytes, bool] = field(default_factory=dict)


def _noted() -> Plan[dict[str, _Noted]]:
    """Return all notes, by scope."""
    noted: defaultdict[str, _Noted] = defaultdict(_Noted)
    after = 0
    while page := (yield from steps.notes(None, after, _PAGE)):
        for note in page:
            noted[note.scope].last = note.seq
            noted[note.scope].needs.update(needs_of(note))
        after = end_of_page(page, after)
    return noted


def _left_behind(noted: Mapping[str, _Noted], before: datetime) -> Plan[set[str]]:
    """Scopes whose checkpoint is not there, and has not been expected lately."""
    bound = microseconds(before) * NOTE_TIES
    old = [s for s, notes in noted.items() if not s.startswith("/") and notes.last < bound]
    missing: set[str] = set()
    for start in range(0, len(old), _PAGE):
        page = old[start : start + _PAGE]
        infos = yield from steps.query(Query(ids=page, include_expired=True))
        for scope in {*page} - {info.checkpoint_id for info in infos}:
            # A damaged record may be listed by its id only; it is not ours to remove.
            if (yield from steps.match(scope, 1)) != [scope]:
                missing.add(scope)
    return missing


def _checked_grace(seconds: object) -> timedelta:
    if isinstance(seconds, (int, float)) and 0 <= seconds <= _LONGEST_GRACE:
        return timedelta(seconds=seconds)
    raise InvalidArgumentError(
        f"grace_seconds is a number from 0 to {_LONGEST_GRACE}, not {seconds!r}"
    )
