"""LangGraph's SQLite savers, given the checkpoints its own loop would give them."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import MAIN, Contender, Lister, State

_FILE = "langgraph.db"
_SAVER = "langgraph.checkpoint.sqlite"


class Threads:
    """For each thread, the newest checkpoint id and the version of every channel."""

    def __init__(self, saver: Any) -> None:
        self._saver = saver
        self._uuid6 = import_module("langgraph.checkpoint.base.id").uuid6
        self._heads: dict[str, str] = {}
        self._versions: dict[str, dict[str, str]] = {}

    def put_arguments(self, step: int, state: State, session: str) -> tuple[Any, ...]:
        """The four arguments of `put`; every channel of the state counts as written."""
        before = self._versions.get(session, {})
        bump = self._saver.get_next_version
        versions = {channel: bump(before.get(channel), None) for channel in state}
        self._versions[session] = versions
        checkpoint: dict[str, Any] = {
            "v": 4,
            "id": str(self._uuid6(clock_seq=step)),
            "ts": datetime.now(UTC).isoformat(),
            "channel_values": state,
            "channel_versions": versions,
            "versions_seen": {"__input__": {}, "agent": before},
            "updated_channels": sorted(state),
        }
        config = thread_config(session)
        if session in self._heads:
            config["configurable"]["checkpoint_id"] = self._heads[session]
        self._heads[session] = checkpoint["id"]
        return config, checkpoint, {"source": "loop", "step": step, "parents": {}}, versions


def thread_config(session: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": session, "checkpoint_ns": ""}}


class SqliteSaver(Lister):
    """`SqliteSaver.put`. It sets WAL and leaves `synchronous` as SQLite has it: FULL."""

    requires = _SAVER

    def __init__(self, name: str, synchronous: str = "FULL") -> None:
        self.name = name
        self.durability = {"FULL": "full", "NORMAL": "normal", "OFF": "none"}[synchronous]
        self._synchronous = synchronous

    def open_now(self, directory: Path) -> None:
        self.directory = directory
        self._connection = sqlite3.connect(directory / _FILE, check_same_thread=False)
        self._saver = import_module(_SAVER).SqliteSaver(self._connection)
        self._saver.setup()
        if self._synchronous != "FULL":
            self._connection.execute(f"PRAGMA synchronous={self._synchronous}")
        self._threads = Threads(self._saver)

    def save_now(self, step: int, state: State, session: str = MAIN) -> None:
        self._saver.put(*self._threads.put_arguments(step, state, session))

    def restore_now(self, session: str = MAIN) -> Any:
        return self._saver.get_tuple(thread_config(session)).checkpoint["channel_values"]

    def timeline(self, session: str, limit: int) -> int:
        return sum(1 for _ in self._saver.list(thread_config(session), limit=limit))

    def recent(self, limit: int) -> int:
        return sum(1 for _ in self._saver.list(None, limit=limit))

    def close_now(self) -> None:
        self._connection.close()


class AsyncSqliteSaver(Contender):
    """`AsyncSqliteSaver.aput`, with the same settings as its sync twin."""

    requires = f"{_SAVER}.aio"
    durability = "full"

    def __init__(self, name: str) -> None:
        self.name = name

    async def open(self, directory: Path) -> None:
        self.directory = directory
        saver = import_module(self.requires).AsyncSqliteSaver
        self._context = saver.from_conn_string(str(directory / _FILE))
        self._saver = await self._context.__aenter__()
        await self._saver.setup()
        self._threads = Threads(self._saver)

    async def save(self, step: int, state: State, session: str = MAIN) -> None:
        await self._saver.aput(*self._threads.put_arguments(step, state, session))

    async def restore_newest(self, session: str = MAIN) -> Any:
        found = await self._saver.aget_tuple(thread_config(session))
        return found.checkpoint["channel_values"]

    async def close(self) -> None:
        await self._context.__aexit__(None, None, None)
