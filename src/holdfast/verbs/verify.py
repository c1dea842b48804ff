"""The verb that proves a store: every record, chunk and note, and what leads to what."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from holdfast.core.chunk_decoder import decode, references
from holdfast.core.chunk_format import checked, chunk_id, decompress
from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Note, Query, end_of_page
from holdfast.stores.capabilities import FilesRecords, ListsLost
from holdfast.verbs.chains import is_next, next_in
from holdfast.verbs.links import PAGE, links_of
from holdfast.verbs.looked_at import LookedAt
from holdfast.verbs.notes import beneath, needs_of
from holdfast.verbs.progress import Progress
from holdfast.verbs.read import verify_record

_PAGE = 250
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


def verify(engine: Engine, progress: Progress | None) -> Plan[Verified]:
    """Read every checkpoint and note, and name each that is damaged."""
    total = (yield from steps.stats()).checkpoints if progress is not None else None
    damaged: list[Damage] = []
    done, after = 0, ""
    with closing(LookedAt()) as looked_at:
        while ids := (yield from steps.match("", _PAGE, after)):
            found = yield from _verify_some(engine, ids, looked_at)
            damaged += (Damage(each, found[each]) for each in ids if each in found)
            for _ in ids:
                done += 1
                if progress is not None:
                    progress(done, total)
            if len(ids) < _PAGE:
                break
            if ids[-1] == after or (yield from steps.do(partial(looked_at.ended_at, ids[-1]))):
                damaged.append(Damage(ids[-1], "it is listed again behind itself"))
                break
            after = ids[-1]
        damaged += yield from _lost(engine)
        damaged += yield from _damaged_notes(engine, looked_at)
        known = {damage.checkpoint_id for damage in damaged}
        astray = yield from steps.do(lambda: list(looked_at.astray()))
        loose = yield from steps.do(
            lambda: [each for each in looked_at.loose() if each[0] not in known]
        )
    damaged += (Damage(*each) for each in astray)
    return Verified(done, damaged, [Damage(*each) for each in loose])


def _lost(engine: Engine) -> Plan[list[Damage]]:
    """Return what a server lists and does not have any more."""
    if not engine.can(ListsLost):
        return []
    return [Damage(*each) for each in (yield from steps.lost())]


def _damaged_notes(engine: Engine, looked_at: LookedAt) -> Plan[list[Damage]]:
    damaged: list[Damage] = []
    after = 0
    while page := (yield from steps.notes(None, after, _PAGE)):
        yield from steps.do(partial(looked_at.add_scopes, [note.scope for note in page]))
        for note in page:
            try:
                wrong = yield from _verify_chunks(dict(needs_of(note)), looked_at)
                if wrong:
                    raise CheckpointIntegrityError(note.scope, next(iter(wrong.values())))
                if is_next(note.key):
                    looked_at.follow(note.scope, (yield from _followed(note)), note.key)
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


def _verify_some(engine: Engine, ids: list[str], looked_at: LookedAt) -> Plan[dict[str, str]]:
    """Return which of the checkpoints are damaged, and how."""
    wrong: dict[str, str] = {}
    if engine.shares_chunks:
        infos = yield from _records(ids, wrong)
        roots = {bytes.fromhex(info.content_id): True for info in infos}
        broken = yield from _verify_chunks(roots, looked_at)
        for info in infos:
            reason = broken.get(bytes.fromhex(info.content_id))
            # Its chunks may be gone because it was removed while they were read.
            if reason is not None and (yield from _is_there(info.checkpoint_id)):
                wrong[info.checkpoint_id] = reason
        if engine.can(FilesRecords):
            whole = [info for info in infos if info.checkpoint_id not in wrong]
            wrong |= dict((yield from steps.misfiled(whole)))
    else:
        infos = []
        for checkpoint_id in ids:
            try:
                infos += yield from _verify_document(checkpoint_id, looked_at)
            except CheckpointIntegrityError as error:
                wrong[checkpoint_id] = error.reason
    yield from steps.do(lambda: looked_at.add([i for i in infos if i.checkpoint_id not in wrong]))
    return wrong


def _records(ids: list[str], wrong: dict[str, str]) -> Plan[list[CheckpointInfo]]:
    """Return the records that are whole; one that cannot even be read stops no other."""
    whole: list[CheckpointInfo] = []
    try:
        found = yield from steps.query(Query(ids=ids, include_expired=True))
    except CheckpointIntegrityError as error:
        if len(ids) == 1:
            wrong[ids[0]] = error.reason
            return []
        for checkpoint_id in ids:
            whole += yield from _records([checkpoint_id], wrong)
        return whole
    for info in found:
        try:
            verify_record(info)
            whole.append(info)
        except CheckpointIntegrityError as error:
            wrong[info.checkpoint_id] = error.reason
    for checkpoint_id in sorted({*ids} - {info.checkpoint_id for info in found}):
        if (yield from _is_there(checkpoint_id)):  # else it was removed meanwhile
            wrong[checkpoint_id] = "its record has lost its session"
    return whole


def _is_there(checkpoint_id: str) -> Plan[bool]:
    return checkpoint_id in (yield from steps.match(checkpoint_id, 1))


def _verify_document(checkpoint_id: str, looked_at: LookedAt) -> Plan[list[CheckpointInfo]]:
    """Check a checkpoint of a store whose records hold their chunks."""
    record = yield from steps.load(checkpoint_id)
    if record is None:
        return []
    verify_record(record.info)
    root = bytes.fromhex(record.info.content_id)
    wrong = yield from _verify_chunks(links_of(root, record.chunks), looked_at)
    if wrong:
        raise CheckpointIntegrityError(checkpoint_id, next(iter(wrong.values())))
    return [record.info]


def _verify_chunks(roots: dict[bytes, bool], looked_at: LookedAt) -> Plan[dict[bytes, str]]:
    """Check all chunks that some need, each once, however many states share it.

    Returns which of those given cannot be read whole, and why.
    """
    above: dict[bytes, list[bytes]] = {}
    found: dict[bytes, str] = {}
    level = roots
    while level:
        known = yield from steps.do(partial(looked_at.reasons, level))
        found.update(known)
        names = [name for name in level if name not in known]
        following: dict[bytes, bool] = {}
        for start in range(0, len(names), PAGE):
            page = names[start : start + PAGE]
            stored = yield from steps.fetch(page)
            for name in page:
                inner: list[tuple[bytes, bool]] = []
                try:
                    if name not in stored:
                        raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
                    raw = checked(name, stored[name])
                    inner = references(raw, links=True) if level[name] else []
                    found[name] = ""
                except CheckpointIntegrityError as error:
                    found[name] = error.reason
                for child, _ in inner:
                    above.setdefault(child, []).append(name)
                following.update(inner)
            yield from steps.do(partial(looked_at.add_chunks, {n: found[n] for n in page}))
        level = {name: refers for name, refers in following.items() if name not in found}
    # What leads to a damaged chunk is damaged too, for every state that shares it.
    damaged = [name for name in (*above, *roots) if found[name]]
    spoilt: dict[bytes, str] = {}
    while damaged:
        name = damaged.pop()
        for parent in above.get(name, ()):
            if not found[parent]:
                spoilt[parent] = found[parent] = found[name]
                damaged.append(parent)
    if spoilt:
        yield from steps.do(partial(looked_at.add_chunks, spoilt))
    return {root: found[root] for root in roots if found[root]}
