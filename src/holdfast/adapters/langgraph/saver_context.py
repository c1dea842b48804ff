"""What the plans of one saver work with, and what it remembers between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.adapters.langgraph.files import GraphFiles
from holdfast.adapters.langgraph.records import sent_to
from holdfast.adapters.langgraph.sealer import Sealer
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.adapters.langgraph.thread_records import langgraph_id
from holdfast.model import CheckpointInfo
from holdfast.runtime.engine import Engine
from holdfast.system.recent import Recent

_REMEMBERED = 10_000
"""Threads that were left where something is sent next."""


@dataclass(frozen=True, slots=True)
class SaverContext:
    """What the plans of one saver work with; copies of the saver share it."""

    engine: Engine
    agent_id: str
    append_only: tuple[tuple[str, ...], ...] = ()
    sealer: Sealer = field(default_factory=Sealer)
    files: GraphFiles | None = None
    _other_ids: dict[tuple[str, str], str] = field(default_factory=dict)
    """Heads that were not put by a saver (forks, say): by session and LangGraph's id."""
    _sent: Recent[tuple[str, str], tuple[str, ...]] = field(
        default_factory=lambda: Recent(_REMEMBERED)
    )
    """The nodes that something is sent to next: by session and LangGraph's id."""

    def record_id(self, position: ThreadPosition, checkpoint_id: str) -> str:
        """Return the id of the record of one of LangGraph's checkpoints."""
        known = self._other_ids.get((position.session_id, checkpoint_id))
        return known or position.record_id(checkpoint_id)

    def found(self, position: ThreadPosition, info: CheckpointInfo) -> None:
        """Remember the id of a record that has one of its own."""
        if is_fork(position, info):
            self._other_ids[position.session_id, langgraph_id(info)] = info.checkpoint_id

    def will_send(self, position: ThreadPosition, checkpoint: Mapping[str, Any]) -> None:
        """Remember the nodes that the next step runs because something was sent to them."""
        sent = sent_to(checkpoint)
        if sent:
            self._sent.put((position.session_id, checkpoint["id"]), sent)

    def take_sent(self, position: ThreadPosition) -> tuple[str, ...]:
        """Return, once, the nodes that the step after a position ran for what was sent to them."""
        return self._sent.take((position.session_id, position.checkpoint_id or "")) or ()


def is_fork(position: ThreadPosition, info: CheckpointInfo) -> bool:
    """Return whether a record was not put by a saver, but made of one that was."""
    return info.checkpoint_id != position.record_id(langgraph_id(info))
