"""Holdfast on SQLite: sync and async clients, full and normal durability, `append_only`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import MAIN, Contender, Lister, State

_AGENT = "agent"
_FILE = "holdfast.db"


class Holdfast(Lister):
    requires = "holdfast"

    def __init__(self, name: str, durability: str = "full", append_only: str = "") -> None:
        self.name = name
        self.durability = durability
        self._options = {"append_only": (append_only,)} if append_only else {}
        self.client: Any = None

    def open_now(self, directory: Path) -> None:
        self.directory = directory
        holdfast = import_module("holdfast")
        self.client = holdfast.SyncClient.sqlite(str(directory / _FILE), durability=self.durability)

    def save_now(self, step: int, state: State, session: str = MAIN) -> None:
        self.client.save(
            _AGENT, execution_state=state, session_id=session, step_index=step, **self._options
        )

    def restore_now(self, session: str = MAIN) -> Any:
        return self.client.latest(_AGENT, session).execution_state

    def timeline(self, session: str, limit: int) -> int:
        return len(self.client.timeline(_AGENT, session, limit=limit))

    def recent(self, limit: int) -> int:
        return len(self.client.find(limit=limit))

    def close_now(self) -> None:
        self.client.close()


class AsyncHoldfast(Contender):
    requires = "holdfast"
    durability = "full"

    def __init__(self, name: str) -> None:
        self.name = name
        self._client: Any = None

    async def open(self, directory: Path) -> None:
        self.directory = directory
        client = import_module("holdfast").Client.sqlite(str(directory / _FILE))
        self._client = await client.__aenter__()

    async def save(self, step: int, state: State, session: str = MAIN) -> None:
        await self._client.save(_AGENT, execution_state=state, session_id=session, step_index=step)

    async def restore_newest(self, session: str = MAIN) -> Any:
        return (await self._client.latest(_AGENT, session)).execution_state

    async def close(self) -> None:
        await self._client.__aexit__(None, None, None)
