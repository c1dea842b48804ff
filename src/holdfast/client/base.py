"""What both clients share: how they are opened, and what they check first."""

from __future__ import annotations

from collections.abc import Collection
from os.path import abspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote

from holdfast.client.verb_group import R, VerbGroup
from holdfast.errors import InvalidArgumentError
from holdfast.model import Framework, make_payload
from holdfast.runtime.steps import Plan, do
from holdfast.stores.base import Store
from holdfast.stores.discovery import DEFAULT_PATH, warn_of_second
from holdfast.stores.urls import located, open_store, shareable
from holdfast.verbs import save

if TYPE_CHECKING:
    from holdfast.stores.sqlite.connection import Durability
    from holdfast.workspace import AsyncWorkspace, Snapshot, Workspace


class ClientBase(VerbGroup[R]):
    """What both clients share: how they are opened, and what they check first.

    One is made from a store, ``SyncClient(MyStore())``, or opened by one of the methods below.
    ``url`` is how other processes open the same store, if they can.
    """

    _runtime_type: type[R]

    def __init__(self, store: Store, *, url: str | None = None) -> None:
        if not isinstance(store, Store):
            raise InvalidArgumentError(
                f"a client is made from a store, not {type(store).__name__}; "
                "use one of memory(), file(), sqlite() or open(url)"
            )
        super().__init__(self._runtime_type(store, url=url))

    @classmethod
    def over(cls, runtime: R) -> Self:
        """Return a client that works through a runtime which is there already."""
        if not isinstance(runtime, cls._runtime_type):
            raise InvalidArgumentError(
                f"{cls.__name__} works through {cls._runtime_type.__name__}, "
                f"not {type(runtime).__name__}"
            )
        client = cls.__new__(cls)
        VerbGroup.__init__(client, runtime)
        return client

    @classmethod
    def open(cls, url: str | None = None) -> Self:
        """Open the store of a URL; by default the one that ``holdfast`` finds in this directory.

        That is the store of HOLDFAST_URL, else the nearest ``.holdfast/`` upwards, else a new one
        here, which the log of ``holdfast`` tells of.
        """
        url = located(url)
        return cls(open_store(url), url=shareable(url))

    @classmethod
    def memory(cls) -> Self:
        """Open a store in memory, gone with the process."""
        from holdfast.stores.memory import MemoryStore

        return cls(MemoryStore())

    @classmethod
    def file(
        cls,
        directory: str | Path,
        fmt: Literal["json", "pickle"] = "json",
        allow_pickle: bool = False,
    ) -> Self:
        """Open a directory with one readable document for each checkpoint."""
        from holdfast.stores.file.store import FileStore

        store = FileStore(directory, fmt, allow_pickle)
        pickled = "" if fmt == "json" else f"?fmt={fmt}"
        url = None if allow_pickle else f"file://{quote(abspath(directory))}{pickled}"
        return cls(store, url=url)

    @classmethod
    def sqlite(cls, path: str | Path = DEFAULT_PATH, durability: Durability = "full") -> Self:
        """Open an SQLite file; with ``durability="full"`` a save survives a power loss."""
        from holdfast.stores.sqlite.store import SqliteStore

        warn_of_second(path)
        store = SqliteStore(path, durability)
        return cls(store, url=f"sqlite:///{quote(abspath(path))}?durability={durability}")

    @classmethod
    def redis(
        cls,
        url: str,
        *,
        prefix: str | None = None,
        timeout: float | None = None,
        allow_eviction: bool | None = None,
    ) -> Self:
        """Open a Redis or Valkey server, a cluster (``redis+cluster://``), or one of Sentinels.

        One that drops keys when its memory is full is refused unless ``allow_eviction`` is given.
        """
        from holdfast.stores.redis.store import RedisStore

        options = {"prefix": prefix, "timeout": timeout, "allow_eviction": allow_eviction}
        shared = url if all(value is None for value in options.values()) else None
        store = RedisStore(url, prefix=prefix, timeout=timeout, allow_eviction=allow_eviction)
        return cls(store, url=shared)

    @classmethod
    def postgres(
        cls,
        dsn: str,
        *,
        schema: str | None = None,
        pool_size: int | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Open a PostgreSQL database, by default its schema ``holdfast`` with 8 connections.

        What does not answer within ``timeout`` (30 seconds) is a StoreConnectionError.
        """
        from holdfast.stores.postgres.store import PostgresStore

        options = {"schema": schema, "pool_size": pool_size, "timeout": timeout}
        given: dict[str, Any] = {name: what for name, what in options.items() if what is not None}
        return cls(PostgresStore(dsn, **given), url=None if given else dsn)

    @property
    def url(self) -> str | None:
        """Return how other processes open the same store; None if they cannot.

        It may hold a password.
        """
        return self.runtime.url

    @property
    def store(self) -> Store:
        """Return the store this client works on."""
        return self.runtime.store

    def __repr__(self) -> str:
        closed = ", closed" if self.runtime.closed else ""
        return f"{type(self).__name__}({self.runtime.store.name}{closed})"

    def _save(
        self,
        agent_id: str,
        framework: Framework | str,
        execution_state: Any,
        session_id: str | None,
        parent_id: str | None,
        context: dict[str, Any] | None,
        step_index: int,
        step_name: str | None,
        ttl_seconds: float | None,
        append_only: Collection[str],
        events: bool,
        workspace: Workspace | AsyncWorkspace | None,
        metadata: dict[str, Any],
    ) -> Plan[str]:
        if not isinstance(events, bool):
            raise InvalidArgumentError(
                f"events is True or False, not {events!r}: metadata of that name is not possible"
            )
        paths = (append_only,) if isinstance(append_only, str) else append_only
        if not isinstance(paths, Collection) or not all(isinstance(path, str) for path in paths):
            raise InvalidArgumentError(f"append_only is a list of paths, not {append_only!r}")
        captured = None if workspace is None else (yield from self._captured(workspace))
        part = None if captured is None else captured[1].as_value()
        saved = yield from save.save(
            self._engine,
            agent_id=agent_id,
            framework=framework,
            payload=make_payload(execution_state, save.checked_context(context), workspace=part),
            session_id=session_id,
            parent_id=parent_id,
            step_index=step_index,
            step_name=step_name,
            ttl_seconds=ttl_seconds,
            metadata=metadata,
            append_only=paths,
            events=events,
        )
        if captured is not None:
            directory, snapshot = captured
            yield from do(lambda: directory.saved_with(snapshot, saved))
            if session_id is not None:
                session = session_id
                yield from do(lambda: directory.works_for(agent_id, session))
        return saved

    def _captured(self, given: Workspace | AsyncWorkspace) -> Plan[tuple[Workspace, Snapshot]]:
        from holdfast.workspace.async_workspace import as_workspace

        def capture() -> tuple[Workspace, Snapshot]:
            workspace = as_workspace(given)
            return workspace, workspace.snapshot_for_checkpoint(store=self.runtime.store)

        return (yield from do(capture))
