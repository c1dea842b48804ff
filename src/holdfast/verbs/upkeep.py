"""Verbs that look after a store: expire, gc, verify, stats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from holdfast.core.format import checked
from holdfast.core.tree import references
from holdfast.errors import CheckpointIntegrityError, CheckpointNotFoundError, InvalidArgumentError
from holdfast.stores.base import Collected, Query
from holdfast.verbs import plan
from holdfast.verbs.engine import Engine
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
    """Remove expired checkpoints, and chunks that no checkpoint needs and none wrote lately."""
    grace = _checked_grace(grace_seconds)
    started = datetime.now(UTC)
    if not dry_run:
        yield from plan.sweep(started)
    live: set[bytes] = set()
    # In one view, not page by page: a record that is not seen here loses its chunks.
    infos = yield from plan.query(Query(include_expired=not dry_run))
    roots = {bytes.fromhex(info.content_id) for info in infos}
    level = [(root, True) for root in roots] if engine.shares_chunks else []
    while level:
        level = [(name, refers) for name, refers in dict(level).items() if name not in live]
        live.update(name for name, _ in level)
        following: list[tuple[bytes, bool]] = []
        nodes = [name for name, refers in level if refers]
        for start in range(0, len(nodes), _PAGE):
            stored = yield from plan.fetch(nodes[start : start + _PAGE])
            for name, data in stored.items():
                following += references(checked(name, data))
        level = following
    return (yield from plan.collect(live, started - grace, dry_run))


def _checked_grace(seconds: object) -> timedelta:
    if isinstance(seconds, (int, float)) and 0 <= seconds <= _LONGEST_GRACE:
        return timedelta(seconds=seconds)
    raise InvalidArgumentError(
        f"grace_seconds is a number from 0 to {_LONGEST_GRACE}, not {seconds!r}"
    )


@dataclass(frozen=True, slots=True)
class Damage:
    """A checkpoint that cannot be restored, and why."""

    checkpoint_id: str
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
    """Read every checkpoint and name each that is damaged."""
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
            return Verified(done, damaged)
        after = ids[-1]


def _verify_one(engine: Engine, checkpoint_id: str, looked_at: dict[bytes, str]) -> Plan[None]:
    if not engine.shares_chunks:
        record = yield from plan.load(checkpoint_id)
        if record is not None:
            verify_record(record.info)
        return
    found = yield from plan.query(Query(ids=[checkpoint_id], include_expired=True))
    if not found:
        if checkpoint_id in (yield from plan.match(checkpoint_id, 1)):
            raise CheckpointIntegrityError(checkpoint_id, "its record has lost its session")
        return  # removed meanwhile
    verify_record(found[0])
    yield from _verify_chunks(bytes.fromhex(found[0].content_id), looked_at)


def _verify_chunks(root: bytes, looked_at: dict[bytes, str]) -> Plan[None]:
    """Check all chunks a root needs; each is read once, however many states share it."""
    above: dict[bytes, list[bytes]] = {}
    level = {root: True}
    while level:
        fresh = {name: refers for name, refers in level.items() if name not in looked_at}
        stored = yield from plan.fetch(list(fresh))
        level = {}
        for name, refers in fresh.items():
            inner: list[tuple[bytes, bool]] = []
            try:
                if name not in stored:
                    raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
                raw = checked(name, stored[name])
                inner = references(raw) if refers else []
                looked_at[name] = ""
            except CheckpointIntegrityError as error:
                looked_at[name] = error.reason
            for child, _ in inner:
                above.setdefault(child, []).append(name)
            level.update(inner)
    # What leads to a damaged chunk is damaged too, for every state that shares it.
    damaged = [name for name in (*above, root) if looked_at[name]]
    while damaged:
        name = damaged.pop()
        for parent in above.get(name, ()):
            if not looked_at[parent]:
                looked_at[parent] = looked_at[name]
                damaged.append(parent)
    if looked_at[root]:
        raise CheckpointIntegrityError(None, looked_at[root])
