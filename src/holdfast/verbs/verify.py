"""The verb that proves a store: every record, chunk and note, and what leads to what."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.core.chunk_decoder import decode, references
from holdfast.core.chunk_format import checked, chunk_id, decompress
from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Note, Query, end_of_page
from holdfast.stores.capabilities import ListsLost
from holdfast.verbs.chains import circles, is_next, next_in, shown
from holdfast.verbs.links import PAGE, links_of
from holdfast.verbs.notes import beneath, needs_of
from holdfast.verbs.progress import Progress
from holdfast.verbs.read import verify_record

_PAGE = 500
_FEW = 3


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
    loose: list[Damage] = field(default_factory=list)
    """Notes that lead nowhere: of a checkpoint that was removed, or to one. They do no harm."""

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged

    def __str__(self) -> str:
        parts = [f"{self.checkpoints:,} checkpoints verified, {len(self.damaged):,} damaged"]
        parts += [f"{each.checkpoint_id} ({each.reason})" for each in self.damaged[:_FEW]]
        if len(self.damaged) > _FEW:
            parts.append(f"and {len(self.damaged) - _FEW:,} more")
        if self.loose:
            parts.append(f"{len(self.loose):,} notes lead nowhere")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return f"<Verified: {self}>"


@dataclass(slots=True)
class _Links:
    """What leads to what in a store, as far as it was looked at."""

    parents: dict[str, str | None] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    scopes: set[str] = field(default_factory=set)
    following: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What followed a checkpoint last, and the key of the note that says so."""

    def add(self, info: CheckpointInfo) -> None:
        session = (info.agent_id, info.session_id)
        self.parents[info.checkpoint_id] = info.parent_id
        self.sessions[info.checkpoint_id] = self._numbers.setdefault(session, len(self._numbers))

    def damaged(self) -> list[Damage]:
        """Circles, and notes that lead to another session."""
        found: list[Damage] = []
        for ids in circles(self.parents):
            found += [Damage(each, shown(ids, "its parents lead")) for each in ids]
        nexts: dict[str, str | None] = {s: target for s, (target, _) in self.following.items()}
        for ids in circles(nexts):
            what = "the notes of what followed it lead"
            found += [Damage(each, shown(ids, what)) for each in ids]
        for scope, (target, key) in self.following.items():
            both = (self.sessions.get(scope), self.sessions.get(target))
            if None not in both and both[0] != both[1]:
                found.append(
                    Damage(scope, f"its note {key!r} leads to {target}, of another session")
                )
        return found

    def loose(self) -> list[Damage]:
        """Notes whose checkpoint is gone, and those that lead to one that is."""
        found = [
            Damage(scope, "it has notes and is not there itself: gc() removes them")
            for scope in sorted(self.scopes)
            if not scope.startswith("/") and scope not in self.parents
        ]
        found += [
            Damage(scope, f"its note {key!r} leads to {target}, which was removed")
            for scope, (target, key) in self.following.items()
            if scope in self.parents and target not in self.parents
        ]
        return found


def verify(engine: Engine, progress: Progress | None) -> Plan[Verified]:
    """Read every checkpoint and note, and name each that is damaged."""
    total = (yield from steps.stats()).checkpoints if progress is not None else None
    damaged: list[Damage] = []
    looked_at: dict[bytes, str] = {}  # chunks, with what is wrong with them
    links = _Links()
    done, after = 0, ""
    ends: set[str] = set()
    while True:
        ids = yield from steps.match("", _PAGE, after)
        for checkpoint_id in ids:
            try:
                info = yield from _verify_one(engine, checkpoint_id, looked_at)
                if info is not None:
                    links.add(info)
            except CheckpointIntegrityError as error:
                damaged.append(Damage(checkpoint_id, error.reason))
            done += 1
            if progress is not None:
                progress(done, total)
        if len(ids) < _PAGE:
            break
        after = ids[-1]
        if after in ends:
            damaged.append(Damage(after, "it is listed again behind itself"))
            break
        ends.add(after)
    damaged += yield from _lost(engine)
    damaged += yield from _damaged_notes(engine, looked_at, links)
    known = {damage.checkpoint_id for damage in damaged}
    loose = [each for each in links.loose() if each.checkpoint_id not in known]
    return Verified(done, damaged + links.damaged(), loose)


def _lost(engine: Engine) -> Plan[list[Damage]]:
    """Return what a server lists and does not have any more."""
    if not engine.can(ListsLost):
        return []
    return [Damage(*each) for each in (yield from steps.lost())]


def _damaged_notes(
    engine: Engine, looked_at: dict[bytes, str], links: _Links
) -> Plan[list[Damage]]:
    damaged: list[Damage] = []
    after = 0
    while page := (yield from steps.notes(None, after, _PAGE)):
        for note in page:
            links.scopes.add(note.scope)
            try:
                yield from _verify_chunks(dict(needs_of(note)), looked_at)
                if is_next(note.key):
                    links.following[note.scope] = (yield from _followed(note)), note.key
            except CheckpointIntegrityError as error:
                damaged.append(Damage(note.scope, error.reason))
        try:
            after = end_of_page(page, after)
        except CheckpointIntegrityError as error:
            damaged.append(Damage(page[-1].scope, error.reason))
            break
    return damaged


def _followed(note: Note) -> Plan[str]:
    """Return the checkpoint that a note says came next."""
    raw = decompress(note.body)
    chunks = yield from beneath([raw])
    try:
        return next_in(decode(chunk_id(raw), {**chunks, chunk_id(raw): raw}, on_unknown="raw"))
    except ValueError as error:
        raise CheckpointIntegrityError(note.scope, str(error)) from None


def _verify_one(
    engine: Engine, checkpoint_id: str, looked_at: dict[bytes, str]
) -> Plan[CheckpointInfo | None]:
    if not engine.shares_chunks:
        record = yield from steps.load(checkpoint_id)
        if record is not None:
            verify_record(record.info)
            root = bytes.fromhex(record.info.content_id)
            yield from _verify_chunks(links_of(root, record.chunks), looked_at)
            return record.info
        return None
    found = yield from steps.query(Query(ids=[checkpoint_id], include_expired=True))
    if not found:
        if checkpoint_id in (yield from steps.match(checkpoint_id, 1)):
            raise CheckpointIntegrityError(checkpoint_id, "its record has lost its session")
        return None  # removed meanwhile
    verify_record(found[0])
    yield from _verify_chunks({bytes.fromhex(found[0].content_id): True}, looked_at)
    return found[0]


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
            stored = yield from steps.fetch(page)
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
