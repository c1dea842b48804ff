"""Replay: what was recorded of a session, step by step, executing nothing; and bisect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.diff import Diff
from holdfast.errors import InvalidArgumentError, RunError
from holdfast.model import Checkpoint, CheckpointInfo, checked_name
from holdfast.session.effects import Effect, effects_in
from holdfast.session.journal import Journal
from holdfast.stores.base import Query
from holdfast.verbs import notes, plan
from holdfast.verbs.engine import Engine
from holdfast.verbs.plan import Plan
from holdfast.verbs.read import ancestors, diff, restore


@dataclass(frozen=True)
class Step:
    """One checkpoint of a session, and what led to it."""

    checkpoint: CheckpointInfo
    calls: list[Effect]
    """The calls that were made since the checkpoint before, with their outputs."""
    changes: Diff | None
    """What changed in the state since then; None for the first."""
    tree_id: str | None
    """The files as they were, if a workspace was captured."""

    def __str__(self) -> str:
        name = self.checkpoint.step_name or self.checkpoint.checkpoint_id[:13]
        lines = [f"{self.checkpoint.step_index}  {name}"]
        lines += [f"   {call} -> {_result(call)}" for call in self.calls]
        if self.changes is not None:
            lines += [f"   {line}" for line in str(self.changes).splitlines()]
        return "\n".join(lines)


def _result(call: Effect) -> str:
    if call.status == "started":
        return "not known"
    text = repr(call.output) if call.error is None else repr(call.error)
    return text if len(text) <= 60 else text[:57] + "…"


def chain(session: Sequence[Any]) -> Plan[list[CheckpointInfo]]:
    """The checkpoints that led to the head of a session, the oldest first.

    A session is named by its id, where only one agent has it, or by its agent and its id.
    """
    if not 1 <= len(session) <= 2:
        raise InvalidArgumentError("give the id of a session, or its agent and its id")
    session_id = checked_name("session_id", session[-1])
    agent_id = checked_name("agent_id", session[0]) if len(session) == 2 else None
    found = yield from plan.query(Query(agent_id=agent_id, session_id=session_id))
    agents = {info.agent_id for info in found}
    if not found:
        raise RunError(f"there is no session {session_id!r}")
    if len(agents) > 1:
        raise RunError(
            f"several agents have a session {session_id!r} ({', '.join(sorted(agents))}): "
            "name the agent first"
        )
    return [*(yield from ancestors(found[0].checkpoint_id))[::-1], found[0]]


def step(engine: Engine, before: CheckpointInfo | None, info: CheckpointInfo) -> Plan[Step]:
    """What was recorded between two checkpoints."""
    kept = yield from restore(engine, info.checkpoint_id, True, "raw")
    known: set[str] = set()
    changes = None
    if before is not None:
        earlier = yield from restore(engine, before.checkpoint_id, True, "raw")
        known = {entry["id"] for entry in earlier.effects if "id" in entry}
        changes = (yield from diff(engine, before.checkpoint_id, info.checkpoint_id)).part("$")
    calls = [effect for effect in effects_in(kept.effects) if effect.id not in known]
    return Step(info, calls, changes, tree_of(kept))


def unfinished(engine: Engine, head: CheckpointInfo) -> Plan[list[Effect]]:
    """Calls that were made after the head of a session, and are in no checkpoint yet."""
    noted = yield from notes.read(engine, [head.checkpoint_id], on_unknown="raw")
    return Journal.read([(note.key, value) for note, value in noted]).calls


def tree_of(kept: Checkpoint) -> str | None:
    """The id of the files that a checkpoint holds."""
    part: Any = kept.workspace
    return part.get("tree_id") if isinstance(part, dict) else None


def bisect(engine: Engine, where: Sequence[Any]) -> Plan[CheckpointInfo | None]:
    """The first checkpoint of which a predicate does not hold; None if it holds of the head."""
    *session, predicate = where
    if not callable(predicate):
        raise InvalidArgumentError(
            f"the last argument of bisect is a function of a checkpoint, not {predicate!r}"
        )
    infos = yield from chain(session)
    low, high = 0, len(infos) - 1
    if (yield from _holds(engine, infos[high], predicate)):
        return None
    while low < high:
        middle = (low + high) // 2
        if (yield from _holds(engine, infos[middle], predicate)):
            low = middle + 1
        else:
            high = middle
    return infos[high]


def _holds(
    engine: Engine, info: CheckpointInfo, predicate: Callable[[Checkpoint], Any]
) -> Plan[bool]:
    kept = yield from restore(engine, info.checkpoint_id, True, "raw")
    return bool((yield from plan.call(predicate, kept)))
