"""The client of programs that are not async."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from holdfast.client.agent_first import agent_first
from holdfast.client.approvals import Approvals
from holdfast.client.base import ClientBase
from holdfast.client.effects import Effects
from holdfast.client.events import Events
from holdfast.client.handoffs import Handoffs
from holdfast.client.upkeep import Upkeep
from holdfast.core.codec import OnUnknown
from holdfast.core.diff import Diff
from holdfast.model import Checkpoint, CheckpointInfo, Framework
from holdfast.runtime import SyncRuntime
from holdfast.stores.base import SessionInfo
from holdfast.verbs import interrupts, read, save
from holdfast.verbs.interrupts import OpenInterrupt
from holdfast.verbs.lineage import Tree

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.session.exploration import Exploration, Outcome
    from holdfast.session.replay import ReplayedStep
    from holdfast.session.run import Run
    from holdfast.workspace import AsyncWorkspace, Workspace


class SyncClient(ClientBase[SyncRuntime], Handoffs, Events, Approvals, Effects, Upkeep):
    """Checkpoints, for programs that are not async. Safe to share between threads.

    >>> from holdfast import SyncClient
    >>> with SyncClient.memory() as client:
    ...     first = client.save("coder", execution_state={"step": 1}, session_id="fix-42")
    ...     second = client.save("coder", execution_state={"step": 2}, session_id="fix-42")
    ...     print(client.diff(first, second))
    ~ $.step: 1 -> 2
    """

    _runtime_type = SyncRuntime

    @property
    def handoffs(self) -> Handoffs:
        """Return the verbs of handing work to another agent: ``handoff``, ``accept``…"""
        return Handoffs(self.runtime)

    @property
    def events(self) -> Events:
        """Return the verbs of channels: ``publish`` and ``subscribe``."""
        return Events(self.runtime)

    @property
    def approvals(self) -> Approvals:
        """Return the verbs of calls that wait to be allowed: ``pending``, ``approve``, ``deny``."""
        return Approvals(self.runtime)

    @property
    def effects(self) -> Effects:
        """Return the verbs of calls of unknown end: ``unknown_effects`` and ``resolve``."""
        return Effects(self.runtime)

    @property
    def upkeep(self) -> Upkeep:
        """Return the verbs of looking after the store: ``prune``, ``gc``, ``verify``…"""
        return Upkeep(self.runtime)

    def save(
        self,
        agent_id: str,
        framework: Framework | str = Framework.CUSTOM,
        execution_state: Any = None,
        session_id: str | None = None,
        parent_id: str | None = None,
        context: dict[str, Any] | None = None,
        step_index: int = 0,
        step_name: str | None = None,
        ttl_seconds: float | None = None,
        *,
        append_only: Collection[str] = (),
        events: bool = False,
        workspace: Workspace | AsyncWorkspace | None = None,
        **metadata: Any,
    ) -> str:
        """Keep a state as a new checkpoint and return its id.

        The parent, unless one is named, is what this client saved last in the session, or else
        the session's head; without a session a new one begins. Lists named in ``append_only``
        (paths such as ``"messages"``) are trusted to keep their saved elements unchanged, which
        makes saving long ones cheaper. The files of a ``workspace`` are kept with the state.
        Further keywords are metadata, by which ``find`` filters.
        """
        return self.runtime.run(
            self._save(
                agent_id,
                framework,
                execution_state,
                session_id,
                parent_id,
                context,
                step_index,
                step_name,
                ttl_seconds,
                append_only,
                events,
                workspace,
                metadata,
            )
        )

    def put(self, checkpoint: Checkpoint) -> str:
        """Keep a checkpoint that was built with CheckpointBuilder, as it is."""
        return self.runtime.run(save.put(self._engine, checkpoint))

    def restore(
        self, checkpoint_id: str, verify: bool = True, on_unknown: OnUnknown = "raise"
    ) -> Checkpoint:
        """Return the checkpoint of that id, its integrity proven unless ``verify`` is off."""
        return self.runtime.run(read.restore(self._engine, checkpoint_id, verify, on_unknown))

    def restore_workspace(self, checkpoint_id: str, to: str | Path) -> Workspace:
        """Put the files of a checkpoint into a directory: a new one, or one that is put back.

        What is replaced in a directory that has files is kept first, so it can be undone.
        """
        from holdfast.workspace import checkout

        self.runtime.check_open()
        return checkout(checkpoint_id, to, self)

    def latest(self, agent_id: str, session_id: str) -> Checkpoint | None:
        """Return the newest checkpoint of a session, or None if it has none."""
        return self.runtime.run(read.latest(self._engine, agent_id, session_id))

    @overload
    def timeline(
        self,
        agent_id: str,
        session_id: str,
        limit: int | None = 50,
        before: str | None = None,
        with_state: Literal[False] = False,
    ) -> list[CheckpointInfo]: ...

    @overload
    def timeline(
        self,
        agent_id: str,
        session_id: str,
        limit: int | None = 50,
        before: str | None = None,
        *,
        with_state: Literal[True],
    ) -> list[Checkpoint]: ...

    def timeline(
        self,
        agent_id: str,
        session_id: str,
        limit: int | None = 50,
        before: str | None = None,
        with_state: bool = False,
    ) -> list[CheckpointInfo] | list[Checkpoint]:
        """Return the checkpoints of a session, newest first; ``before`` an id for the next page."""
        return self.runtime.run(
            read.timeline(self._engine, agent_id, session_id, limit, before, with_state)
        )

    def find(
        self,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        parent_id: str | None = None,
        handoff_target: str | None = None,
        tags: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 50,
        before: str | None = None,
    ) -> list[CheckpointInfo]:
        """Return checkpoints by what is known of them, newest first; by default all of them."""
        return self.runtime.run(
            read.find(
                agent_id=agent_id,
                session_id=session_id,
                parent_id=parent_id,
                handoff_target=handoff_target,
                tags=tags,
                since=since,
                until=until,
                limit=limit,
                before=before,
            )
        )

    def sessions(
        self,
        agent_id: str | None = None,
        limit: int | None = None,
        before: SessionInfo | str | None = None,
    ) -> list[SessionInfo]:
        """Return every session with its head, the one touched last first.

        With a ``limit`` so many of them at most; the next page are those ``before`` the last of
        this one, or before the id of its head.
        """
        return self.runtime.run(read.sessions(agent_id, limit, before))

    def ancestors(self, checkpoint_id: str, limit: int | None = None) -> list[CheckpointInfo]:
        """Return the parent of a checkpoint, its parent, and so on, back to the root.

        With a ``limit`` so many of them at most.
        """
        return self.runtime.run(read.ancestors(checkpoint_id, limit))

    def tree(self, agent_id: str, session_id: str) -> Tree:
        """Return the checkpoints of a session, and of the sessions forked from it, as a tree."""
        return self.runtime.run(read.tree(agent_id, session_id))

    def diff(self, a: str, b: str) -> Diff:
        """Return what changed from one checkpoint to another."""
        from holdfast.session.comparing import diff

        return self.runtime.run(diff(self._engine, a, b))

    def fork(
        self,
        checkpoint_id: str,
        session_id: str | None = None,
        execution_state: Any = None,
        context: dict[str, Any] | None = None,
    ) -> str:
        """Begin a new session at a checkpoint, with its state or another, and return its id."""
        return self.runtime.run(
            save.fork(self._engine, checkpoint_id, session_id, execution_state, context)
        )

    def session(
        self,
        agent_id: str,
        session_id: str | None = None,
        *,
        workspace: Any = None,
        state: Any = None,
        context: dict[str, Any] | None = None,
        framework: Framework | str | None = None,
        version: int | str | None = None,
        approval: Any = None,
        approve_when: Any = None,
        approval_expires_seconds: float | None = None,
        approval_timeout: float | None = None,
        lease_seconds: float = 30.0,
        takeover: bool = False,
        on_divergence: Literal["raise", "live"] = "raise",
        tools: Collection[Callable[..., Any]] | Mapping[str, Callable[..., Any]] = (),
        progress: bool | Callable[[int, int, str], object] = False,
        **metadata: Any,
    ) -> Run:
        """Work on a session: a new one, or one that goes on where it stopped.

        ``with client.session("coder", session_id="fix-42", workspace="./repo") as run:``

        ``state`` is what a new session begins with; ``framework`` says whose state it is.
        ``approval`` is a function of the effect, ``"prompt"`` or ``"wait"``, for calls that
        ``approve_when`` names (kinds, tools or a function; irreversible ones by default). Another
        process that works on the session is an error; ``takeover`` takes it from one that was not
        heard of for ``lease_seconds``. ``tools``
        are functions that undo effects which an earlier process recorded (or register_tool them).
        ``progress=True`` draws how many tasks are done, where there is a terminal; a function is
        called with how many are done, of how many, and which one is worked on.
        """
        from holdfast.session.files import files_of
        from holdfast.session.options import options_of
        from holdfast.session.run import Run

        options = options_of(
            agent_id,
            session_id,
            state=state,
            context=context,
            framework=framework,
            version=version,
            lease_seconds=lease_seconds,
            takeover=takeover,
            on_divergence=on_divergence,
            approval=approval,
            approve_when=approve_when,
            approval_expires_seconds=approval_expires_seconds,
            approval_timeout=approval_timeout,
            tools=tools,
            progress=progress,
            metadata=metadata,
        )
        return Run(self.runtime, options, files_of(self.runtime, workspace))

    def interrupts(
        self, agent_id: str | None = None, session_id: str | None = None
    ) -> list[OpenInterrupt]:
        """Return what LangGraph threads have asked (``interrupt``) and wait for an answer to."""
        return self.runtime.run(interrupts.open_interrupts(self._engine, agent_id, session_id))

    def explore(
        self,
        checkpoint: str | Checkpoint | CheckpointInfo,
        strategies: Mapping[str, Callable[[Any], Any]],
        *,
        score: Callable[..., Any] | None = None,
        executor: Executor | None = None,
        timeout: float | None = None,
        workspace: Any = None,
        stop_when: Callable[[Outcome], bool] | None = None,
        progress: Callable[[Outcome], object] | None = None,
    ) -> Exploration:
        """Try strategies (functions of a run) on the same state and files, and compare them.

        Each has a session forked at the checkpoint, and a copy of the workspace if one is given.
        ``score(run)`` or ``score(run, result)`` says how good it was, else its result if that is
        a number. ``executor`` spreads them over threads, processes or machines. The winner is
        taken over with ``run.adopt(exploration.winner.session_id)``.
        """
        from holdfast.session.explore import Terms, explore

        terms = Terms(score, executor, timeout, workspace, stop_when, progress)
        return explore(self.runtime, checkpoint, strategies, terms)

    @agent_first
    def bisect(
        self,
        session_id: str,
        predicate: Callable[[Checkpoint], Any],
        *,
        agent_id: str | None = None,
    ) -> CheckpointInfo | None:
        """Return the first checkpoint of a session of which a predicate does not hold.

        It holds up to some checkpoint and not from there on; few are looked at. None if it holds
        of the newest. The agent has to be named where several have a session of that name.
        """
        from holdfast.session import replay

        return self.runtime.run(replay.bisect(self._engine, session_id, predicate, agent_id))

    @agent_first
    def replay(self, session_id: str, *, agent_id: str | None = None) -> Iterator[ReplayedStep]:
        """Yield what was recorded of a session, step by step; nothing is executed.

        The agent has to be named where several have a session of that name.
        """
        from holdfast.session import replay

        before = None
        for info in self.runtime.run(replay.chain(session_id, agent_id)):
            yield self.runtime.run(replay.step(self._engine, self.runtime.store, before, info))
            before = info
        if before is not None:
            yield from self.runtime.run(replay.last_step(self._engine, before))

    def close(self) -> None:
        """Release the store; closing twice does nothing."""
        self.runtime.close()

    def __enter__(self) -> Self:
        self.runtime.check_open()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
