"""The checkpointer that LangGraph calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph import saver_plans
from holdfast.adapters.langgraph.files import GraphFiles, Stage
from holdfast.adapters.langgraph.records import Form, Place
from holdfast.adapters.langgraph.saver_plans import Desk
from holdfast.adapters.langgraph.sources import explaining
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError
from holdfast.runtime.steps import Plan, do
from holdfast.workspace import AsyncWorkspace, Workspace

AGENT = "langgraph"


class HoldfastSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of LangGraph threads in any Holdfast store.

    One saver serves ``invoke`` and ``ainvoke``, from any thread and any event loop.

    >>> from langgraph.graph import START, MessagesState, StateGraph
    >>> from holdfast.adapters.langgraph import HoldfastSaver
    >>> def answer(state):
    ...     return {"messages": [("ai", "hello")]}
    >>> builder = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
    >>> with HoldfastSaver.open("memory://") as saver:
    ...     graph = builder.compile(checkpointer=saver)
    ...     config = {"configurable": {"thread_id": "1"}}
    ...     _ = graph.invoke({"messages": [("user", "hi")]}, config)
    ...     print(saver.client.timeline("langgraph", "1")[0].step_name)
    answer
    """

    def __init__(
        self,
        client: Client | SyncClient,
        *,
        serde: SerializerProtocol | None = None,
        agent_id: str = AGENT,
        append_only: Collection[str] = (),
        workspace: Workspace | AsyncWorkspace | str | Path | None = None,
    ) -> None:
        """Make a saver on a client, which stays yours to close.

        ``append_only`` names channels whose lists only ever grow and whose elements, once saved,
        never change: a step then costs what was added, however long the list is.

        The files of a ``workspace`` (or of a directory) are kept with every checkpoint. A run that
        begins at an earlier one puts them back first. It needs ``durability="sync"``.
        """
        if not isinstance(client, (Client, SyncClient)):
            raise InvalidArgumentError(
                f"HoldfastSaver takes a client, not {type(client).__name__}; "
                "for a URL there is HoldfastSaver.open(url)"
            )
        super().__init__(serde=serde)
        self._owns_store = False
        store, engine = client.store, client.runtime.engine
        self._sync = client if isinstance(client, SyncClient) else SyncClient(store, engine)
        self._async = client if isinstance(client, Client) else Client(store, engine)
        paths = tuple(("execution_state", "values", name) for name in append_only)
        self._desk = Desk(engine, agent_id, paths, files=GraphFiles.of(workspace, client.runtime))

    @classmethod
    def open(cls, url: str | None = None, **options: Any) -> Self:
        """A saver on the store of a URL, by default that of HOLDFAST_URL or the embedded one."""
        with explaining(url):
            client = SyncClient.open(url)
        return cls._owning(client, options)

    @classmethod
    def from_sqlite(cls, path: str | Path, **options: Any) -> Self:
        """A saver on an SQLite file of Holdfast's; LangGraph's own come over by ``move_in``."""
        with explaining(path):
            client = SyncClient.sqlite(path)
        return cls._owning(client, options)

    @classmethod
    def _owning(cls, client: SyncClient, options: dict[str, Any]) -> Self:
        try:
            saver = cls(client, **options)
        except BaseException:
            client.close()
            raise
        saver._owns_store = True
        return saver

    @classmethod
    def from_redis(cls, url: str, **options: Any) -> Self:
        """A saver on a Redis or Valkey server."""
        return cls.open(url, **options)

    @classmethod
    def from_postgres(cls, dsn: str, **options: Any) -> Self:
        """A saver on a PostgreSQL database."""
        return cls.open(dsn, **options)

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> Self:
        """A saver on a URL, on the path of an SQLite file, or on ``:memory:``."""
        if conn_string == ":memory:":
            return cls.open("memory://", **options)
        if "://" in conn_string:
            return cls.open(conn_string, **options)
        return cls.from_sqlite(conn_string, **options)

    @property
    def client(self) -> SyncClient:
        """The store as a client, for timelines, diffs, forks and exports."""
        return self._sync

    @property
    def _form(self) -> Form:
        return Form(self.serde, self._desk.sealer)

    def setup(self) -> None:
        """Nothing: a store is ready once it is open. Here for those who come from other savers."""

    async def asetup(self) -> None:
        """See setup."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint a config names, or the newest of its thread."""
        return self._sync.runtime.run(self._getting(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See get_tuple."""
        return await self._async.runtime.run(self._getting(config))

    def _getting(self, config: RunnableConfig) -> Plan[CheckpointTuple | None]:
        return saver_plans.get(self._desk, self._form, Place.of(config), Stage.of(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread (of all for None), newest first."""
        infos = self._sync.runtime.run(self._listing(config, filter, before, limit))
        for page in saver_plans.pages(infos):
            yield from self._sync.runtime.run(saver_plans.tuples(self._desk, self._form, page))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See list."""
        infos = await self._async.runtime.run(self._listing(config, filter, before, limit))
        for page in saver_plans.pages(infos):
            for found in await self._async.runtime.run(
                saver_plans.tuples(self._desk, self._form, page)
            ):
                yield found

    def _listing(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Any:
        place = None if config is None else Place.of(config)
        every = config is not None and config["configurable"].get("checkpoint_ns") is None
        return saver_plans.list_infos(
            self._desk,
            place,
            every,
            dict(filter or {}),
            None if before is None else get_checkpoint_id(before),
            limit,
        )

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; returns the config that names it."""
        place, plan = self._putting(config, checkpoint, metadata)
        self._sync.runtime.run(plan)
        return place.config(checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See put."""
        place, plan = self._putting(config, checkpoint, metadata)
        await self._async.runtime.run(plan)
        return place.config(checkpoint["id"])

    def _putting(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> tuple[Place, Any]:
        place = Place.of(config)
        merged = get_checkpoint_metadata(config, metadata)
        stage = Stage.of(config)
        return place, saver_plans.put(self._desk, self._form, place, checkpoint, merged, stage)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote, so that it need not run again if its step does not end."""
        place = Place.of(config)
        self._sync.runtime.run(
            saver_plans.put_writes(self._desk, self._form, place, writes, task_id, task_path)
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """See put_writes."""
        place = Place.of(config)
        await self._async.runtime.run(
            saver_plans.put_writes(self._desk, self._form, place, writes, task_id, task_path)
        )

    def restore_workspace(self, config: RunnableConfig, to: str | Path | None = None) -> Workspace:
        """Put the files of the checkpoint that a config names, or of the newest, into a directory.

        That is the saver's own workspace, which stays open, unless another is named. What is
        replaced is kept first.
        """
        found = self._sync.runtime.run(saver_plans.named(self._desk, Place.of(config)))
        if to is None:
            return self._sync.runtime.run(self._restoring(found))
        return self._sync.restore_workspace(found, to)

    async def arestore_workspace(
        self, config: RunnableConfig, to: str | Path | None = None
    ) -> Workspace:
        """See restore_workspace."""
        found = await self._async.runtime.run(saver_plans.named(self._desk, Place.of(config)))
        if to is None:
            return await self._async.runtime.run(self._restoring(found))
        return await self._async.restore_workspace(found, to)

    def _restoring(self, checkpoint_id: str) -> Plan[Workspace]:
        if self._desk.files is None:
            raise InvalidArgumentError(
                "this saver has no workspace of its own: say where the files go (to=...)"
            )
        own = self._desk.files.workspace
        yield from do(lambda: own.restore(checkpoint_id))
        return own

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread, with its subgraphs' checkpoints and all writes."""
        self._sync.runtime.run(saver_plans.delete_thread(self._desk, str(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """See delete_thread."""
        await self._async.runtime.run(saver_plans.delete_thread(self._desk, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove what these runs made; what delta channels of later ones build on is kept."""
        self._sync.runtime.run(saver_plans.delete_for_runs(self._desk, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See delete_for_runs."""
        await self._async.runtime.run(saver_plans.delete_for_runs(self._desk, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Give another thread all checkpoints and writes of this one; no state is written twice."""
        self._sync.runtime.run(
            saver_plans.copy_thread(self._desk, str(source_thread_id), str(target_thread_id))
        )

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See copy_thread."""
        await self._async.runtime.run(
            saver_plans.copy_thread(self._desk, str(source_thread_id), str(target_thread_id))
        )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the newest checkpoint of each namespace, its writes and what it builds on.

        With ``strategy="delete"`` nothing is kept.
        """
        self._sync.runtime.run(
            saver_plans.prune(self._desk, [str(i) for i in thread_ids], strategy)
        )

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See prune."""
        await self._async.runtime.run(
            saver_plans.prune(self._desk, [str(i) for i in thread_ids], strategy)
        )

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What rebuilds these delta channels: a stored value each, and what was written since."""
        return self._sync.runtime.run(
            saver_plans.history(self._desk, self._form, Place.of(config), list(channels))
        )

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See get_delta_channel_history."""
        return await self._async.runtime.run(
            saver_plans.history(self._desk, self._form, Place.of(config), [*channels])
        )

    def get_next_version(self, current: str | None, channel: None) -> str:
        """A greater version, in a form that compares with those of LangGraph's own savers.

        They add a random part, because they keep values by version; here it would be ballast.
        """
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:032}"

    def close(self) -> None:
        """Release the store if this saver opened it; closing twice does nothing."""
        try:
            if self._desk.files is not None:
                self._desk.files.close()
        finally:
            if self._owns_store:
                self._async.runtime.release()
                self._sync.close()

    async def aclose(self) -> None:
        """See close."""
        try:
            if self._desk.files is not None:
                await asyncio.to_thread(self._desk.files.close)
        finally:
            if self._owns_store:
                await self._async.close()
                self._sync.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
