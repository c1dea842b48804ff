"""Snapshots of LangGraph's state as Holdfast checkpoints, for those who keep them by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph.channel_codec import ChannelCodec
from holdfast.adapters.langgraph.records import tuple_of
from holdfast.adapters.langgraph.safe_reading import DEFAULT
from holdfast.adapters.langgraph.sealer import Sealer
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.model import Checkpoint, CheckpointBuilder, Framework
from holdfast.verbs.thread_names import session_of
from holdfast.workspace import AsyncWorkspace, Workspace
from holdfast.workspace.async_workspace import as_workspace

_FIELDS = ("next", "metadata", "created_at", "tasks", "interrupts")
_NAMING = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
_TO_NODE = "branch:to:"


class LangGraphAdapter:
    """Turns what ``graph.get_state(config)`` gives into a checkpoint, and back into its parts.

    >>> from holdfast.adapters.langgraph import LangGraphAdapter
    >>> snapshot = {"values": {"n": 1}, "next": ("work",), "metadata": {"step": 2}}
    >>> checkpoint = LangGraphAdapter.extract(snapshot, agent_id="planner", context={"user": "ada"})
    >>> LangGraphAdapter.reconstruct(checkpoint)["next"]
    ('work',)
    """

    framework = Framework.LANGGRAPH

    @classmethod
    def extract(
        cls,
        snapshot: Any,
        agent_id: str = "langgraph",
        session_id: str | None = None,
        parent_id: str | None = None,
        step_index: int | None = None,
        step_name: str | None = None,
        context: dict[str, Any] | None = None,
        ttl_seconds: float | None = None,
        *,
        workspace: Workspace | AsyncWorkspace | None = None,
        **metadata: Any,
    ) -> Checkpoint:
        """Return the checkpoint of a StateSnapshot (or a dict of its fields), for ``client.put``.

        The session is the snapshot's thread unless another is named. Of the config only what names
        the place is kept: the rest may hold secrets. The step is LangGraph's own (the input, which
        it counts as -1, is 0 here). The files of a ``workspace`` in the client's
        store are kept with it.
        """
        fields = _fields(snapshot)
        config = _position(fields.get("config")) or {}
        state: dict[str, Any] = {
            "thread_id": config.get("configurable", {}).get("thread_id"),
            "values": fields["values"],
            "config": config,
            "parent_config": _position(fields.get("parent_config")),
            **{name: fields[name] for name in _FIELDS if fields.get(name) is not None},
        }
        state.setdefault("next", ())
        state.setdefault("metadata", {})
        named = config.get("configurable", {})
        step, source = (state["metadata"].get(name) for name in ("step", "source"))
        builder = (
            CheckpointBuilder(agent_id, cls.framework)
            .step(_index(step) if step_index is None else step_index, name=step_name or source)
            .execution_state(state)
            .context(dict(context or {}))
            .tag(**{name: named[name] for name in ("thread_id", "checkpoint_id") if name in named})
            .tag(**metadata)
            .parent(parent_id)
            .ttl(ttl_seconds)
        )
        if workspace is not None:
            snapshot_of_files = as_workspace(workspace).snapshot_for_checkpoint()
            builder = builder.workspace(snapshot_of_files.as_value())
        if session_id is None and "thread_id" in named:
            session_id = session_of(str(named["thread_id"]), named.get("checkpoint_ns") or "")
        return (builder.session(session_id) if session_id is not None else builder).build()

    @classmethod
    def reconstruct(
        cls, checkpoint: Checkpoint, serde: SerializerProtocol | None = None
    ) -> dict[str, Any]:
        """Return the parts of the snapshot that ``extract`` or a saver made a checkpoint of.

        Beside them ``thread_id``, ``checkpoint_id`` (LangGraph's) and ``agent_context``. Values
        that a saver sealed need the serializer it had.
        """
        state = checkpoint.execution_state
        if checkpoint.framework is not cls.framework:
            raise AdapterError(
                f"checkpoint {checkpoint.checkpoint_id!r} is of {checkpoint.framework.value}, not "
                "of langgraph: read it with that framework's adapter"
            )
        if type(state) is not dict:
            raise AdapterError(
                f"checkpoint {checkpoint.checkpoint_id!r} is of langgraph, but its state is "
                f"{type(state).__name__} and no snapshot: neither extract nor a saver made it"
            )
        parts = {
            "values": {},
            "next": (),
            "config": {},
            "metadata": {},
            "parent_config": None,
            **(_of_saver(checkpoint, serde) if "checkpoint" in state else state),
        }
        named = parts["config"].get("configurable", {})
        return {
            **parts,
            "thread_id": named.get("thread_id"),
            "checkpoint_id": named.get("checkpoint_id"),
            "agent_context": checkpoint.agent_context,
            "context": checkpoint.agent_context,
        }


def _fields(snapshot: Any) -> Mapping[str, Any]:
    if isinstance(snapshot, Mapping):
        found: Mapping[str, Any] = snapshot
    else:
        names = ("values", "config", "parent_config", *_FIELDS)
        found = {name: getattr(snapshot, name) for name in names if hasattr(snapshot, name)}
    if "values" not in found:
        raise InvalidArgumentError(
            f"no snapshot of LangGraph: {type(snapshot).__name__} has no values; "
            "pass what graph.get_state(config) returns"
        )
    return found


def _index(step: Any) -> int:
    """Return LangGraph's own number of a step; its input, -1 there, is 0: no index is negative."""
    return max(0, step) if isinstance(step, int) else 0


def _position(config: Any) -> Any:
    """Return of a config only what names a thread and a checkpoint."""
    if config is None:
        return None
    configurable = config.get("configurable", {})
    return {"configurable": {name: configurable[name] for name in _NAMING if name in configurable}}


def _of_saver(checkpoint: Checkpoint, serde: SerializerProtocol | None) -> dict[str, Any]:
    """Return the parts of a checkpoint that a saver put."""
    found = tuple_of(ChannelCodec(serde or DEFAULT, Sealer()), checkpoint, ())
    values = found.checkpoint["channel_values"]
    return {
        "values": {k: v for k, v in values.items() if not k.startswith(("__", _TO_NODE))},
        "next": tuple(k.removeprefix(_TO_NODE) for k in values if k.startswith(_TO_NODE)),
        "config": found.config,
        "metadata": found.metadata,
        "parent_config": found.parent_config,
        "created_at": found.checkpoint["ts"],
    }
