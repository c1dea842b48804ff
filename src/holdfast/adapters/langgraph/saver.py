"""The checkpointer that LangGraph calls."""

from __future__ import annotations

import builtins
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

from holdfast.adapters.langgraph.channel_codec import ChannelCodec
from holdfast.adapters.langgraph.files import GraphFiles, Stage
from holdfast.adapters.langgraph.importing.open_source import explaining
from holdfast.adapters.langgraph.plans import (
    delta_history,
    listing,
    lookup,
    removal,
    saving,
    thread_copy,
)
from holdfast.adapters.langgraph.saver_context import SaverContext
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError
from holdfast.model import CheckpointInfo
from holdfast.runtime.steps import Plan, do
from holdfast.workspace import AsyncWorkspace, Workspace, checkout

AGENT = "langgraph"


class HoldfastSaver(OnStore, BaseCheckpointSaver[str]):
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
        self._store = AdapterStore.of(client)
        self._sync, self._async = self._store.sync, self._store.aio
        paths = tuple(("execution_state", "values", name) for name in append_only)
        files = GraphFiles.of(workspace, self._sync)
        self._context = SaverContext(self._sync.engine, agent_id, paths, files=files)

    @classmethod
    def open(cls, url: str | None = None, **options: Any) -> Self:
        """Open a saver on the store of a URL, by default the one that ``holdfast`` finds here."""
        with explaining(url):
            client = SyncClient.open(url)
        return cls._owning(client, options)

    @classmethod
    def from_sqlite(cls, path: str | Path, **options: Any) -> Self:
        """Open a saver on an SQLite file of Holdfast's; LangGraph's come over by ``move_in``."""
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
        saver._store = saver._store.owned()
        return saver

    @classmethod
    def from_redis(cls, url: str, **options: Any) -> Self:
        """Open a saver on a Redis or Valkey server."""
        return cls.open(url, **options)

    @classmethod
    def from_postgres(cls, dsn: str, **options: Any) -> Self:
        """Open a saver on a PostgreSQL database."""
        return cls.open(dsn, **options)

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> Self:
        """Open a saver on a URL, on the path of an SQLite file, or on ``:memory:``."""
        if conn_string == ":memory:":
            return cls.open("memory://", **options)
        if "://" in conn_string:
            return cls.open(conn_string, **options)
        return cls.from_sqlite(conn_string, **options)

    @property
    def _codec(self) -> ChannelCodec:
        return ChannelCodec(self.serde, self._context.sealer)  # a copy may have another serde

    def setup(self) -> None:
        """Do nothing: a store is ready once open. It is here for who comes from other savers."""

    async def asetup(self) -> None:
        """See setup."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint a config names, or the newest of its thread."""
        return self._sync.run(self._getting(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See get_tuple."""
        return await self._async.run(self._getting(config))

    def _getting(self, config: RunnableConfig) -> Plan[CheckpointTuple | None]:
        return lookup.get(self._context, self._codec, ThreadPosition.of(config), Stage.of(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread (of all for None), newest first."""
        infos = self._sync.run(self._listing(config, filter, before, limit))
        for page in listing.pages(infos):
            yield from self._sync.run(listing.tuples(self._context, self._codec, page))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See list."""
        infos = await self._async.run(self._listing(config, filter, before, limit))
        for page in listing.pages(infos):
            for found in await self._async.run(listing.tuples(self._context, self._codec, page)):
                yield found

    def _listing(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Plan[builtins.list[CheckpointInfo]]:
        position = None if config is None else ThreadPosition.of(config)
        every = config is not None and config["configurable"].get("checkpoint_ns") is None
        return listing.infos(
            self._context,
            position,
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
        """Keep a checkpoint and return the config that names it."""
        position, plan = self._putting(config, checkpoint, metadata)
        self._sync.run(plan)
        return position.config(checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See put."""
        position, plan = self._putting(config, checkpoint, metadata)
        await self._async.run(plan)
        return position.config(checkpoint["id"])

    def _putting(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> tuple[ThreadPosition, Plan[None]]:
        position = ThreadPosition.of(config)
        merged = get_checkpoint_metadata(config, metadata)
        stage = Stage.of(config)
        return position, saving.put(self._context, self._codec, position, checkpoint, merged, stage)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote, so that it need not run again if its step does not end."""
        position = ThreadPosition.of(config)
        self._sync.run(
            saving.put_writes(self._context, self._codec, position, writes, task_id, task_path)
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """See put_writes."""
        position = ThreadPosition.of(config)
        await self._async.run(
            saving.put_writes(self._context, self._codec, position, writes, task_id, task_path)
        )

    def restore_workspace(self, config: RunnableConfig, to: str | Path | None = None) -> Workspace:
        """Put the files of the checkpoint that a config names, or of the newest, into a directory.

        That is the saver's own workspace, which stays open, unless another is named. What is
        replaced is kept first.
        """
        return self._sync.run(self._restoring(config, to))

    async def arestore_workspace(
        self, config: RunnableConfig, to: str | Path | None = None
    ) -> Workspace:
        """See restore_workspace."""
        return await self._async.run(self._restoring(config, to))

    def _restoring(self, config: RunnableConfig, to: str | Path | None) -> Plan[Workspace]:
        found = yield from lookup.named_id(self._context, ThreadPosition.of(config))
        if to is not None:
            return (yield from do(lambda: checkout(found, to, self._sync)))
        if self._context.files is None:
            raise InvalidArgumentError(
                "this saver has no workspace of its own: say where the files go (to=...)"
            )
        own = self._context.files.workspace
        yield from do(lambda: own.restore(found))
        return own

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread, with its subgraphs' checkpoints and all writes."""
        self._sync.run(removal.delete_thread(self._context, str(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """See delete_thread."""
        await self._async.run(removal.delete_thread(self._context, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove what these runs made; what delta channels of later ones build on is kept."""
        self._sync.run(removal.delete_for_runs(self._context, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See delete_for_runs."""
        await self._async.run(removal.delete_for_runs(self._context, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Give another thread all checkpoints and writes of this one; no state is written twice."""
        self._sync.run(
            thread_copy.copy_thread(self._context, str(source_thread_id), str(target_thread_id))
        )

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See copy_thread."""
        await self._async.run(
            thread_copy.copy_thread(self._context, str(source_thread_id), str(target_thread_id))
        )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the newest checkpoint of each namespace, its writes and what it builds on.

        With ``strategy="delete"`` nothing is kept.
        """
        self._sync.run(removal.prune(self._context, [str(i) for i in thread_ids], strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See prune."""
        await self._async.run(removal.prune(self._context, [str(i) for i in thread_ids], strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what rebuilds these delta channels: a stored value each, and the writes since."""
        return self._sync.run(self._tracing(config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See get_delta_channel_history."""
        return await self._async.run(self._tracing(config, channels))

    def _tracing(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Plan[dict[str, DeltaChannelHistory]]:
        position = ThreadPosition.of(config)
        return delta_history.history(self._context, self._codec, position, channels)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a greater version, in a form that compares with those of LangGraph's own savers.

        They add a random part, because they keep values by version; here it would be ballast.
        """
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:032}"

    def _let_go(self) -> None:
        if self._context.files is not None:
            self._context.files.close()
