"""Giving another thread the checkpoints of one, without writing a state twice."""

from __future__ import annotations

from holdfast.adapters.langgraph.plans.listing import of_thread
from holdfast.adapters.langgraph.saver_context import SaverContext
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.adapters.langgraph.thread_records import langgraph_id
from holdfast.core.chunk_format import compress
from holdfast.errors import CheckpointConflictError, NoteExistsError
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Commit, Note
from holdfast.verbs.notes import NoteBatch
from holdfast.verbs.open_offers import enter
from holdfast.verbs.thread_names import thread_of


def copy_thread(context: SaverContext, source: str, target: str) -> Plan[None]:
    """Give another thread the same checkpoints and writes; what it has already is left alone."""
    infos = yield from of_thread(context, source)
    copies = {info.checkpoint_id: _in_thread(target, info) for info in infos}
    for info in reversed(infos):
        copy = copies[info.checkpoint_id]
        parent = copies.get(info.parent_id or "")
        if parent is not None:  # else it is in another thread, which this one was forked from
            copy = copy.with_(parent_id=parent.checkpoint_id)
        noted = yield from steps.notes([info.checkpoint_id])
        renamed = [Note.of(copy.checkpoint_id, n.key, n.body, n.expires_at) for n in noted]
        try:
            yield from _commit(context, info, copy, renamed)
        except (CheckpointConflictError, NoteExistsError):
            continue


def _in_thread(thread_id: str, info: CheckpointInfo) -> CheckpointInfo:
    """Return the record of the same checkpoint in another thread."""
    position = ThreadPosition(thread_id, thread_of(info.session_id)[1])
    return info.with_(
        checkpoint_id=position.record_id(langgraph_id(info)),
        session_id=position.session_id,
        metadata={**info.metadata, "thread_id": thread_id},
    )


def _commit(
    context: SaverContext, source: CheckpointInfo, copy: CheckpointInfo, renamed: list[Note]
) -> Plan[None]:
    entry = NoteBatch()
    enter(context.engine, entry, copy)
    noted = (*renamed, *entry.notes)
    if context.engine.shares_chunks:
        commit = Commit(copy, entry.chunks, source.checkpoint_id, False, noted)
    else:
        record = yield from steps.load(source.checkpoint_id)
        chunks = {} if record is None else record.chunks
        stored = {name: compress(raw) for name, raw in chunks.items()} | entry.chunks
        commit = Commit(copy, stored, None, False, noted)
    yield from steps.commit(commit)
