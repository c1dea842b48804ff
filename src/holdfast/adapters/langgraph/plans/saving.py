"""Keeping checkpoints, and what tasks wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

from holdfast.adapters.langgraph import task_writes
from holdfast.adapters.langgraph.channel_codec import ChannelCodec
from holdfast.adapters.langgraph.files import OUTSIDE, Stage
from holdfast.adapters.langgraph.records import in_lists, payload_of, record_of
from holdfast.adapters.langgraph.saver_context import SaverContext
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.errors import InvalidArgumentError, SerializationError
from holdfast.ids import new_id
from holdfast.runtime.steps import Plan
from holdfast.verbs import notes, save


def put(
    context: SaverContext,
    codec: ChannelCodec,
    position: ThreadPosition,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    stage: Stage = OUTSIDE,
) -> Plan[None]:
    """Keep a checkpoint; its parent is the one that the position names."""
    metadata = in_lists(metadata)
    parent = position.checkpoint_id
    parent_id = None if parent is None else context.record_id(position, parent)
    sent = context.take_sent(position)
    info = record_of(context.agent_id, position, parent_id, checkpoint, metadata, sent)
    state, files = codec.state(checkpoint), None
    if context.files is not None:
        files = yield from context.files.of_checkpoint(
            context.engine, info, stage, metadata.get("source")
        )
    payload = payload_of(state, parent, metadata, files)
    try:
        yield from save.write(context.engine, info, payload, context.append_only)
    except SerializationError as error:
        _name_as_langgraph(error)
        if not error.path.startswith("$.channel_values"):
            raise
        state = codec.with_unkeepable_sealed(state, error)
        yield from save.write(context.engine, info, payload_of(state, parent, metadata, files))
    context.will_send(position, checkpoint)
    if context.files is not None:
        yield from context.files.kept_by(files, info.checkpoint_id)


def _name_as_langgraph(error: SerializationError) -> None:
    """Name a path as it is in a checkpoint of LangGraph's."""
    for ours, theirs in (("$.values", "$.channel_values"), ("$.checkpoint.", "$.")):
        if error.path.startswith(ours):
            error.path = theirs + error.path.removeprefix(ours)
            error.args = (f"{error.path}: {error.problem}",)
            return


def put_writes(
    context: SaverContext,
    codec: ChannelCodec,
    position: ThreadPosition,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Plan[None]:
    """Note what a task wrote, beside the checkpoint it ran on, which may come later."""
    if position.checkpoint_id is None:
        raise InvalidArgumentError("put_writes needs a config with a checkpoint_id")
    scope = context.record_id(position, position.checkpoint_id)
    written = notes.NoteBatch()
    noted = task_writes.noted(codec, writes, task_id, task_path)
    written.add(context.engine, scope, new_id(), noted)
    yield from written.write()
