"""The client of async programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from holdfast.client.face import DEFAULT_GRACE, Face
from holdfast.core.codec import OnUnknown
from holdfast.core.diff import Diff
from holdfast.errors import InvalidArgumentError
from holdfast.model import Checkpoint, CheckpointInfo, Framework
from holdfast.stores import forks
from holdfast.stores.base import Collected, SessionInfo, Stats, Store
from holdfast.verbs import bundle, read, save, upkeep
from holdfast.verbs import plan as plans
from holdfast.verbs.bundle import Exported, Imported
from holdfast.verbs.lineage import Tree
from holdfast.verbs.plan import Ask, Do, Plan
from holdfast.verbs.prune import Keep, Pruned
from holdfast.verbs.upkeep import Progress, Verified

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from holdfast.stores.committer import Committer


T = TypeVar("T")


class Client(Face):
    """Checkpoints, for async programs. One client serves the tasks of one event loop.

    >>> import asyncio
    >>> from holdfast import Client
    >>> async def main():
    ...     async with Client.memory() as client:
    ...         saved = await client.save("coder", execution_state={"step": 1})
    ...         return (await client.restore(saved)).execution_state
    >>> asyncio.run(main())
    {'step': 1}
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._committer: Committer | None = None
        forks.watch(self)

    def _before_fork(self) -> None:
        pass

    def _after_fork(self, in_child: bool) -> None:
        if in_child:  # threads are not copied, and the child has a loop of its own
            self._loop = self._committer = self._threads = None

    async def _run(self, plan: Plan[T]) -> T:
        self._check_open()
        try:
            ask = next(plan)
            while True:
                try:
                    answer = await self._answer(ask)
                except Exception as error:
                    ask = plan.throw(error)
                else:
                    ask = plan.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            plan.close()

    async def _answer(self, ask: Ask | Do) -> Any:
        self._check_open()
        self._attach()
        if isinstance(ask, Do):
            return await self._in_thread(ask.function)
        if ask.method == "commit" and self._committer is not None:
            return await self._committer.commit(ask.args[0])
        method = getattr(self._store, ask.method)
        if not self._store.blocks:
            return method(*ask.args)
        return await self._in_thread(method, *ask.args)

    def _attach(self) -> None:
        """Take to the running loop: a client that outlives one serves the next."""
        import asyncio

        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        if self._loop is not None and self._loop.is_running():
            raise InvalidArgumentError(
                "this client serves another event loop that is running: open one for each loop"
            )
        self._detach()
        self._loop = loop
        if self._store.groups_commits:
            from holdfast.stores.committer import Committer

            self._committer = Committer(self._store, loop)  # type: ignore[arg-type]

    def _detach(self) -> None:
        if self._committer is not None:
            self._committer.close()
            self._committer = None
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
        self._loop = None

    async def _in_thread(self, function: Any, *args: Any) -> Any:
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(4, thread_name_prefix="holdfast")
        assert self._loop is not None
        return await self._loop.run_in_executor(self._threads, function, *args)

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
        **metadata: Any,
    ) -> str:
        """See SyncClient.save. The state is taken as it is when ``save`` is called."""
        return await self._run(
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
                metadata,
            )
        )

    async def put(self, checkpoint: Checkpoint) -> str:
        """Keep a checkpoint that was built with CheckpointBuilder, as it is."""
        return await self._run(save.put(self._engine, checkpoint))

    async def restore(
        self, checkpoint_id: str, verify: bool = True, on_unknown: OnUnknown = "raise"
    ) -> Checkpoint:
        """The checkpoint of that id, its integrity proven unless ``verify`` is off."""
        return await self._run(read.restore(self._engine, checkpoint_id, verify, on_unknown))

    async def latest(self, agent_id: str, session_id: str) -> Checkpoint | None:
        """The newest checkpoint of a session, or None if it has none."""
        return await self._run(read.latest(self._engine, agent_id, session_id))

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
        return await self._run(
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
        return await self._run(
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
        return await self._run(read.sessions(agent_id))

    async def ancestors(self, checkpoint_id: str) -> list[CheckpointInfo]:
        """The parent of a checkpoint, its parent, and so on, back to the root."""
        return await self._run(read.ancestors(checkpoint_id))

    async def tree(self, agent_id: str, session_id: str) -> Tree:
        """The checkpoints of a session, and of the sessions forked from it, as a tree."""
        return await self._run(read.tree(agent_id, session_id))

    async def diff(self, a: str, b: str) -> Diff:
        """What changed from one checkpoint to another."""
        return await self._run(read.diff(self._engine, a, b))

    async def fork(
        self,
        checkpoint_id: str,
        session_id: str | None = None,
        execution_state: Any = None,
        context: dict[str, Any] | None = None,
    ) -> str:
        """Begin a new session at a checkpoint, with its state or another; returns the new id."""
        return await self._run(
            save.fork(self._engine, checkpoint_id, session_id, execution_state, context)
        )

    async def handoff(
        self, checkpoint_id: str, target_agent_id: str, contract: str | None = None
    ) -> str:
        """Offer a checkpoint to another agent; returns the id it restores."""
        return await self._run(save.handoff(self._engine, checkpoint_id, target_agent_id, contract))

    async def expire(self, checkpoint_id: str) -> bool:
        """Remove a checkpoint now; False if there is none."""
        return await self._run(upkeep.expire(self._engine, checkpoint_id))

    async def prune(
        self, policy: Keep | None = None, *, dry_run: bool = False, **rules: Any
    ) -> Pruned:
        """Remove what a policy does not keep: ``prune(Keep(last=10))`` or ``prune(last=10)``."""
        return await self._run(self._prune(policy, dry_run, rules))

    async def gc(self, grace_seconds: float = DEFAULT_GRACE, dry_run: bool = False) -> Collected:
        """Remove what has expired, and chunks that no checkpoint needs."""
        return await self._run(upkeep.gc(self._engine, grace_seconds, dry_run))

    async def verify(self, progress: Progress | None = None) -> Verified:
        """Read every checkpoint and name each that is damaged."""
        return await self._run(upkeep.verify(self._engine, progress))

    async def stats(self) -> Stats:
        """How much the store holds."""
        return await self._run(plans.stats())

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
        return await self._run(
            bundle.export(self._engine, file, agent_id, session_id, ids, progress)
        )

    async def import_(self, file: str | Path, *, progress: Progress | None = None) -> Imported:
        """Bring the checkpoints of a bundle file into this store."""
        return await self._run(bundle.import_(self._engine, file, progress))

    async def close(self) -> None:
        """Release the store; closing twice does nothing."""
        import asyncio

        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._release)

    def _release(self) -> None:
        self._detach()
        self._store.close()

    async def __aenter__(self) -> Self:
        self._check_open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
