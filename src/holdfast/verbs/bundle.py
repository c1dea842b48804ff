"""Bundles: one self-describing, checksummed file that moves checkpoints between any two stores."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.core.chunk_format import chunk_id, decompress
from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    FencedError,
    InvalidArgumentError,
    MissingBaseError,
    NoteExistsError,
)
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Commit, NotesOnly, Query
from holdfast.verbs.bundle_file import WITH_NOTES, WITHOUT_NOTES, Reader, Writer
from holdfast.verbs.ids import resolve
from holdfast.verbs.links import copy_linked, links_of
from holdfast.verbs.notes import NoteBatch, beneath, check
from holdfast.verbs.open_offers import enter, needs_no_entry
from holdfast.verbs.progress import Progress
from holdfast.verbs.read import find, verify_record

logger = logging.getLogger("holdfast")

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Exported:
    """What went into a bundle."""

    path: Path
    checkpoints: int
    chunks: int
    bytes: int
    notes: int = 0


@dataclass(frozen=True, slots=True)
class Imported:
    """What a bundle brought: new checkpoints and notes, and checkpoints that were there already."""

    checkpoints: int
    skipped: int
    notes: int = 0
    problems: tuple[str, ...] = ()
    """What leads in a circle or astray in it: such sessions can be looked at, and not gone on with.

    No export of a healthy store has any.
    """


def export(
    engine: Engine,
    file: str | Path,
    agent_id: str | None,
    session_id: str | None,
    ids: Collection[str] | None,
    progress: Progress | None,
) -> Plan[Exported]:
    """Write checkpoints with their chunks and notes to a bundle, oldest first."""
    infos = yield from _chosen(agent_id, session_id, ids)
    path = _path(file)
    version = WITH_NOTES if (yield from _any_notes(infos)) else WITHOUT_NOTES
    writer = yield from steps.do(lambda: Writer(path, version, len(infos), engine.files))
    try:
        for done, info in enumerate(reversed(infos), 1):
            record = yield from steps.load(info.checkpoint_id)
            if record is not None:  # one may expire while they are read
                verify_record(record.info)
                linked = links_of(bytes.fromhex(record.info.content_id), record.chunks)
                yield from copy_linked(linked, writer.linked, writer.add_linked)
                yield from steps.do(lambda r=record: writer.add(r.info, r.chunks))  # type: ignore[misc]
                if version == WITH_NOTES:
                    yield from _export_notes(writer, info.checkpoint_id)
            if progress is not None:
                progress(done, len(infos))
        size = yield from steps.do(writer.finish)
        return Exported(path, writer.records, writer.chunks, size, writer.notes)
    finally:
        writer.close()


def _any_notes(infos: list[CheckpointInfo]) -> Plan[bool]:
    for start in range(0, len(infos), _PAGE):
        scopes = [info.checkpoint_id for info in infos[start : start + _PAGE]]
        if (yield from steps.notes(scopes, 0, 1)):
            return True
    return False


def _export_notes(writer: Writer, checkpoint_id: str) -> Plan[None]:
    for note in (yield from steps.notes([checkpoint_id])):
        check(note)
        try:
            body = decompress(note.body)
            chunks = yield from beneath([body])
            root = chunk_id(body)
            linked = links_of(root, {**chunks, root: body})
            yield from copy_linked(linked, writer.linked, writer.add_linked)
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(checkpoint_id, error.reason) from None
        yield from steps.do(lambda n=note, c=chunks: writer.add_note(n, c))  # type: ignore[misc]


def _chosen(
    agent_id: str | None, session_id: str | None, ids: Collection[str] | None
) -> Plan[list[CheckpointInfo]]:
    if ids is None:
        if agent_id is None and session_id is None:
            return (yield from steps.query(Query()))
        return (yield from find(agent_id=agent_id, session_id=session_id, limit=None))
    if isinstance(ids, str):
        raise InvalidArgumentError("ids is a list of checkpoint ids, not one string")
    whole: list[str] = []
    for checkpoint_id in ids:
        whole += [(yield from resolve(checkpoint_id))]
    infos = yield from steps.query(Query(ids=whole))
    missing = set(whole) - {info.checkpoint_id for info in infos}
    if missing:
        raise CheckpointNotFoundError(min(missing))
    return infos


def _path(file: object) -> Path:
    if not isinstance(file, (str, os.PathLike)) or not os.fspath(file):
        raise InvalidArgumentError(f"a bundle is named by a path, not {file!r}")
    return Path(file)


def import_(engine: Engine, file: str | Path, progress: Progress | None) -> Plan[Imported]:
    """Bring the checkpoints of a bundle into this store; those it has are left as they are."""
    reader = yield from steps.do(lambda: Reader(_path(file)))
    try:
        known = yield from _known(reader.records)
        new, noted = 0, 0
        last: tuple[str | None, Collection[bytes]] = (None, ())
        before: dict[tuple[str, str], str] = {}
        for done, info in enumerate(reader.records, 1):
            session = (info.agent_id, info.session_id)
            if not info.is_expired():
                yield from _bring_linked(reader, info)
                notes = yield from _new_notes(engine, reader, info.checkpoint_id)
                added = None
                if info.checkpoint_id not in known:
                    chunks = yield from steps.do(lambda i=info: reader.chunks_of(i))  # type: ignore[misc]
                    behind = tuple(filter(None, (before.get(session), info.parent_id)))
                    added = yield from _bring(engine, info, chunks, notes, behind, *last)
                    if engine.shares_chunks:
                        last = info.checkpoint_id, chunks.keys()
                    new += added is not None
                noted += (yield from _commit(notes)) if added is None else added
                before[session] = info.checkpoint_id
            if progress is not None:
                progress(done, len(reader.records))
        for problem in reader.problems:
            logger.warning("imported from %s: %s", file, problem)
        return Imported(new, len(reader.records) - new, noted, tuple(reader.problems))
    finally:
        reader.close()


def _bring_linked(reader: Reader, info: CheckpointInfo) -> Plan[None]:
    """Commit what the links of a checkpoint and its notes lead to, ahead of them."""
    pages = reader.linked_of(info)
    while (page := (yield from steps.do(lambda: next(pages, None)))) is not None:
        yield from steps.commit(NotesOnly((), page))


def _known(records: list[CheckpointInfo]) -> Plan[set[str]]:
    """Return those that the store has already; one of other content is a conflict."""
    checksums = {info.checkpoint_id: info.checksum for info in records}
    known: set[str] = set()
    for start in range(0, len(records), _PAGE):
        ids = [info.checkpoint_id for info in records[start : start + _PAGE]]
        for info in (yield from steps.query(Query(ids=ids, include_expired=True))):
            if info.checksum != checksums[info.checkpoint_id]:
                raise CheckpointConflictError(info.checkpoint_id)
            known.add(info.checkpoint_id)
    return known


def _new_notes(engine: Engine, reader: Reader, checkpoint_id: str) -> Plan[NotesOnly]:
    """Return those of a checkpoint's notes that the store does not have, with their chunks."""
    if checkpoint_id not in reader.noted:
        return NotesOnly((), {})
    there = {note.key for note in (yield from steps.notes([checkpoint_id]))}
    return (
        yield from steps.do(lambda: reader.notes_of(checkpoint_id, there, engine.shares_chunks))
    )


def _bring(
    engine: Engine,
    info: CheckpointInfo,
    chunks: dict[bytes, bytes],
    notes: NotesOnly,
    behind: tuple[str, ...],
    base: str | None,
    sent: Collection[bytes],
) -> Plan[int | None]:
    """Commit a record with its notes, without the chunks sent with the one before it.

    It stands behind what it stood behind where it comes from; what this store has of its session
    besides, it does not overtake.
    Returns how many notes were new; None if the record is there.
    """
    fresh = {name: data for name, data in chunks.items() if name not in sent}
    commit = Commit(
        info,
        {**fresh, **notes.chunks},
        base,
        needs_parent=False,
        notes=notes.notes,
        unless=needs_no_entry(info),
        behind=behind,
    )
    try:
        try:
            return (yield from _commit_based(commit, chunks))
        except FencedError:
            entry = NoteBatch()
            enter(engine, entry, info)
            beside = {**commit.chunks, **entry.chunks}
            written = (*notes.notes, *entry.notes)
            commit = replace(commit, chunks=beside, notes=written, unless=None)
            return (yield from _commit_based(commit, chunks)) - len(entry.notes)
    except CheckpointConflictError:
        yield from _known([info])  # another process may be importing the same bundle
        return None


def _commit_based(commit: Commit, chunks: Mapping[bytes, bytes]) -> Plan[int]:
    """Commit without the chunks of the base, or with all if that is gone; as ``_commit``."""
    try:
        return (yield from _commit(commit))
    except MissingBaseError:  # removed meanwhile, and its chunks perhaps too
        return (yield from _commit(replace(commit, chunks={**chunks, **commit.chunks}, base=None)))


def _commit(commit: Commit | NotesOnly) -> Plan[int]:
    """Commit without those notes that are there meanwhile; returns how many are new."""
    while isinstance(commit, Commit) or commit.notes:
        try:
            yield from steps.commit(commit)
            break
        except NoteExistsError as error:
            taken = (error.note.scope, error.note.key)
            left = tuple(note for note in commit.notes if (note.scope, note.key) != taken)
            commit = replace(commit, notes=left)
    return len(commit.notes)
