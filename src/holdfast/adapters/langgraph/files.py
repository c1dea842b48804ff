"""The files that a graph's nodes work on: kept with its checkpoints, and put back with them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.runnables import RunnableConfig

from holdfast.adapters.langgraph.thread_records import newest
from holdfast.adapters.opening import opened_workspace
from holdfast.errors import WorkspaceError
from holdfast.model import Checkpoint, CheckpointInfo
from holdfast.runtime import Runtime, steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query
from holdfast.verbs.read import revive
from holdfast.workspace import Snapshot, Workspace

logger = logging.getLogger("holdfast")

_RUNTIME, _DURABILITY, _TASK = "__pregel_runtime", "__pregel_durability", "__pregel_task_id"
"""What LangGraph adds to a config while a graph runs; the second only where a user named one."""
_GONE_BACK = "gone_back"
"""Marks the files of a checkpoint that a run begins at only once they are put back."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a config says of where in a run the saver is called."""

    is_running: bool = False
    """Whether nodes run, and not somebody looks at or changes a thread from outside."""
    begins: bool = False
    """Whether the checkpoint that is read is the one a run begins at."""
    waits: bool = False
    """Whether LangGraph waits for a checkpoint to be kept before the next nodes run."""

    @classmethod
    def of(cls, config: RunnableConfig) -> Self:
        """Return the stage that a config tells."""
        given = config.get("configurable") or {}
        is_running = _RUNTIME in given
        # A run that begins at a named checkpoint then asks, under a blank name, for the newest.
        asks_for_newest = "checkpoint_id" in given and given["checkpoint_id"] is None
        at_top = not given.get("checkpoint_ns") and _TASK not in given
        return cls(
            is_running,
            is_running and at_top and not asks_for_newest,
            given.get(_DURABILITY, "async") != "async",
        )


OUTSIDE = Stage()
"""No run at all."""


def check_waits(stage: Stage) -> None:
    """Refuse a run whose files could not be told from those of the next nodes."""
    if not stage.waits:
        raise WorkspaceError(
            "a graph whose saver has a workspace runs with durability='sync' (or 'exit'): by "
            "default LangGraph keeps a checkpoint while the next nodes change files; pass it to "
            "invoke or stream"
        )


class GraphFiles:
    """A workspace as a saver uses it."""

    def __init__(self, workspace: Workspace, runtime: Runtime, is_owned: bool) -> None:
        self.workspace = workspace
        self._runtime = runtime
        self._is_owned = is_owned

    @classmethod
    def of(cls, workspace: Any, runtime: Runtime) -> Self | None:
        """Return the files of a workspace, or of the path of a directory; None for none."""
        if workspace is None:
            return None
        opened, is_owned = opened_workspace(workspace, runtime)
        return cls(opened, runtime, is_owned)

    def of_checkpoint(
        self, engine: Engine, info: CheckpointInfo, stage: Stage, source: str | None
    ) -> Plan[dict[str, Any] | None]:
        """Return what a checkpoint that is about to be kept holds of the files."""
        if stage.is_running and source in ("input", "loop"):
            check_waits(stage)
            return (yield from steps.do(self._capture))
        return (yield from self._of_parent(engine, info))

    def _capture(self) -> dict[str, Any]:
        return self.workspace.snapshot_for_checkpoint(store=self._runtime.store).as_value()

    def _of_parent(self, engine: Engine, info: CheckpointInfo) -> Plan[dict[str, Any] | None]:
        """Return the files of the parent, as no node has run since (``update_state``, say)."""
        if info.parent_id is None:
            return None
        record = yield from steps.load(info.parent_id)
        part = None if record is None else revive(engine, record, on_unknown="raw").workspace
        if part is None:
            return None
        head = yield from _newest(info)
        goes_back = head is None or head.checkpoint_id != info.parent_id
        return {**part, _GONE_BACK: True} if goes_back else part

    def kept_by(self, part: dict[str, Any] | None, checkpoint_id: str) -> Plan[None]:
        """Say that a checkpoint holds these files now."""
        if part is not None:
            snapshot = Snapshot.from_value(part)
            yield from steps.do(lambda: self.workspace.saved_with(snapshot, checkpoint_id))

    def put_back(
        self, kept: Checkpoint, info: CheckpointInfo, is_new_way: bool, was_begun: bool
    ) -> Plan[None]:
        """Put the files back to those of a checkpoint that a run begins at, if it goes back to it.

        Where a thread goes on at its end, or with a step whose tasks have written already, they
        are left alone: somebody may have worked on them, and tasks that are done are not run again.
        """
        part = kept.workspace
        if part is None:
            return
        if not is_new_way and (was_begun or not part.get(_GONE_BACK)):
            head = yield from _newest(info)
            if head is None or head.checkpoint_id == info.checkpoint_id:
                return
        snapshot = Snapshot.from_value(part)
        done = yield from steps.do(lambda: self.workspace.restore(snapshot))
        if done.changed:
            logger.info(
                "the files of %s are those of checkpoint %s again; workspace.restore(%r) undoes it",
                self.workspace.path,
                info.checkpoint_id,
                done.undo_tree,
            )

    def close(self) -> None:
        """Close the workspace, if it was opened for this."""
        if self._is_owned:
            self.workspace.close()


def _newest(info: CheckpointInfo) -> Plan[CheckpointInfo | None]:
    """Return the newest checkpoint of the same thread."""
    return newest(Query(agent_id=info.agent_id, session_id=info.session_id))
