"""LangGraph's threads as people read them: the questions they wait at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.values import short
from holdfast.core.json_form import to_json
from holdfast.model import Framework
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.verbs.interrupts import OpenInterrupt

_ROOM = 100


def is_thread(info: CheckpointInfo) -> bool:
    """Return whether a checkpoint is one of LangGraph's."""
    return info.framework is Framework.LANGGRAPH


def asked_at(client: SyncClient, info: CheckpointInfo) -> list[OpenInterrupt]:
    """Return the questions that a thread waits at, if it is this checkpoint that it waits at."""
    if not is_thread(info):
        return []
    found = client.interrupts(info.agent_id, info.session_id)
    return [each for each in found if each.checkpoint_id == info.checkpoint_id]


def asked_json(asked: Iterable[OpenInterrupt]) -> list[dict[str, Any]]:
    """Questions in JSON."""
    return [
        {
            "id": each.interrupt_id,
            "agent_id": each.agent_id,
            "session_id": each.session_id,
            "checkpoint_id": each.checkpoint_id,
            "node": each.node,
            "value": to_json(each.value),
            "resume": each.resume,
        }
        for each in asked
    ]


def asked_lines(asked: Iterable[OpenInterrupt], terminal: Terminal) -> list[str]:
    """Questions, each with the node and thread that ask, and how to answer."""
    lines = []
    for each in asked:
        who = f"{each.node} of {each.session_id}" if each.node else each.session_id
        lines.append(
            f"{terminal.paint(clean(who), 'session')} asks: "
            f"{terminal.paint(clean(short(each.value, _ROOM)), 'name')}"
        )
        lines.append(f"  {clean(each.resume)}")
    return lines
