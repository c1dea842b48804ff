"""Both faces of the client behind one, so that each behaviour is tested once for both."""

import asyncio
import hashlib
import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from holdfast import Client, SyncClient
from holdfast.runtime import AsyncRuntime
from tests.redis_servers import shared_cluster, shared_server
from tests.servers import shared_postgres

T = TypeVar("T")

STORES = ("memory", "file", "sqlite")
PERSISTENT = ("file", "sqlite")
SERVERS = ("redis", "postgres")
EVERYWHERE = (*STORES, *SERVERS)


def url_of(store: str, directory: Path) -> str:
    """The URL of a store of that kind, which is this directory's own."""
    name = "t" + hashlib.sha256(str(directory).encode()).hexdigest()[:16]
    if store == "redis":
        return f"{shared_server().url}?prefix={name}"
    if store == "cluster":
        return f"{shared_cluster().url}?prefix={name}"
    if store == "postgres":
        return f"{shared_postgres().dsn}?schema={name}"
    return {
        "memory": "memory://",
        "file": f"file://{directory}/checkpoints",
        "sqlite": f"sqlite:///{directory}/holdfast.db",
    }[store]


class Awaited:
    """An async client used from plain code: every verb is awaited to its end."""

    def __init__(self, client: Any, runner: asyncio.Runner | None = None) -> None:
        self._client = client
        self._runner = runner or asyncio.Runner()

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._client, name)
        if isinstance(member, AsyncRuntime):
            return Awaited(member, self._runner)
        if name == "subscribe":
            return lambda *args, **kwargs: self._each(member(*args, **kwargs))
        if not inspect.iscoroutinefunction(member):
            return member
        return lambda *args, **kwargs: self._runner.run(member(*args, **kwargs))

    def _each(self, found: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> T:
            return await anext(found)

        while True:
            try:
                yield self._runner.run(following())
            except StopAsyncIteration:
                return

    def __repr__(self) -> str:
        return repr(self._client)

    def __enter__(self) -> Self:
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, *exc: object) -> None:
        self._runner.run(self._client.__aexit__(*exc))

    def end(self) -> None:
        """Close the client and its event loop."""
        self._runner.run(self._client.close())
        self._runner.close()


@dataclass(frozen=True)
class Face:
    """One of the two ways to use Holdfast."""

    cls: type[Client] | type[SyncClient]

    def use(self, client: Client | SyncClient) -> SyncClient:
        """The client as a sync one, whichever it is."""
        if isinstance(client, Client):
            return cast(SyncClient, Awaited(client))
        return client

    def open(self, url: str | None = None) -> SyncClient:
        """A client of this face."""
        return self.use(self.cls.open(url))


FACES = {"sync": Face(SyncClient), "async": Face(Client)}


def end(client: SyncClient) -> None:
    """Close a client that `Face` opened, with all it needed."""
    if isinstance(client, Awaited):
        client.end()
    else:
        client.close()
