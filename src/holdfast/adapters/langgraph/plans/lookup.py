"""Finding the checkpoint that a position names, or the newest there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from holdfast.adapters.langgraph.channel_codec import ChannelCodec
from holdfast.adapters.langgraph.checkpoint_ids import says_when
from holdfast.adapters.langgraph.files import Stage, check_waits
from holdfast.adapters.langgraph.records import tuple_of
from holdfast.adapters.langgraph.saver_context import SaverContext, is_fork
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.adapters.langgraph.thread_records import every, langgraph_id, newest, put_by_a_saver
from holdfast.errors import CheckpointNotFoundError
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query, Record
from holdfast.stores.capabilities import FindsNewest
from holdfast.verbs import notes
from holdfast.verbs.read import revive


def get(
    context: SaverContext, codec: ChannelCodec, position: ThreadPosition, stage: Stage
) -> Plan[CheckpointTuple | None]:
    """Return the checkpoint that a position names, or the newest of its namespace."""
    files = context.files if stage.begins else None
    if files is not None:
        check_waits(stage)
    record = yield from _load(context, position)
    if record is None:
        return None
    kept = revive(context.engine, record, trusts=codec.trusts)
    context.engine.restored(record)
    noted = (yield from noted_on(context, codec, [record.info]))[kept.checkpoint_id]
    if files is not None:
        is_new_way = is_fork(position, record.info) and not noted
        yield from files.put_back(kept, record.info, is_new_way, bool(noted))
    found = tuple_of(codec, kept, noted)
    context.will_send(position, found.checkpoint)
    return found


def named_id(context: SaverContext, position: ThreadPosition) -> Plan[str]:
    """Return the id of the record of a position; CheckpointNotFoundError if there is none."""
    info = yield from find(context, position)
    if info is None:
        raise CheckpointNotFoundError(
            position.checkpoint_id or position.session_id, "the thread has no such checkpoint"
        )
    return info.checkpoint_id


def _load(context: SaverContext, position: ThreadPosition) -> Plan[Record | None]:
    """Return the record of a position with its chunks: where it lies as a rule, or looked for."""
    record = None
    if position.checkpoint_id is not None:
        record = yield from steps.load(context.record_id(position, position.checkpoint_id))
    elif context.engine.can(FindsNewest):
        record = yield from steps.newest(context.agent_id, position.session_id)
        if record is None:
            return None  # a new thread
    if record is not None and _is_ours(context, record.info) and _is_last(position, record.info):
        context.found(position, record.info)
        return record
    info = yield from find(context, position)
    return None if info is None else (yield from steps.load(info.checkpoint_id))


def find(context: SaverContext, position: ThreadPosition) -> Plan[CheckpointInfo | None]:
    """Return the record of a position without its chunks; None if there is none."""
    session = Query(agent_id=context.agent_id, session_id=position.session_id)
    if position.checkpoint_id is None:
        info = yield from newest(session)
        if info is not None and not _is_last(position, info):
            info = max((yield from every(session)), key=langgraph_id)
    else:
        record_id = context.record_id(position, position.checkpoint_id)
        info = yield from newest(Query(ids=[record_id], agent_id=context.agent_id))
        if info is None:  # a fork made by Holdfast: it has an id of its own
            tags = {"checkpoint_id": position.checkpoint_id}
            info = yield from newest(replace(session, tags=tags))
    if info is not None:
        context.found(position, info)
    return info


def _is_last(position: ThreadPosition, info: CheckpointInfo) -> bool:
    """Return whether what was written last is the last of a thread for LangGraph's savers.

    For them that is the greatest id, which is the same for ids that say when they were made.
    """
    return position.checkpoint_id is not None or says_when(langgraph_id(info))


def _is_ours(context: SaverContext, info: CheckpointInfo) -> bool:
    return info.agent_id == context.agent_id and put_by_a_saver(info)


def noted_on(
    context: SaverContext, codec: ChannelCodec, infos: Collection[CheckpointInfo]
) -> Plan[dict[str, list[dict[str, Any]]]]:
    """Return what tasks wrote on these checkpoints."""
    found: dict[str, list[dict[str, Any]]] = {info.checkpoint_id: [] for info in infos}
    for note, value in (yield from notes.read(context.engine, found.keys(), trusts=codec.trusts)):
        found[note.scope].append(value)
    return found
