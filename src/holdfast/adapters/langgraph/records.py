"""LangGraph's checkpoints and writes as Holdfast's records and notes, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    get_checkpoint_id,
    writes_sort_key,
)
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerCompat, SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR, TASKS, SendProtocol

from holdfast.adapters.langgraph.naming import made_at, place_of, record_id, session_of
from holdfast.adapters.langgraph.reading import DEFAULT, WHOLE, is_data, plain_text
from holdfast.adapters.langgraph.sealing import Sealer
from holdfast.core.codec import Trusts, Unpacker, pack
from holdfast.core.raw import Raw, Sealed
from holdfast.core.value_paths import child_path
from holdfast.errors import (
    CheckpointIntegrityError,
    HoldfastError,
    InvalidArgumentError,
    SerializationError,
    UnknownTypeError,
)
from holdfast.model import Checkpoint as Kept
from holdfast.model import CheckpointInfo, Framework, checked_name, make_payload, new_info

_NO_NODES = ("__input__", "__interrupt__")
BUILDS_ON = "builds_on"
"""The tag of a checkpoint that is not whole: the delta channels its ancestors hold the rest of."""
_APART = "error"
"""The tag of an error in Holdfast's own form: one of an unknown class must not stop a resume."""
_OWN_TAGS = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", BUILDS_ON})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a config points: a thread, a namespace, and a checkpoint if it names one."""

    thread_id: str
    namespace: str
    checkpoint_id: str | None

    @classmethod
    def of(cls, config: RunnableConfig) -> Self:
        """The place of a config; without a thread it is none."""
        configurable = config.get("configurable") or {}
        if configurable.get("thread_id") is None:
            raise InvalidArgumentError(
                "the config names no thread: pass {'configurable': {'thread_id': ...}}"
            )
        return cls(
            checked_name("thread_id", str(configurable["thread_id"])),
            configurable.get("checkpoint_ns") or "",
            get_checkpoint_id(config) or None,
        )

    @property
    def session_id(self) -> str:
        return session_of(self.thread_id, self.namespace)

    def record_id(self, checkpoint_id: str) -> str:
        """The Holdfast id of one of LangGraph's in this namespace."""
        return record_id(self.thread_id, self.namespace, checkpoint_id)

    def config(self, checkpoint_id: str) -> RunnableConfig:
        """The config of a checkpoint in this namespace."""
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.namespace,
                "checkpoint_id": checkpoint_id,
            }
        }


@dataclass(frozen=True, slots=True)
class Form:
    """How values are written: in Holdfast's own form, or sealed by the saver's serializer."""

    serde: SerializerProtocol
    sealer: Sealer

    @property
    def is_open(self) -> bool:
        """Whether values are kept in Holdfast's own form, which listings and diffs can read."""
        return type(self.serde) is JsonPlusSerializer and not self.serde._custom_unpack_ext_hook

    @property
    def trusts(self) -> Trusts | None:
        """What the serializer's list of allowed types says; None where it allows all."""
        allowed = getattr(
            getattr(self.serde, "serde", self.serde), "_allowed_msgpack_modules", True
        )
        if allowed is True:
            return None

        def trusts(name: str) -> bool:
            module, _, qualname = name.partition(":")
            key = (module, qualname.rpartition(".")[2])
            return (
                key in SAFE_MSGPACK_TYPES
                or key in (allowed or ())
                or module in ("builtins", "langgraph.checkpoint.serde.types", "holdfast.core.raw")
            )

        return trusts

    def state(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """What is kept of a checkpoint: its values, and apart from them all else."""
        values = checkpoint["channel_values"]
        rest = {name: part for name, part in checkpoint.items() if name != "channel_values"}
        state: dict[str, Any] = {"values": values, "checkpoint": rest}
        return state if self.is_open else self.sealed(state, values)

    def sealed(self, state: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """The same state with these of its values sealed."""
        shapes, values = {}, dict(state["values"])
        for name in names:
            with self._sealing(name, values[name]):
                shapes[name], values[name] = self.sealer.seal(self.serde, values[name])
        return {**state, "values": values, "sealed": shapes}

    def with_unkeepable_sealed(
        self, state: dict[str, Any], error: SerializationError
    ) -> dict[str, Any]:
        """The same state with those values sealed that Holdfast's own form cannot keep."""
        unkeepable = [name for name, value in state["values"].items() if _problem(value)]
        if not unkeepable:
            raise error
        return self.sealed(state, unkeepable)

    @contextmanager
    def _sealing(self, channel: str, value: Any) -> Iterator[None]:
        """Name the path of a value that the serializer does not take, as LangGraph has it."""
        try:
            yield
        except Exception as error:
            if not self.is_open and not isinstance(error, TypeError):
                raise  # what goes wrong in a serializer of the user's is told by that
            problem = _problem(value)
            path = value_path(channel)
            said = f"{type(self.serde).__name__} cannot keep it ({error})"
            if problem is not None:
                path += problem.path.removeprefix("$")
                said = f"{problem.problem} (and {said})"
                if self.serde is DEFAULT:
                    said = problem.problem
                    if isinstance(error, UnknownTypeError):
                        said += "; or give the saver a serde=JsonPlusSerializer() to leave it out"
            raise SerializationError(path, said) from error

    def values(self, state: dict[str, Any]) -> dict[str, Any]:
        """The channel values of a kept state."""
        shapes = state.get("sealed", {})
        return {
            name: self.sealer.open(self.serde, shapes[name], value, value_path(name))
            if name in shapes
            else value
            for name, value in state["values"].items()
        }

    def writes(
        self, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> dict[str, Any]:
        """What is noted of a task's writes."""
        rows = []
        for index, (channel, value) in enumerate(writes):
            kept, sealed = self._write(channel, value)
            rows.append([WRITES_IDX_MAP.get(channel, index), channel, kept, sealed])
        return {"task_id": task_id, "task_path": task_path, "writes": rows}

    def _write(self, channel: str, value: Any) -> tuple[Any, bool]:
        """What is kept of one write, and whether that is sealed."""
        if self.is_open and channel == ERROR and isinstance(value, BaseException):
            with self._sealing(channel, value):
                return self._error(value)
        if self.is_open and _problem(value) is None:
            return value, False
        with self._sealing(channel, value):
            return self.sealer.seal_whole(self.serde, value), True

    def _error(self, error: BaseException) -> tuple[Any, bool]:
        """What is kept of an error: its text, as LangGraph's serializer makes it of almost all.

        One that it would revive (a dataclass, say) is kept apart, since one of a class that is not
        known any more must not stop a resume.
        """
        tag, data = self.serde.dumps_typed(error)
        text = plain_text(tag, data)
        if text is not None:
            return text, False
        if _problem(error) is None:
            return Sealed(_APART, pack(error)), True
        return self.sealer.seal_whole(self.serde, error), True

    def _written(self, channel: str, kept: Any) -> Any:
        """The value of a write that was sealed."""
        own_tags = isinstance(self.serde, SerializerCompat)  # there they are names of classes
        if channel == ERROR and kept.tag == _APART and not own_tags:
            return _as_read(Unpacker("raw", trusts=self.trusts).unpack(kept.data))
        return self.sealer.open(self.serde, WHOLE, kept, value_path(channel))

    def pending(self, noted: Iterable[dict[str, Any]]) -> list[PendingWrite]:
        """The writes of a checkpoint, in LangGraph's order, from notes in theirs.

        The first of equal writes counts, but of errors, interrupts and resumes the last.
        """
        with as_langgraph():
            found = self._rows(noted)
            return [
                (key[1], channel, self._written(channel, value) if sealed else value)
                for key, (channel, value, sealed) in found
            ]

    def _rows(self, noted: Iterable[dict[str, Any]]) -> list[tuple[Any, tuple[str, Any, bool]]]:
        """What was written, each under what orders it."""
        found: dict[tuple[str, str, int], tuple[str, Any, bool]] = {}
        taken: dict[tuple[str, int], tuple[str, str, int]] = {}
        for note in noted:
            task_id, path = note["task_id"], note["task_path"]
            for row in note["writes"]:
                index, channel, value, sealed = row[0], row[1], row[2], row[3]
                known = taken.get((task_id, index))
                if known is not None and channel not in WRITES_IDX_MAP:
                    continue
                if known is not None:
                    del found[known]
                key = writes_sort_key(path, task_id, index)
                taken[task_id, index] = key
                found[key] = (channel, value, sealed)
        return sorted(found.items(), key=lambda item: item[0])


def in_lists(metadata: Any) -> Any:
    """Metadata as every saver of LangGraph's gives them: tuples are lists there."""
    if type(metadata) is dict:
        return {name: in_lists(value) for name, value in metadata.items()}
    if type(metadata) in (list, tuple):
        return [in_lists(value) for value in metadata]
    return metadata


def _problem(value: Any) -> SerializationError | None:
    """Why Holdfast's own form cannot keep a value; None where it can."""
    try:
        pack(value)
    except SerializationError as error:
        return error
    return None


def value_path(channel: str) -> str:
    """Where the value of a channel is, in a checkpoint as LangGraph has it."""
    return child_path("$.channel_values", channel)


def _as_read(error: Any) -> Any:
    """An error that was kept as it was raised, as every saver of LangGraph's gives it: as text.

    Made without asking its class, but for classes of data: LangGraph revives those.
    """
    if isinstance(error, Raw):
        name = error.type_name.rpartition(":")[2].rpartition(".")[2]
        args, *group = error.reduced()[1][2:]
        return f"{name}({', '.join(map(repr, group if args is None else args))})"
    if not isinstance(error, BaseException) or is_data(type(error)):
        return error
    return BaseException.__repr__(error)


@contextmanager
def as_langgraph(checkpoint_id: str | None = None) -> Iterator[None]:
    """Whatever is found in a record that no saver wrote so is damage, and is called that."""
    try:
        yield
    except HoldfastError:
        raise
    except (LookupError, TypeError, AttributeError) as error:
        raise CheckpointIntegrityError(
            checkpoint_id, f"it is not a checkpoint of LangGraph ({error!r})"
        ) from error


def record_of(
    agent_id: str,
    place: Place,
    parent_id: str | None,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    sent: Sequence[str] = (),
) -> CheckpointInfo:
    """The record of a checkpoint in the namespace of a place.

    ``sent`` names the nodes that the step before had sent something to.
    """
    tags: dict[str, Any] = {
        **metadata,
        "thread_id": place.thread_id,
        "checkpoint_ns": place.namespace,
        "checkpoint_id": checkpoint["id"],
    }
    counters = metadata.get("counters_since_delta_snapshot") or {}
    deltas = [name for name in counters if name not in checkpoint["channel_values"]]
    if deltas:
        tags[BUILDS_ON] = deltas
    info = new_info(
        agent_id=agent_id,
        session_id=place.session_id,
        parent_id=parent_id,
        framework=Framework.LANGGRAPH,
        step_index=max(0, metadata.get("step", -1) + 1),
        step_name=_step_name(checkpoint, metadata, sent),
        metadata=tags,
    )
    own = {
        "checkpoint_id": place.record_id(checkpoint["id"]),
        "created_at": made_at(checkpoint["id"], checkpoint.get("ts")) or info.created_at,
    }
    return CheckpointInfo.of({**info.__dict__, **own})


def payload_of(
    state: dict[str, Any], parent: str | None, metadata: CheckpointMetadata, files: Any = None
) -> Any:
    """The payload of a checkpoint; LangGraph's own parent and odd metadata are kept exactly."""
    if parent is not None:
        state["parent"] = parent
    if _OWN_TAGS & metadata.keys():
        state["metadata"] = metadata
    return make_payload(state, {}, workspace=files)


def _step_name(
    checkpoint: Checkpoint, metadata: CheckpointMetadata, sent: Sequence[str]
) -> str | None:
    """The nodes that ran in this step; for what came from outside, its source.

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
    """The nodes that a checkpoint says something is sent to next, each once."""
    tasks = checkpoint["channel_values"].get(TASKS)
    named = [task.node for task in tasks or () if isinstance(task, SendProtocol)]
    return tuple(dict.fromkeys(named))


def _number(version: Any) -> int:
    """Versions are numbers, or strings that begin with one; of others nothing can be told."""
    digits = str(version).partition(".")[0]
    return int(digits) if digits.isdecimal() else -1


def tuple_of(form: Form, kept: Kept, noted: Iterable[dict[str, Any]]) -> CheckpointTuple:
    """A kept checkpoint as LangGraph knows it."""
    place = Place(*place_of(kept.session_id), None)
    state = kept.execution_state
    with as_langgraph(kept.checkpoint_id):
        checkpoint = {**state["checkpoint"], "channel_values": form.values(state)}
        parent = state.get("parent")
        metadata = state.get("metadata")
        if metadata is None:
            metadata = {k: v for k, v in kept.metadata.items() if k not in _OWN_TAGS}
        return CheckpointTuple(
            place.config(checkpoint["id"]),
            cast(Checkpoint, checkpoint),
            in_lists(metadata),
            None if parent is None else place.config(parent),
            form.pending(noted),
        )
