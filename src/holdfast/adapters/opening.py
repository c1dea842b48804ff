"""What every adapter begins with: the store it works on, and the directory whose files it keeps."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import Any, Self

from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError
from holdfast.runtime import AsyncRuntime, Runtime, SyncRuntime
from holdfast.workspace import AsyncWorkspace, Workspace
from holdfast.workspace.async_workspace import as_workspace


@dataclass(frozen=True, slots=True)
class AdapterStore:
    """The store of an adapter, for plans that threads carry out and for those event loops do.

    >>> from holdfast.adapters.opening import AdapterStore
    >>> store = AdapterStore.of("memory://")
    >>> store.client.sessions()
    []
    >>> store.close()
    """

    client: SyncClient
    """For users of the adapter, who look at what it kept."""
    sync: SyncRuntime
    aio: AsyncRuntime
    is_owned: bool
    """Whether it is closed with the adapter, and not by who gave it."""

    @classmethod
    def of(cls, given: Client | SyncClient | str | None) -> Self:
        """Return the store of a client, or open that of a URL (None: what ``holdfast`` finds)."""
        if isinstance(given, Client):
            client = SyncClient.over(given.runtime.sync())
            return cls(client, client.runtime, given.runtime, is_owned=False)
        if isinstance(given, SyncClient):
            own = given.runtime
            aio = AsyncRuntime(own.store, own.engine, url=own.url)
            return cls(given, own, aio, is_owned=False)
        if given is None or isinstance(given, str):
            return cls.of(SyncClient.open(given)).owned()
        raise InvalidArgumentError(
            "an adapter is given a Client, a SyncClient or the URL of a store, "
            f"not {type(given).__name__}"
        )

    @classmethod
    def given(cls, client: Client | SyncClient | None, url: str | None) -> Self:
        """Return the store of a client or of a URL, as adapters are given them; not of both."""
        if client is not None and url is not None:
            raise InvalidArgumentError(
                "an adapter is given a client or a url, not both: the client has its store already"
            )
        return cls.of(url if client is None else client)

    @property
    def async_client(self) -> Client:
        """Return the same as a client for event loops; it is closed with the adapter."""
        return Client.over(self.aio)

    def owned(self) -> Self:
        """Return the same store, to be closed with the adapter."""
        return replace(self, is_owned=True)

    def close(self) -> None:
        """Close the store if the adapter opened it; closing twice does nothing."""
        if self.is_owned:
            self.aio.release()
            self.client.close()

    async def aclose(self) -> None:
        """Do what ``close`` does, on an event loop."""
        if self.is_owned:
            await self.aio.close()
            self.client.close()


class OnStore:
    """What every object of an adapter has that works on a store: its client, and its end."""

    _store: AdapterStore

    @property
    def client(self) -> SyncClient:
        """The client of its store, to look at what was kept, fork it and roll it back."""
        return self._store.client

    def _let_go(self) -> None:
        """Close what was opened beside the store, such as a workspace."""

    def close(self) -> None:
        """Close the store, if it was opened for this; closing twice does nothing."""
        try:
            self._let_go()
        finally:
            self._store.close()

    async def aclose(self) -> None:
        """Do what ``close`` does, on an event loop."""
        try:
            await asyncio.to_thread(self._let_go)
        finally:
            await self._store.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def opened_workspace(given: Any, runtime: Runtime) -> tuple[Workspace, bool]:
    """Return a workspace, or that of a directory's path, and whether the adapter is to close it."""
    if isinstance(given, (Workspace, AsyncWorkspace)):
        return as_workspace(given), False
    if isinstance(given, (str, os.PathLike)):
        return Workspace(given, runtime), True
    raise InvalidArgumentError(
        f"workspace is a Workspace or the path of a directory, not {type(given).__name__}"
    )
