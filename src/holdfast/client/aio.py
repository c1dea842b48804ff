"""The client of async programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from holdfast.client.base import DEFAULT_GRACE, ClientBase
from holdfast.core.codec import OnUnknown
from holdfast.core.contracts import Contract
from holdfast.core.diff import Diff
from holdfast.model import Checkpoint, CheckpointInfo, Framework
from holdfast.runtime import AsyncRuntime, steps
from holdfast.stores.base import Collected, SessionInfo, Stats
from holdfast.verbs import bundle, handoff, interrupts, read, save, upkeep, verify
from holdfast.verbs import events as happenings
from holdfast.verbs.bundle import Exported, Imported
from holdfast.verbs.events import Event
from holdfast.verbs.handoff import DEFAULT_LEASE, Offer
from holdfast.verbs.interrupts import OpenInterrupt
from holdfast.verbs.lineage import Tree
from holdfast.verbs.prune import Keep, Pruned
from holdfast.verbs.verify import Progress, Verified

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from holdfast.session.approval import Question
    from holdfast.session.async_run import AsyncRun
    from holdfast.session.exploration import Exploration, Outcome
    from holdfast.session.replay import ReplayedStep
    from holdfast.session.unknown import UnknownCall
    from holdfast.workspace import Workspace


class Client(ClientBase[AsyncRuntime]):
    """Checkpoints, for async programs. Safe to share between the tasks of any event loops.

    >>> import asyncio
    >>> from holdfast import Client
    >>> async def main():
    ...     async with Client.memory() as client:
    ...         saved = await client.save("coder", execution_state={"step": 1})
    ...         return (await client.restore(saved)).execution_state
    >>> asyncio.run(main())
    {'step': 1}
    """

    _runtime_type = AsyncRuntime

    async def save(
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
        workspace: Workspace | None = None,
        **metadata: Any,
    ) -> str:
        """See SyncClient.save. The state is taken as it is when ``save`` is called."""
        return await self.runtime.run(
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

    async def put(self, checkpoint: Checkpoint) -> str:
        """Keep a checkpoint that was built with CheckpointBuilder, as it is."""
        return await self.runtime.run(save.put(self._engine, checkpoint))

    async def restore(
        self, checkpoint_id: str, verify: bool = True, on_unknown: OnUnknown = "raise"
    ) -> Checkpoint:
        """The checkpoint of that id, its integrity proven unless ``verify`` is off."""
        return await self.runtime.run(read.restore(self._engine, checkpoint_id, verify, on_unknown))

    async def restore_workspace(self, checkpoint_id: str, to: str | Path) -> Workspace:
        """Put the files of a checkpoint into a directory: a new one, or one that is put back.

        What is replaced in a directory that has files is kept first, so it can be undone.
        """
        from holdfast.workspace import checkout

        self.runtime.check_open()
        return await self.runtime.in_thread(lambda: checkout(checkpoint_id, to, self))

    async def latest(self, agent_id: str, session_id: str) -> Checkpoint | None:
        """The newest checkpoint of a session, or None if it has none."""
        return await self.runtime.run(read.latest(self._engine, agent_id, session_id))

    @overload
    async def timeline(
        self,
        agent_id: str,
        session_id: str,
        limit: int | None = 50,
        before: str | None = None,
        with_state: Literal[False] = False,
    ) -> list[CheckpointInfo]: ...

    @overload
    async def timeline(
        self,
        agent_id: str,
        session_id: str,
        limit: int | None = 50,
        before: str | None = None,
        *,
        with_state: Literal[True],
    ) -> list[Checkpoint]: ...

    async def timeline(
        self,
        agent_id: str,
        session_id: str,
        limit: int | None = 50,
        before: str | None = None,
        with_state: bool = False,
    ) -> list[CheckpointInfo] | list[Checkpoint]:
        """The checkpoints of a session, newest first; ``before`` an id for the next page."""
        return await self.runtime.run(
            read.timeline(self._engine, agent_id, session_id, limit, before, with_state)
        )

    async def find(
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
        """Checkpoints by what is known of them, newest first, of the whole store by default."""
        return await self.runtime.run(
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

    async def sessions(self, agent_id: str | None = None) -> list[SessionInfo]:
        """Every session with its head, the one touched last first."""
        return await self.runtime.run(read.sessions(agent_id))

    async def ancestors(self, checkpoint_id: str) -> list[CheckpointInfo]:
        """The parent of a checkpoint, its parent, and so on, back to the root."""
        return await self.runtime.run(read.ancestors(checkpoint_id))

    async def tree(self, agent_id: str, session_id: str) -> Tree:
        """The checkpoints of a session, and of the sessions forked from it, as a tree."""
        return await self.runtime.run(read.tree(agent_id, session_id))

    async def diff(self, a: str, b: str) -> Diff:
        """What changed from one checkpoint to another."""
        return await self.runtime.run(read.diff(self._engine, a, b))

    async def fork(
        self,
        checkpoint_id: str,
        session_id: str | None = None,
        execution_state: Any = None,
        context: dict[str, Any] | None = None,
    ) -> str:
        """Begin a new session at a checkpoint, with its state or another; returns the new id."""
        return await self.runtime.run(
            save.fork(self._engine, checkpoint_id, session_id, execution_state, context)
        )

    async def handoff(
        self,
        checkpoint_id: str,
        target_agent_id: str,
        contract: Contract | None = None,
        ttl_seconds: float | None = None,
        *,
        events: bool = True,
    ) -> str:
        """Offer a checkpoint to another agent, and announce it; returns the id of the offer.

        The contract is a pydantic model, a dataclass or a JSON Schema that the state has to fit
        (ContractError names where it does not), or a name that is only recorded. An offer with a
        ``ttl_seconds`` is gone when that is over.
        """
        return await self.runtime.run(
            handoff.handoff(
                self._engine, checkpoint_id, target_agent_id, contract, ttl_seconds, events
            )
        )

    async def inbox(self, agent_id: str, *, every: bool = False) -> list[Offer]:
        """The open offers to an agent, the oldest first; with ``every`` all there are."""
        return await self.runtime.run(handoff.inbox(self._engine, agent_id, every))

    async def offer(self, checkpoint_id: str) -> Offer:
        """An offer, and what became of it so far."""
        return await self.runtime.run(handoff.offer(self._engine, checkpoint_id))

    async def accept(
        self,
        checkpoint_id: str,
        contract: Contract | None = None,
        *,
        session_id: str | None = None,
        worker: str | None = None,
        lease_seconds: float = DEFAULT_LEASE,
    ) -> Checkpoint:
        """Claim an offer, and go on from it in a session of the receiving agent.

        Of several workers one wins; the others get a HandoffError. Saving in that session renews
        the claim. If it is neither renewed nor settled, the offer returns to the inbox when the
        lease ends, and who accepts it next goes on from what was saved last.
        """
        return await self.runtime.run(
            handoff.accept(self._engine, checkpoint_id, contract, session_id, worker, lease_seconds)
        )

    async def take(
        self,
        agent_id: str,
        contract: Contract | None = None,
        *,
        worker: str | None = None,
        lease_seconds: float = DEFAULT_LEASE,
        timeout: float | None = None,
    ) -> Checkpoint | None:
        """Accept the oldest open offer to an agent, waiting for one; None after ``timeout``."""
        return await self.runtime.run(
            handoff.take(self._engine, agent_id, contract, worker, lease_seconds, timeout)
        )

    async def renew(self, checkpoint_id: str, lease_seconds: float | None = None) -> Offer:
        """Hold on to an offer for another lease; a HandoffError if it was lost to another."""
        return await self.runtime.run(handoff.renew(self._engine, checkpoint_id, lease_seconds))

    async def complete(self, checkpoint_id: str, reason: str | None = None) -> Offer:
        """Say that the work on an offer is done; only who holds it can, and only once."""
        return await self.runtime.run(
            handoff.settle(self._engine, checkpoint_id, "completed", reason)
        )

    async def reject(self, checkpoint_id: str, reason: str | None = None) -> Offer:
        """Turn an offer down for good, and say why."""
        return await self.runtime.run(
            handoff.settle(self._engine, checkpoint_id, "rejected", reason)
        )

    async def publish(
        self,
        channel: str,
        checkpoint_id: str | None = None,
        *,
        ttl_seconds: float | None = None,
        **data: Any,
    ) -> None:
        """Announce something on a channel; it is durable when this returns."""
        await self.runtime.run(
            happenings.publish(self._engine, channel, checkpoint_id, data, ttl_seconds)
        )

    def subscribe(
        self, channel: str, after: str | Event | None = None, *, timeout: float | None = None
    ) -> AsyncIterator[Event]:
        """The events of a channel in order: all that are kept, then new ones as they come.

        ``after`` the cursor of the last event you have dealt with, each comes at least once, also
        over restarts. Ends when ``timeout`` seconds pass without one.
        """
        happenings.scope(channel)
        return self._follow(channel, happenings.place(after), timeout)

    async def _follow(self, channel: str, at: int, timeout: float | None) -> AsyncIterator[Event]:
        while await self.runtime.run(happenings.wait(self._engine, channel, at, timeout)):
            for event in await self.runtime.run(happenings.read(self._engine, channel, at)):
                at = int(event.cursor)
                yield event

    def session(
        self,
        agent_id: str,
        session_id: str | None = None,
        *,
        workspace: Any = None,
        state: Any = None,
        context: dict[str, Any] | None = None,
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
    ) -> AsyncRun:
        """Work on a session: a new one, or one that goes on where it stopped.

        ``async with client.session("coder", session_id="fix-42", workspace="./repo") as run:``

        ``state`` is what a new session begins with. ``approval`` is a function of the effect,
        ``"prompt"`` or ``"wait"``, for calls that ``approve_when`` names (kinds, tools or a
        function; irreversible ones by default). Another process that works on the session is an
        error; ``takeover`` takes it from one that was not heard of for ``lease_seconds``.
        """
        from holdfast.session.async_run import AsyncRun
        from holdfast.session.files import files_of
        from holdfast.session.options import options_of

        options = options_of(
            agent_id,
            session_id,
            state=state,
            context=context,
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
        return AsyncRun(self.runtime, options, files_of(self.runtime, workspace))

    async def pending(self, agent_id: str | None = None) -> list[Question]:
        """Calls that wait for approval, of all sessions, the oldest first."""
        from holdfast.session import approval

        return await self.runtime.run(approval.pending(self._engine, agent_id))

    async def interrupts(
        self, agent_id: str | None = None, session_id: str | None = None
    ) -> list[OpenInterrupt]:
        """What LangGraph threads have asked (``interrupt``) and wait for an answer to."""
        return await self.runtime.run(
            interrupts.open_interrupts(self._engine, agent_id, session_id)
        )

    async def approve(
        self,
        effect_id: str,
        reason: str | None = None,
        *,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Question:
        """Allow a call that waits; with ``args`` or ``kwargs`` it is made with those instead."""
        from holdfast.session import approval

        decision = approval.Decision(True, reason, args, kwargs)
        return await self.runtime.run(approval.decide(self._engine, effect_id, decision))

    async def deny(self, effect_id: str, reason: str | None = None) -> Question:
        """Refuse a call that waits; the program gets ApprovalDenied."""
        from holdfast.session import approval

        decision = approval.Decision(False, reason)
        return await self.runtime.run(approval.decide(self._engine, effect_id, decision))

    async def unknown_effects(
        self, agent_id: str | None = None, session_id: str | None = None
    ) -> list[UnknownCall]:
        """Calls of unknown end that wait to be decided of, of all sessions, the oldest first.

        They may have done something that lasts. What a process is making just now is not among
        them.
        """
        from holdfast.session import unknown

        return await self.runtime.run(unknown.unknown_calls(self._engine, agent_id, session_id))

    async def resolve(
        self,
        effect_id: str,
        *,
        done: Any = ...,
        failed: str | Exception | bool | None = None,
        retry: bool = False,
        takeover: bool = False,
    ) -> UnknownCall:
        """Decide of a call of unknown end: it gave ``done``, ``failed``, or is to be made again.

        It is as if the program had decided with ``run.unknown_effects()``; when it is resumed, it
        finds that. A session that a living process works on is an error.
        """
        from holdfast.session import unknown

        verdict = unknown.verdict(done, failed, retry)
        call = await self.runtime.run(unknown.find(self._engine, effect_id))
        session = unknown.session_of(self._engine, call, takeover)
        try:
            await self.runtime.run(unknown.decide(session, call, verdict))
        finally:
            await self.runtime.run(session.checkpointer.release())
        return call

    async def explore(
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
        """See SyncClient.explore. Async strategies run together on the event loop."""
        from holdfast.session.explore import Terms, aexplore

        terms = Terms(score, executor, timeout, workspace, stop_when, progress)
        return await aexplore(self.runtime, checkpoint, strategies, terms)

    async def bisect(self, *where: Any) -> CheckpointInfo | None:
        """``bisect(session_id, predicate)``, or with the agent first: the first bad checkpoint.

        The predicate, a function of a Checkpoint, holds up to some checkpoint and not from there
        on; few are looked at. None if it holds of the newest.
        """
        from holdfast.session import replay

        return await self.runtime.run(replay.bisect(self._engine, where))

    async def replay(self, *session: str) -> AsyncIterator[ReplayedStep]:
        """``replay(session_id)``, or with the agent first: what was recorded, step by step.

        Nothing is executed.
        """
        from holdfast.session import replay

        before = None
        for info in await self.runtime.run(replay.chain(session)):
            yield await self.runtime.run(
                replay.step(self._engine, self.runtime.store, before, info)
            )
            before = info
        if before is not None:
            for last in await self.runtime.run(replay.last_step(self._engine, before)):
                yield last

    async def expire(self, checkpoint_id: str) -> bool:
        """Remove a checkpoint now; False if there is none."""
        return await self.runtime.run(upkeep.expire(self._engine, checkpoint_id))

    async def prune(
        self, policy: Keep | None = None, *, dry_run: bool = False, **rules: Any
    ) -> Pruned:
        """Remove what a policy does not keep: ``prune(Keep(last=10))`` or ``prune(last=10)``."""
        return await self.runtime.run(self._prune(policy, dry_run, rules))

    async def gc(self, grace_seconds: float = DEFAULT_GRACE, dry_run: bool = False) -> Collected:
        """Remove what has expired, and chunks that no checkpoint needs."""
        return await self.runtime.run(upkeep.gc(self._engine, grace_seconds, dry_run))

    async def verify(self, progress: Progress | None = None) -> Verified:
        """Read every checkpoint and name each that is damaged."""
        return await self.runtime.run(verify.verify(self._engine, progress))

    async def stats(self) -> Stats:
        """How much the store holds."""
        return await self.runtime.run(steps.stats())

    async def export(
        self,
        file: str | Path,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        ids: Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> Exported:
        """Write checkpoints to a bundle file that any store can import."""
        return await self.runtime.run(
            bundle.export(self._engine, file, agent_id, session_id, ids, progress)
        )

    async def import_(self, file: str | Path, *, progress: Progress | None = None) -> Imported:
        """Bring the checkpoints of a bundle file into this store."""
        return await self.runtime.run(bundle.import_(self._engine, file, progress))

    async def close(self) -> None:
        """Release the store; closing twice does nothing."""
        await self.runtime.close()

    async def __aenter__(self) -> Self:
        self.runtime.check_open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
