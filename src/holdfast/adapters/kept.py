"""Sessions of a framework that calls its adapter to have its state kept, and to get it back.

The state is what the head of a session holds, whoever wrote that: so a rollback, a fork or another
process is seen by the framework the next time it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.adapters.opening import AdapterStore, opened_workspace
from holdfast.errors import AdapterError, NotTheHeadError
from holdfast.model import (
    Checkpoint,
    CheckpointInfo,
    Framework,
    checked_name,
    make_payload,
    new_info,
)
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query, SessionInfo
from holdfast.system.recent import Recent
from holdfast.verbs import save
from holdfast.verbs.read import restore
from holdfast.workspace import Snapshot, Workspace

_REMEMBERED = 64
_AT_ONCE = 500
_TRIES = 100
"""How often a change is made anew because others were faster; then something else is wrong."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the head of a session holds."""

    checkpoint: Checkpoint
    info: CheckpointInfo

    @property
    def checkpoint_id(self) -> str:
        return self.info.checkpoint_id

    @property
    def state(self) -> Any:
        """The framework's own state: not to be changed, but to be replaced."""
        return self.checkpoint.execution_state


class KeptSessions:
    """The sessions that one adapter keeps, as plans for its runtimes.

    >>> from holdfast import Framework
    >>> from holdfast.adapters.kept import KeptSessions
    >>> from holdfast.adapters.opening import AdapterStore
    >>> store = AdapterStore.given(None, "memory://")
    >>> kept = KeptSessions(store, Framework.STRANDS, "strands")
    >>> add = lambda state: {"items": [*(state or {}).get("items", ()), "hello"]}
    >>> _ = store.sync.run(kept.update("s1", add, name="message"))
    >>> store.sync.run(kept.update("s1", add, name="message")).state
    {'items': ['hello', 'hello']}
    >>> store.close()
    """

    def __init__(
        self, store: AdapterStore, framework: Framework, agent_id: str, workspace: Any = None
    ) -> None:
        self._engine = store.sync.engine
        self._stores = store.sync.store
        self.framework = framework
        self.agent_id = checked_name("agent_id", agent_id)
        self.workspace: Workspace | None = None
        self._owns_workspace = False
        if workspace is not None:
            self.workspace, self._owns_workspace = opened_workspace(workspace, store.sync)
        self._written: Recent[str, Kept] = Recent(_REMEMBERED)

    def head(self, session_id: str) -> Plan[Kept | None]:
        """Return what the head of a session holds now; None if there is no such session."""
        info = yield from self._last(checked_name("session_id", session_id))
        if info is None:
            return None
        if info.framework is not self.framework:
            raise AdapterError(
                f"session {session_id!r} of agent {self.agent_id!r} is of {info.framework.value}, "
                f"not of {self.framework.value}: go on with it by client.continue_in("
                f"{info.checkpoint_id!r}, {self.framework.value!r}), or use another session_id"
            )
        found = yield from restore(self._engine, info.checkpoint_id, True, "raw")
        kept = Kept(found, info)
        self._written.put(session_id, kept)  # what is changed next is what was seen
        return kept

    def _last(self, session_id: str) -> Plan[CheckpointInfo | None]:
        query = Query(agent_id=self.agent_id, session_id=session_id, limit=1)
        return next(iter((yield from steps.query(query))), None)

    def write(
        self,
        session_id: str,
        state: Any,
        *,
        name: str | None,
        after: Kept | None,
        tags: Mapping[str, Any] | None = None,
        captures: bool = True,
    ) -> Plan[Kept]:
        """Keep a state, and the files, behind a head (None: as the first of its session).

        Without ``captures`` the files are those of that head: tools may be in the middle of them.
        NotTheHeadError if something else was written on the session since that head was read.
        """
        before = None if after is None else after.checkpoint
        captured = (yield from self._captured()) if captures else None
        files = before.workspace if before is not None and not captures else None
        info = new_info(
            agent_id=self.agent_id,
            framework=self.framework,
            session_id=checked_name("session_id", session_id),
            parent_id=None if after is None else after.checkpoint_id,
            step_index=0 if after is None else after.info.step_index + 1,
            step_name=name,
            metadata=dict(tags or {}),
        )
        payload = make_payload(
            state,
            {} if before is None else before.agent_context,
            [] if before is None else before.tasks,
            [] if before is None else before.effects,
            workspace=files if captured is None else captured.as_value(),
        )
        follows = "" if after is None else after.checkpoint_id
        try:
            yield from save.write(self._engine, info, payload, follows=follows)
        except NotTheHeadError:
            self._written.take(session_id)
            if after is not None or (yield from self._last(session_id)) is not None:
                raise  # also where the session is gone: what was removed stays so
            # What came last has expired: nobody sees it, or can follow it.
            yield from save.write(self._engine, info, payload)
        yield from self._holds(captured, info)
        kept = Kept(Checkpoint.from_parts(info, payload), info)
        self._written.put(session_id, kept)
        return kept

    def update(
        self,
        session_id: str,
        change: Callable[[Any], Any],
        *,
        name: str | None,
        tags: Mapping[str, Any] | None = None,
        captures: bool = True,
    ) -> Plan[Kept]:
        """Keep what a function makes of the state at the head (None: there is no session yet).

        It is called again where another was faster, and may not change what it is given.
        """
        after = self._written.get(session_id)  # most often nobody else writes, so it is not read
        if after is None:
            after = yield from self.head(session_id)
        for tries_left in reversed(range(_TRIES)):
            state = change(None if after is None else after.state)
            try:
                return (
                    yield from self.write(
                        session_id, state, name=name, after=after, tags=tags, captures=captures
                    )
                )
            except NotTheHeadError:
                if not tries_left:
                    raise
            after = yield from self.head(session_id)
        raise AssertionError("unreachable")

    def remove(self, session_id: str) -> Plan[int]:
        """Remove a session with all its checkpoints; returns how many there were."""
        query = Query(agent_id=self.agent_id, session_id=checked_name("session_id", session_id))
        ids = [info.checkpoint_id for info in (yield from steps.query(query))]
        self._written.take(session_id)
        for start in range(0, len(ids), _AT_ONCE):
            part = ids[start : start + _AT_ONCE]
            yield from steps.delete(part)
            self._engine.forget(*part)
        return len(ids)

    def listed(self) -> Plan[list[SessionInfo]]:
        """Return the sessions of this adapter, the one touched last first."""
        found = yield from steps.heads(self.agent_id)
        return [session for session in found if session.head.framework is self.framework]

    def _captured(self) -> Plan[Snapshot | None]:
        workspace = self.workspace
        if workspace is None:
            return None
        return (yield from steps.do(lambda: workspace.snapshot_for_checkpoint(store=self._stores)))

    def _holds(self, captured: Snapshot | None, info: CheckpointInfo) -> Plan[None]:
        """Say that a checkpoint holds these files now, and that its session works there."""
        workspace = self.workspace
        if workspace is not None and captured is not None:
            yield from steps.do(lambda: workspace.saved_with(captured, info.checkpoint_id))
            yield from steps.do(lambda: workspace.works_for(info.agent_id, info.session_id))

    def close(self) -> None:
        """Close the workspace, if it was opened for this."""
        if self.workspace is not None and self._owns_workspace:
            self.workspace.close()
