"""Replay: what was recorded of a session, step by step, executing nothing; and bisect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.core.diff import Diff
from holdfast.core.short_repr import brief
from holdfast.errors import InvalidArgumentError, RunError
from holdfast.model import Checkpoint, CheckpointInfo, checked_name
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session.effects import Effect
from holdfast.session.recorded import calls_between, calls_noted
from holdfast.stores.base import Query, Store
from holdfast.verbs import notes
from holdfast.verbs.read import ancestors, diff_of, restore

if TYPE_CHECKING:
    from holdfast.workspace import TreeDiff


@dataclass(frozen=True)
class ReplayedStep:
    """One checkpoint of a session, and what led to it."""

    checkpoint: CheckpointInfo
    calls: list[Effect]
    """The calls that were made since the checkpoint before, with their outputs."""
    changes: Diff | None
    """What changed in the state since then; None for the first."""
    files: TreeDiff | None
    """What changed in the workspace since then, if one was captured."""
    tree_id: str | None
    """The files as they were, if a workspace was captured."""
    is_unfinished: bool = False
    """Whether these calls were made after the last checkpoint, and are in none yet."""

    def __str__(self) -> str:
        name = self.checkpoint.step_name or self.checkpoint.checkpoint_id[:13]
        after = ", then: (not in a checkpoint yet)" if self.is_unfinished else ""
        lines = [f"{self.checkpoint.step_index}  {name}{after}"]
        lines += [f"   {call} -> {_result(call)}" for call in self.calls]
        if self.changes is not None:
            lines += [f"   {line}" for line in str(self.changes).splitlines()]
        if self.files:
            lines += [f"   {line}" for line in str(self.files).splitlines()]
        return "\n".join(lines)


def _result(call: Effect) -> str:
    if call.status == "started":
        return "not known"
    return brief(call.output if call.error is None else call.error, 58)


def chain(session_id: str, agent_id: str | None = None) -> Plan[list[CheckpointInfo]]:
    """Return the checkpoints that led to the head of a session, the oldest first."""
    checked_name("session_id", session_id)
    if agent_id is not None:
        checked_name("agent_id", agent_id)
    found = yield from steps.query(Query(agent_id=agent_id, session_id=session_id))
    agents = {info.agent_id for info in found}
    if not found:
        raise RunError(f"there is no session {session_id!r}")
    if len(agents) > 1:
        raise RunError(
            f"several agents have a session {session_id!r} ({', '.join(sorted(agents))}): "
            "say which with agent_id"
        )
    return [*(yield from ancestors(found[0].checkpoint_id))[::-1], found[0]]


def step(
    engine: Engine, store: Store, before: CheckpointInfo | None, info: CheckpointInfo
) -> Plan[ReplayedStep]:
    """Return what was recorded between two checkpoints."""
    kept = yield from restore(engine, info.checkpoint_id, True, "raw")
    known: list[Any] = []
    changes = files = None
    if before is not None:
        earlier = yield from restore(engine, before.checkpoint_id, True, "raw")
        known = earlier.effects
        changes = (yield from diff_of(engine, before, info)).part("$")
        files = yield from _files_between(store, earlier.workspace, kept.workspace)
    every = yield from calls_between(engine, known, kept.effects)
    calls = [each for each in every if not each.abandoned]
    return ReplayedStep(info, calls, changes, files, tree_of(kept))


def _files_between(store: Store, before: Any, after: Any) -> Plan[TreeDiff | None]:
    """Return what changed from one captured workspace to another."""
    if before is None or after is None:
        return None
    from holdfast.workspace.diff import compare_captured

    return (yield from steps.do(lambda: compare_captured(store, before, after)))


def unfinished(engine: Engine, head: CheckpointInfo) -> Plan[list[Effect]]:
    """Return calls that were made after the head of a session, and are in no checkpoint yet."""
    noted = yield from notes.read(engine, [head.checkpoint_id], on_unknown="raw")
    return calls_noted([(note.key, value) for note, value in noted])


def last_step(engine: Engine, head: CheckpointInfo) -> Plan[list[ReplayedStep]]:
    """Return what was done after the head of a session, if anything was."""
    calls = yield from unfinished(engine, head)
    ended = [call.workspace for call in calls if call.workspace is not None]
    tree = _tree_id(ended[-1]) if ended else None
    return [ReplayedStep(head, calls, None, None, tree, is_unfinished=True)] if calls else []


def tree_of(kept: Checkpoint) -> str | None:
    """Return the id of the files that a checkpoint holds."""
    return _tree_id(kept.workspace)


def _tree_id(captured: Any) -> str | None:
    return captured.get("tree_id") if isinstance(captured, dict) else None


def bisect(
    engine: Engine,
    session_id: str,
    predicate: Callable[[Checkpoint], Any],
    agent_id: str | None = None,
) -> Plan[CheckpointInfo | None]:
    """Return the first checkpoint of which a predicate does not hold; None if it holds of all."""
    if not callable(predicate):
        raise InvalidArgumentError(f"a predicate is a function of a checkpoint, not {predicate!r}")
    infos = yield from chain(session_id, agent_id)
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
    return bool((yield from steps.call(predicate, kept)))
