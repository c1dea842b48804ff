"""Moving in: the checkpoints that LangGraph's own savers have written, brought into a store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph import task_writes
from holdfast.adapters.langgraph.channel_codec import ChannelCodec, value_path
from holdfast.adapters.langgraph.importing.open_source import open_source
from holdfast.adapters.langgraph.importing.source import (
    Source,
    SourceCheckpoint,
    SourceWrite,
    loader_of,
)
from holdfast.adapters.langgraph.plans import saving
from holdfast.adapters.langgraph.safe_reading import DEFAULT
from holdfast.adapters.langgraph.saver import AGENT
from holdfast.adapters.langgraph.saver_context import SaverContext
from holdfast.client import SyncClient
from holdfast.core.codec import pack
from holdfast.errors import (
    CheckpointConflictError,
    InvalidArgumentError,
    NoteExistsError,
    SerializationError,
)
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import NotesOnly, Query
from holdfast.verbs.notes import NoteBatch


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move brought into the store."""

    threads: int
    """Threads of which something was brought."""
    checkpoints: int
    skipped: int
    """Checkpoints that were there already."""
    writes: int
    """What tasks wrote in steps, finished or not."""


def move_in(
    source: str | Path,
    client: SyncClient,
    *,
    agent_id: str = AGENT,
    serde: SerializerProtocol | None = None,
    trust: Collection[str | type] = (),
    seal_with: SerializerProtocol | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Moved:
    """Bring over all threads from the SQLite file or PostgreSQL URL of a LangGraph saver.

    A graph compiled with ``HoldfastSaver(client)`` then goes on where it stood. The source is only
    read. What is in the store already is left alone, so a move can be interrupted and run again.

    What the source holds is read strictly: plain values, messages and LangGraph's own types. A
    class of yours is named in the error, and let through by ``trust``, as a class or as
    ``"module:Class"``. Nothing that only the source names is imported or called.

    ``serde`` is the serializer the source was written with, if it was given one. An encrypting one
    seals the values in the store too: give it to HoldfastSaver as well, or say
    ``seal_with=JsonPlusSerializer()`` to have them readable.

    >>> from langgraph.checkpoint.sqlite import SqliteSaver
    >>> from holdfast import SyncClient
    >>> from holdfast.adapters.langgraph import move_in
    >>> with SqliteSaver.from_conn_string("checkpoints.db") as old:  # what you have
    ...     old.setup()
    >>> with SyncClient.memory() as client:
    ...     move_in("checkpoints.db", client)
    Moved(threads=0, checkpoints=0, skipped=0, writes=0)
    """
    if not isinstance(client, SyncClient):
        raise InvalidArgumentError(
            f"move_in brings checkpoints to a SyncClient, not {type(client).__name__}"
        )
    runtime = client.runtime
    context = SaverContext(runtime.engine, agent_id)
    tally = _Tally()
    with open_source(source, loader_of(serde, trust)) as opened:
        codec = ChannelCodec(seal_with or serde or DEFAULT, context.sealer)
        move = _Move(opened, context, codec, tally)
        total = opened.count()
        last: SourceCheckpoint | None = None
        while True:
            with opened.view():
                page = opened.page(last)
                runtime.run(move.page(page))
            if not page:
                break
            last = page[-1]
            if progress is not None:
                done = tally.checkpoints + tally.skipped
                progress(done, max(done, total))
    return Moved(tally.threads, tally.checkpoints, tally.skipped, tally.writes)


@dataclass(slots=True)
class _Tally:
    """What was brought so far."""

    threads: int = 0
    checkpoints: int = 0
    skipped: int = 0
    writes: int = 0
    newest_thread: str | None = None

    def touch(self, thread_id: str) -> None:
        """Count a thread once; they come one after the other."""
        self.threads += thread_id != self.newest_thread
        self.newest_thread = thread_id


@dataclass(frozen=True, slots=True)
class _Move:
    """A move from a source to the store of a saver's context."""

    source: Source
    context: SaverContext
    codec: ChannelCodec
    tally: _Tally

    def page(self, page: list[SourceCheckpoint]) -> Plan[None]:
        """Bring over these checkpoints, but for what is there."""
        wanted = {found.position.record_id(found.checkpoint_id): found for found in page}
        infos = yield from steps.query(Query(ids=list(wanted), include_expired=True))
        agents = {info.checkpoint_id: info.agent_id for info in infos}
        noted = {(note.scope, note.key) for note in (yield from steps.notes(list(wanted)))}
        for record_id, found in wanted.items():
            agent_id = agents.get(record_id)
            if agent_id not in (None, self.context.agent_id):
                raise found.refused(
                    f"the store has it as one of agent {agent_id!r}: "
                    "move it in as that agent, or into another store"
                )
            with _named(found):
                # Writes first: a checkpoint is there with all of them or not at all.
                yield from self._writes(found, record_id, noted)
                if agent_id is None:
                    yield from self._checkpoint(found)
                else:
                    self.tally.skipped += 1

    def _writes(
        self, found: SourceCheckpoint, scope: str, noted: set[tuple[str, str]]
    ) -> Plan[None]:
        written = NoteBatch()
        for rows in _by_task(self.source.writes(found)):
            key = _key(rows)
            if (scope, key) not in noted:
                written.add(self.context.engine, scope, key, self._value(found, rows))
                self.tally.writes += len(rows)
                self.tally.touch(found.thread_id)
        if written.notes:
            yield from _commit(written)

    def _value(self, found: SourceCheckpoint, rows: list[SourceWrite]) -> dict[str, Any]:
        """Return what is noted of a task's writes, under the numbers they have in the source."""
        values = [
            (row.channel, self.source.load(found, row.tag, row.data, value_path(row.channel)))
            for row in rows
        ]
        value = task_writes.noted(self.codec, values, rows[0].task_id, rows[0].task_path)
        for noted, row in zip(value["writes"], rows, strict=True):
            noted[0] = row.index
        return value

    def _checkpoint(self, found: SourceCheckpoint) -> Plan[None]:
        checkpoint, metadata = _checked(found, *self.source.read(found))
        try:
            yield from saving.put(self.context, self.codec, found.position, checkpoint, metadata)
        except CheckpointConflictError:  # another move brought it just now
            self.tally.skipped += 1
        else:
            self.tally.checkpoints += 1
            self.tally.touch(found.thread_id)


def _checked(
    found: SourceCheckpoint, checkpoint: object, metadata: object
) -> tuple[Checkpoint, CheckpointMetadata]:
    """Return both, if they are of the form that LangGraph gives them."""
    if not isinstance(checkpoint, dict) or checkpoint.get("id") != found.checkpoint_id:
        raise found.refused("what is kept under its id is not this checkpoint")
    for part in ("channel_values", "channel_versions", "versions_seen"):
        if not isinstance(checkpoint.get(part), dict):
            raise found.refused(f"it has no {part}")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("step", 0), int):
        raise found.refused("its metadata are not those of a checkpoint")
    return cast(Checkpoint, checkpoint), cast(CheckpointMetadata, metadata)


def _by_task(writes: list[SourceWrite]) -> Iterator[list[SourceWrite]]:
    """Yield the writes that are noted together.

    Errors, interrupts and resumes of a task apart from the rest: they replace what was noted of
    them before, and the rest does not.
    """

    def kind(row: SourceWrite) -> tuple[str, str, bool]:
        return row.task_id, row.task_path, row.channel in WRITES_IDX_MAP

    for _, rows in groupby(sorted(writes, key=lambda row: (*kind(row), row.index)), kind):
        yield list(rows)


def _key(rows: list[SourceWrite]) -> str:
    """Return a key that is the same for the same writes, so that they are noted once."""
    parts = [[r.task_id, r.task_path, r.index, r.channel, r.tag, r.data] for r in rows]
    return f"moved-{hashlib.sha256(pack(parts)).hexdigest()[:32]}"


def _commit(written: NoteBatch) -> Plan[None]:
    try:
        yield from written.write()
    except NoteExistsError:  # another move is at work on the same checkpoint
        for note in written.notes:
            try:
                yield from steps.commit(NotesOnly((note,), written.chunks))
            except NoteExistsError:
                continue


@contextmanager
def _named(found: SourceCheckpoint) -> Iterator[None]:
    """Say which checkpoint it was that cannot be kept, and why."""
    try:
        yield
    except (SerializationError, InvalidArgumentError) as error:
        raise found.refused(error) from error
