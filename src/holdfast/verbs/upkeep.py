"""Verbs that look after a store: expire and gc."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain

from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_format import checked
from holdfast.errors import CheckpointNotFoundError, InvalidArgumentError
from holdfast.model import microseconds
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import NOTE_TIES, Collected, Query, end_of_page
from holdfast.stores.capabilities import ListsRoots
from holdfast.system import crash_points
from holdfast.system.unfinished import left_behind
from holdfast.verbs.ids import resolve
from holdfast.verbs.links import links_of
from holdfast.verbs.marks import Marks
from holdfast.verbs.progress import Progress, Told

_PAGE = 500
_NODES = 200
"""Chunks that are opened at once; each may be large."""
_LONGEST_GRACE = 10**9


def expire(engine: Engine, checkpoint_id: str) -> Plan[bool]:
    """Remove a checkpoint now; False if there is none."""
    try:
        whole_id = yield from resolve(checkpoint_id)
    except CheckpointNotFoundError:
        return False
    engine.forget(whole_id)
    return (yield from steps.delete([whole_id])) > 0


def gc(
    engine: Engine, grace_seconds: float, dry_run: bool, progress: Progress | None = None
) -> Plan[Collected]:
    """Remove what has expired, and what no checkpoint needs and nobody wrote lately.

    That is chunks, and notes whose checkpoint is not there.
    """
    grace = _checked_grace(grace_seconds)
    started = datetime.now(UTC)
    if not dry_run:
        yield from steps.sweep(started)
    told = Told(progress)
    with closing(Marks()) as marks:
        yield from _mark_noted(marks, started - grace, dry_run, told)
        yield from _mark_recorded(engine, marks, started - grace, dry_run)
        while names := (yield from steps.do(partial(marks.take_waiting, _NODES))):
            stored = yield from steps.fetch(names)
            yield from steps.do(partial(_mark_below, marks, stored))
            told.add(len(names))
        crash_points.reach("upkeep:marked")
        collected = yield from steps.collect(_Asked(marks, told), started - grace, dry_run)
    told.end()
    left = yield from steps.do(lambda: left_behind(engine.files, remove=not dry_run))
    return replace(collected, unfinished=tuple(left))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is needed, and how far whoever asks about every chunk has come."""

    marks: Marks
    told: Told

    def __contains__(self, name: object) -> bool:
        self.told.add(1)
        return name in self.marks


def _mark_noted(marks: Marks, before: datetime, dry_run: bool, told: Told) -> Plan[None]:
    """Mark what notes need, but for those whose checkpoint is not there: these are removed."""
    after = 0
    while page := (yield from steps.notes(None, after, _PAGE)):
        yield from steps.do(partial(marks.note, page))
        after = end_of_page(page, after)
        told.add(len(page))
    bound, last = microseconds(before) * NOTE_TIES, ""
    while scopes := (yield from steps.do(partial(marks.scopes, bound, last, _PAGE))):
        last = scopes[-1]
        lost = yield from _missing(scopes)
        if lost and not dry_run:
            yield from steps.delete(lost)
        yield from steps.do(partial(marks.forget, lost))
    yield from steps.do(marks.add_noted)


def _missing(scopes: list[str]) -> Plan[list[str]]:
    """Return those of the checkpoints that are not there."""
    infos = yield from steps.query(Query(ids=scopes, include_expired=True))
    missing: list[str] = []
    for scope in sorted({*scopes} - {info.checkpoint_id for info in infos}):
        # A damaged record may be listed by its id only; it is not ours to remove.
        if (yield from steps.match(scope, 1)) != [scope]:
            missing.append(scope)  # noqa: PERF401  (no comprehension yields)
    return missing


def _mark_recorded(engine: Engine, marks: Marks, before: datetime, dry_run: bool) -> Plan[None]:
    """Mark the chunks that records begin with."""
    if engine.can(ListsRoots):
        yield from steps.roots(not dry_run, marks.add_roots)
        return
    # In one view, not page by page: a record that is not seen here loses its chunks.
    infos = yield from steps.query(Query(include_expired=not dry_run))
    if engine.shares_chunks:
        roots = [bytes.fromhex(info.content_id) for info in infos]
        yield from steps.do(partial(marks.add_roots, roots))
    else:
        yield from _mark_linked(marks, [info.checkpoint_id for info in infos], before)


def _mark_linked(marks: Marks, ids: list[str], before: datetime) -> Plan[None]:
    """Mark what the links of states lead to, in a store whose records hold their other chunks."""
    if not (yield from steps.collect((), before, True)).chunks:
        return  # there is nothing that could be removed
    for checkpoint_id in ids:
        record = yield from steps.load(checkpoint_id)
        if record is not None:
            links = links_of(bytes.fromhex(record.info.content_id), record.chunks)
            yield from steps.do(partial(marks.add, links.items()))


def _mark_below(marks: Marks, stored: Mapping[bytes, bytes]) -> None:
    """Mark what some chunks refer to."""
    found = (references(checked(name, data), links=True) for name, data in stored.items())
    marks.add(chain.from_iterable(found))


def _checked_grace(seconds: object) -> timedelta:
    if isinstance(seconds, (int, float)) and 0 <= seconds <= _LONGEST_GRACE:
        return timedelta(seconds=seconds)
    raise InvalidArgumentError(
        f"grace_seconds is a number from 0 to {_LONGEST_GRACE}, not {seconds!r}"
    )
