"""How the values of channels are kept: in Holdfast's own form, or sealed by the serializer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast.adapters.langgraph.allowed_types import trusts_of
from holdfast.adapters.langgraph.safe_reading import DEFAULT
from holdfast.adapters.langgraph.sealer import Sealer
from holdfast.core.codec import Trusts, pack
from holdfast.core.value_paths import child_path
from holdfast.errors import SerializationError, UnknownTypeError


def value_path(channel: str) -> str:
    """Return where the value of a channel is, in a checkpoint as LangGraph has it."""
    return child_path("$.channel_values", channel)


def unkeepable(value: Any) -> SerializationError | None:
    """Return why Holdfast's own form cannot keep a value; None where it can."""
    try:
        pack(value)
    except SerializationError as error:
        return error
    return None


@dataclass(frozen=True, slots=True)
class ChannelCodec:
    """Turns values of channels into what is kept of them, and back, with a saver's serializer."""

    serde: SerializerProtocol
    sealer: Sealer

    @property
    def is_open(self) -> bool:
        """Whether values are kept in Holdfast's own form, which listings and diffs can read."""
        return type(self.serde) is JsonPlusSerializer and not self.serde._custom_unpack_ext_hook

    @property
    def trusts(self) -> Trusts | None:
        """What the serializer's list of allowed types says; None where it allows all."""
        return trusts_of(self.serde)

    def state(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Return what is kept of a checkpoint: its values, and apart from them all else."""
        values = checkpoint["channel_values"]
        rest = {name: part for name, part in checkpoint.items() if name != "channel_values"}
        state: dict[str, Any] = {"values": values, "checkpoint": rest}
        return state if self.is_open else self._sealed(state, values)

    def with_unkeepable_sealed(
        self, state: dict[str, Any], error: SerializationError
    ) -> dict[str, Any]:
        """Return the same state with those values sealed that Holdfast's own form cannot keep."""
        names = [name for name, value in state["values"].items() if unkeepable(value)]
        if not names:
            raise error
        return self._sealed(state, names)

    def _sealed(self, state: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
        shapes, values = {}, dict(state["values"])
        for name in names:
            with self.sealing(name, values[name]):
                shapes[name], values[name] = self.sealer.seal(self.serde, values[name])
        return {**state, "values": values, "sealed": shapes}

    def values(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the channels of a kept state."""
        shapes = state.get("sealed", {})
        return {
            name: self.sealer.open(self.serde, shapes[name], value, value_path(name))
            if name in shapes
            else value
            for name, value in state["values"].items()
        }

    @contextmanager
    def sealing(self, channel: str, value: Any) -> Iterator[None]:
        """Name the path of a value that the serializer does not take, as LangGraph has it."""
        try:
            yield
        except Exception as error:
            if not self.is_open and not isinstance(error, TypeError):
                raise  # what goes wrong in a serializer of the user's is told by that
            problem = unkeepable(value)
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
