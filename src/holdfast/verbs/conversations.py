"""The conversation that a checkpoint holds, whatever framework wrote it: no framework is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core.conversation import Conversation, Native
from holdfast.core.conversation.forms import Form
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import json_text
from holdfast.core.conversation.plain import plain
from holdfast.core.conversation.reading import found_in, read
from holdfast.errors import AdapterError, CheckpointNotFoundError, InvalidArgumentError
from holdfast.model import Checkpoint, CheckpointInfo, Framework, checked_name
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import SessionInfo
from holdfast.verbs.ids import resolve
from holdfast.verbs.interrupts import OpenInterrupt, open_interrupts
from holdfast.verbs.read import revive

NATIVE_ID = "native_session_id"
"""The tag of a head whose framework calls the session by another name."""
_STATUSES = ("pending", "in_progress", "completed", "failed", "skipped")


@dataclass(frozen=True)
class Held:
    """A checkpoint, and what it holds of a conversation."""

    info: CheckpointInfo
    checkpoint: Checkpoint
    """With nothing in it revived: a value of a class is its fields."""
    form: Form
    native: Native | None

    @property
    def conversation(self) -> Conversation | None:
        """The conversation; None if it holds none."""
        if self.native is None:
            return None
        try:
            found = read(self.form, self.native, self.info.framework.value)
        except AdapterError as error:
            raise AdapterError(f"checkpoint {self.info.checkpoint_id!r}: {error}") from None
        lost = Lost()
        own = plain(self.checkpoint.agent_context, lost, "$.context")
        return replace(
            found,
            context={**(own if isinstance(own, dict) else {}), **found.context},
            plan=found.plan or _plan(self.checkpoint.tasks),
            lost=[*found.lost, *lost.found],
        )


def held(engine: Engine, checkpoint_id: str) -> Plan[Held]:
    """Return what a checkpoint holds of a conversation."""
    record = yield from steps.load((yield from resolve(checkpoint_id)))
    if record is None:
        raise CheckpointNotFoundError(checkpoint_id)
    kept = revive(engine, record, on_unknown="raw", trusts=_nothing)
    form, native = found_in(kept.framework.value, kept.execution_state)
    return Held(record.info, kept, form, native)


def _nothing(name: str) -> bool:
    return False


def conversation(
    engine: Engine, session_id: str, agent_id: str | None
) -> Plan[Conversation | None]:
    """Return the conversation at the head of a session; None if there is none.

    A framework's own id of the session does too, where exactly one head is tagged with it.
    """
    checked_name("session_id", session_id)
    head = yield from _head(session_id, agent_id)
    if head is None:
        return None
    found = (yield from held(engine, head.checkpoint_id)).conversation
    if found is None or found.interrupts or head.framework is not Framework.LANGGRAPH:
        return found
    asked = yield from open_interrupts(engine, head.agent_id, head.session_id)
    return replace(found, interrupts=[_interrupt(each) for each in asked])


def _interrupt(asked: OpenInterrupt) -> dict[str, Any]:
    """Return a question of a graph as AG-UI has it."""
    question = plain(asked.value, Lost())
    return {
        "id": asked.interrupt_id or asked.checkpoint_id,
        "reason": "interrupt",
        "tool_call_id": None,
        "message": question if isinstance(question, str) else json_text(question),
        "response_schema": None,
        "expires_at": None,
    }


def _head(session_id: str, agent_id: str | None) -> Plan[CheckpointInfo | None]:
    if agent_id is not None:
        checked_name("agent_id", agent_id)
    every: list[SessionInfo] = yield from steps.heads(agent_id)
    found = [each.head for each in every if each.session_id == session_id]
    if not found:
        found = [each.head for each in every if each.head.metadata.get(NATIVE_ID) == session_id]
        # A fork has the tags of the session that it comes from, but not its name.
        own = [head for head in found if head.session_id.endswith(f"/{session_id}")]
        found = own or found
    if len(found) > 1:
        names = ", ".join(sorted(f"{head.session_id!r} of {head.agent_id!r}" for head in found))
        raise InvalidArgumentError(
            f"several sessions are called {session_id!r} ({names}): name one by its own "
            "session_id, or by agent_id="
        )
    return found[0] if found else None


def _plan(tasks: Any) -> list[dict[str, Any]]:
    """Return tasks as entries of a plan."""
    return [
        {"content": task["name"], "status": task.get("status", "pending"), "priority": None}
        for task in (tasks if isinstance(tasks, (list, tuple)) else ())
        if isinstance(task, Mapping)
        and isinstance(task.get("name"), str)
        and task.get("status", "pending") in _STATUSES
    ]
