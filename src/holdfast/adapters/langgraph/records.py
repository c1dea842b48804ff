"""LangGraph's checkpoints as Holdfast's records, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.types import TASKS, SendProtocol

from holdfast.adapters.langgraph import task_writes
from holdfast.adapters.langgraph.channel_codec import ChannelCodec
from holdfast.adapters.langgraph.checkpoint_ids import made_at
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.errors import CheckpointIntegrityError, HoldfastError
from holdfast.model import Checkpoint as Kept
from holdfast.model import CheckpointInfo, Framework, make_payload, new_info

_NO_NODES = ("__input__", "__interrupt__")
BUILDS_ON = "builds_on"
"""The tag of a checkpoint that is not whole: the delta channels its ancestors hold the rest of."""
_OWN_TAGS = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", BUILDS_ON})


def in_lists(metadata: Any) -> Any:
    """Return metadata as every saver of LangGraph's gives them: tuples are lists there."""
    if type(metadata) is dict:
        return {name: in_lists(value) for name, value in metadata.items()}
    if type(metadata) in (list, tuple):
        return [in_lists(value) for value in metadata]
    return metadata


def record_of(
    agent_id: str,
    position: ThreadPosition,
    parent_id: str | None,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    sent: Sequence[str] = (),
) -> CheckpointInfo:
    """Return the record of a checkpoint in the namespace of a position.

    ``sent`` names the nodes that the step before had sent something to.
    """
    tags: dict[str, Any] = {
        **metadata,
        "thread_id": position.thread_id,
        "checkpoint_ns": position.namespace,
        "checkpoint_id": checkpoint["id"],
    }
    counters = metadata.get("counters_since_delta_snapshot") or {}
    deltas = [name for name in counters if name not in checkpoint["channel_values"]]
    if deltas:
        tags[BUILDS_ON] = deltas
    info = new_info(
        agent_id=agent_id,
        session_id=position.session_id,
        parent_id=parent_id,
        framework=Framework.LANGGRAPH,
        step_index=max(0, metadata.get("step", -1) + 1),
        step_name=_step_name(checkpoint, metadata, sent),
        metadata=tags,
    )
    own = {
        "checkpoint_id": position.record_id(checkpoint["id"]),
        "created_at": made_at(checkpoint["id"], checkpoint.get("ts")) or info.created_at,
    }
    return CheckpointInfo.of({**info.__dict__, **own})


def payload_of(
    state: dict[str, Any], parent: str | None, metadata: CheckpointMetadata, files: Any = None
) -> Any:
    """Return the payload of a checkpoint; LangGraph's parent and odd metadata are kept exactly."""
    if parent is not None:
        state["parent"] = parent
    if _OWN_TAGS & metadata.keys():
        state["metadata"] = metadata
    return make_payload(state, {}, workspace=files)


def _step_name(
    checkpoint: Checkpoint, metadata: CheckpointMetadata, sent: Sequence[str]
) -> str | None:
    """Return the nodes that ran in this step; for what came from outside, its source.

    A node that ran has seen the newest version there was before this step. One that something was
    sent to (``Send``) has seen none.
    """
    source = metadata.get("source")
    before = max(map(_number, checkpoint["channel_versions"].values()), default=0) - 1
    nodes = [
        node
        for node, seen in checkpoint["versions_seen"].items()
        if seen and node not in _NO_NODES and max(map(_number, seen.values())) == before
    ]
    nodes += [node for node in sent if node not in nodes]
    return ", ".join(nodes) if nodes and source == "loop" else source


def sent_to(checkpoint: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the nodes that a checkpoint says something is sent to next, each once."""
    tasks = checkpoint["channel_values"].get(TASKS)
    named = [task.node for task in tasks or () if isinstance(task, SendProtocol)]
    return tuple(dict.fromkeys(named))


def _number(version: Any) -> int:
    """Return the number that a version is or begins with; -1 where it has none."""
    digits = str(version).partition(".")[0]
    return int(digits) if digits.isdecimal() else -1


def tuple_of(codec: ChannelCodec, kept: Kept, noted: Iterable[dict[str, Any]]) -> CheckpointTuple:
    """Return a kept checkpoint as LangGraph knows it, with what tasks wrote on it."""
    position = ThreadPosition.of_session(kept.session_id)
    state = kept.execution_state
    with damage_named(kept.checkpoint_id):
        checkpoint = {**state["checkpoint"], "channel_values": codec.values(state)}
        parent = state.get("parent")
        metadata = state.get("metadata")
        if metadata is None:
            metadata = {k: v for k, v in kept.metadata.items() if k not in _OWN_TAGS}
        return CheckpointTuple(
            position.config(checkpoint["id"]),
            cast(Checkpoint, checkpoint),
            in_lists(metadata),
            None if parent is None else position.config(parent),
            task_writes.pending(codec, noted),
        )


@contextmanager
def damage_named(checkpoint_id: str) -> Iterator[None]:
    """Name as damaged a record that no saver wrote so, whatever is found in it."""
    try:
        yield
    except HoldfastError:
        raise
    except (LookupError, TypeError, AttributeError) as error:
        raise CheckpointIntegrityError(
            checkpoint_id, f"it is not a checkpoint of LangGraph ({error!r})"
        ) from error
