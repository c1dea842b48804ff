"""Verbs that look after a store: expire, gc, verify, stats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from holdfast.core.codec import unpack
from holdfast.core.format import checked, decompress
from holdfast.core.tree import references
from holdfast.errors import CheckpointIntegrityError, CheckpointNotFoundError, InvalidArgumentError
from holdfast.model import CheckpointInfo, microseconds
from holdfast.stores.base import NOTE_TIES, Collected, Note, Query
from holdfast.stores.unfinished import left_behind
from holdfast.verbs import plan
from holdfast.verbs.engine import Engine
from holdfast.verbs.lineage import is_next
from holdfast.verbs.links import PAGE, links_of
from holdfast.verbs.notes import check
from holdfast.verbs.plan import Plan
from holdfast.verbs.read import resolve, verify_record

Progress = Callable[[int, int | None], None]
"""Called with how much is done and how much there is, if that is known."""

_PAGE = 500
_LONGEST_GRACE = 10**9


def expire(engine: Engine, checkpoint_id: str) -> Plan[bool]:
    """Remove a checkpoint now; False if there is none."""
    try:
        whole_id = yield from resolve(checkpoint_id)
    except CheckpointNotFoundError:
        return False
    engine.forget(whole_id)
    return (yield from plan.delete([whole_id])) > 0


def gc(engine: Engine, grace_seconds: float, dry_run: bool) -> Plan[Collected]:
    """Remove what has expired, and what no checkpoint needs and nobody wrote lately.

    That is chunks, and notes whose checkpoint is not there.
    """
    grace = _checked_grace(grace_seconds)
    started = datetime.now(UTC)
    if not dry_run:
        yield from plan.sweep(started)
    noted = yield from _noted()
    lost = yield from _left_behind(noted, started - grace)
    if lost and not dry_run:
        yield from plan.delete(lost)
    live: dict[bytes, bool] = {}
    # In one view, not page by page: a record that is not seen here loses its chunks.
    infos = yield from plan.query(Query(include_expired=not dry_run))
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
            stored = yield from plan.fetch(nodes[start : start + _PAGE])
            for name, data in stored.items():
                following += references(checked(name, data), links=True)
        level = following
    collected = yield from plan.collect(live.keys(), started - grace, dry_run)
    left = yield from plan.do(lambda: left_behind(engine.files, remove=not dry_run))
    return replace(collected, unfinished=tuple(left))


def _linked(infos: list[CheckpointInfo], before: datetime) -> Plan[list[tuple[bytes, bool]]]:
    """What the links of states lead to, in a store whose records hold their other chunks."""
    if not (yield from plan.collect((), before, True)).chunks:
        return []  # there is nothing that could be removed
    level: list[tuple[bytes, bool]] = []
    for info in infos:
        record = yield from plan.load(info.checkpoint_id)
        if record is not None:
            level += links_of(bytes.fromhex(record.info.content_id), record.chunks).items()
    return level


@dataclass(slots=True)
class _Noted:
    """The notes of a scope: the place of the last one, and the chunks they all need."""

    last: int = 0
    needs: dict[bytes, bool] = field(default_factory=dict)


def _noted() -> Plan[dict[str, _Noted]]:
    """All notes, by scope."""
    noted: defaultdict[str, _Noted] = defaultdict(_Noted)
    after = 0
    while page := (yield from plan.notes(None, after, _PAGE)):
        for note in page:
            noted[note.scope].last = after = note.seq
            noted[note.scope].needs.update(_needs(note))
    return noted


def _needs(note: Note) -> list[tuple[bytes, bool]]:
    """The chunks a note needs beside its body, each with whether it may refer to more."""
    check(note)
    try:
        return references(decompress(note.body), links=True)
    except CheckpointIntegrityError as error:
        reason = f"its note {note.key!r} cannot be read ({error.reason})"
        raise CheckpointIntegrityError(note.scope, reason) from None


def _left_behind(noted: Mapping[str, _Noted], before: datetime) -> Plan[set[str]]:
    """Scopes whose checkpoint is not there, and has not been expected lately."""
    bound = microseconds(before) * NOTE_TIES
    old = [s for s, notes in noted.items() if not s.startswith("/") and notes.last < bound]
    missing: set[str] = set()
    for start in range(0, len(old), _PAGE):
        page = old[start : start + _PAGE]
        infos = yield from plan.query(Query(ids=page, include_expired=True))
        for scope in {*page} - {info.checkpoint_id for info in infos}:
            # A damaged record may be listed by its id only; it is not ours to remove.
            if (yield from plan.match(scope, 1)) != [scope]:
                missing.add(scope)
    return missing


def _checked_grace(seconds: object) -> timedelta:
    if isinstance(seconds, (int, float)) and 0 <= seconds <= _LONGEST_GRACE:
        return timedelta(seconds=seconds)
    raise InvalidArgumentError(
        f"grace_seconds is a number from 0 to {_LONGEST_GRACE}, not {seconds!r}"
    )


@dataclass(frozen=True, slots=True)
class Damage:
    """A checkpoint that cannot be restored or that has a damaged note, and why."""

    checkpoint_id: str
    """Of a note that belongs to no checkpoint, the name it was written under."""
    reason: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What a walk through a store found."""

    checkpoints: int
    damaged: list[Damage] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged


def verify(engine: Engine, progress: Progress | None) -> Plan[Verified]:
    """Read every checkpoint and note, and name each that is damaged."""
    total = (yield from plan.stats()).checkpoints if progress is not None else None
    damaged: list[Damage] = []
    looked_at: dict[bytes, str] = {}  # chunks, with what is wrong with them
    done, after = 0, ""
    while True:
        ids = yield from plan.match("", _PAGE, after)
        for checkpoint_id in ids:
            try:
                yield from _verify_one(engine, checkpoint_id, looked_at)
            except CheckpointIntegrityError as error:
                damaged.append(Damage(checkpoint_id, error.reason))
            done += 1
            if progress is not None:
                progress(done, total)
        if len(ids) < _PAGE:
            break
        after = ids[-1]
    damaged += yield from _damaged_notes(looked_at)
    return Verified(done, damaged)


def _damaged_notes(looked_at: dict[bytes, str]) -> Plan[list[Damage]]:
    damaged: list[Damage] = []
    followed: dict[str, str] = {}
    after = 0
    while page := (yield from plan.notes(None, after, _PAGE)):
        for note in page:
            try:
                yield from _verify_chunks(dict(_needs(note)), looked_at)
                followed.update(_followed(note))
            except CheckpointIntegrityError as error:
                damaged.append(Damage(note.scope, error.reason))
        after = page[-1].seq
    return [*damaged, *_circles(followed)]


def _followed(note: Note) -> dict[str, str]:
    """Which checkpoint followed another, if a note tells that."""
    if not is_next(note.key):
        return {}
    value = unpack(decompress(note.body), "raw")
    if not isinstance(value, dict) or not isinstance(value.get("checkpoint"), str):
        raise CheckpointIntegrityError(note.scope, f"its note {note.key!r} names no checkpoint")
    return {note.scope: value["checkpoint"]}


def _circles(followed: Mapping[str, str]) -> list[Damage]:
    """Checkpoints whose notes lead back to themselves."""
    found: list[Damage] = []
    looked_at: set[str] = set()
    for start in followed:
        way: dict[str, int] = {}
        at = start
        while at in followed and at not in looked_at:
            looked_at.add(at)
            way[at] = len(way)
            at = followed[at]
        if at in way:
            for each in list(way)[way[at] :]:
                reason = f"its note says that {followed[each]} followed it, which leads in a circle"
                found.append(Damage(each, reason))
    return found


def _verify_one(engine: Engine, checkpoint_id: str, looked_at: dict[bytes, str]) -> Plan[None]:
    if not engine.shares_chunks:
        record = yield from plan.load(checkpoint_id)
        if record is not None:
            verify_record(record.info)
            root = bytes.fromhex(record.info.content_id)
            yield from _verify_chunks(links_of(root, record.chunks), looked_at)
        return
    found = yield from plan.query(Query(ids=[checkpoint_id], include_expired=True))
    if not found:
        if checkpoint_id in (yield from plan.match(checkpoint_id, 1)):
            raise CheckpointIntegrityError(checkpoint_id, "its record has lost its session")
        return  # removed meanwhile
    verify_record(found[0])
    yield from _verify_chunks({bytes.fromhex(found[0].content_id): True}, looked_at)


def _verify_chunks(roots: dict[bytes, bool], looked_at: dict[bytes, str]) -> Plan[None]:
    """Check all chunks that some need; each is read once, however many states share it."""
    above: dict[bytes, list[bytes]] = {}
    level = roots
    while level:
        fresh = {name: refers for name, refers in level.items() if name not in looked_at}
        names = list(fresh)
        level = {}
        for start in range(0, len(names), PAGE):
            page = names[start : start + PAGE]
            stored = yield from plan.fetch(page)
            for name in page:
                inner: list[tuple[bytes, bool]] = []
                try:
                    if name not in stored:
                        raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
                    raw = checked(name, stored[name])
                    inner = references(raw, links=True) if fresh[name] else []
                    looked_at[name] = ""
                except CheckpointIntegrityError as error:
                    looked_at[name] = error.reason
                for child, _ in inner:
                    above.setdefault(child, []).append(name)
                level.update(inner)
    # What leads to a damaged chunk is damaged too, for every state that shares it.
    damaged = [name for name in (*above, *roots) if looked_at[name]]
    while damaged:
        name = damaged.pop()
        for parent in above.get(name, ()):
            if not looked_at[parent]:
                looked_at[parent] = looked_at[name]
                damaged.append(parent)
    for root in roots:
        if looked_at[root]:
            raise CheckpointIntegrityError(None, looked_at[root])
