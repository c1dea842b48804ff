"""Holdfast and its peers on Redis and PostgreSQL, each in a server or database of its own."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import MAIN, Contender, State, SyncContender
from benchmarks.contenders.checkpnt import Checkpnt
from benchmarks.contenders.holdfast import AsyncHoldfast, Holdfast
from benchmarks.contenders.langgraph import Threads, thread_config
from benchmarks.servers import PostgresPlace, RedisPlace

EVERYSEC, ALWAYS = "everysec", "always"
_DURABILITY = {EVERYSEC: "last second", ALWAYS: "full", "": "full"}


class _Served(Contender):
    """One whose store is on a server; ``fsync`` is that of Redis, and nothing for PostgreSQL."""

    fsync: str
    _place: RedisPlace | PostgresPlace | None = None

    def _serve(self, fsync: str) -> None:
        self.fsync = fsync
        self.durability = _DURABILITY[fsync]

    @property
    def url(self) -> str:
        """Where it is; an empty place the first time."""
        if self._place is None:
            self._place = RedisPlace(self.name, self.fsync) if self.fsync else PostgresPlace()
        return self._place.url

    def bytes(self) -> int:
        assert self._place is not None
        return self._place.bytes()


class ServedHoldfast(_Served, Holdfast):
    def __init__(self, name: str, fsync: str = "") -> None:
        Holdfast.__init__(self, name)
        self._serve(fsync)

    def open_now(self, directory: Path) -> None:
        self.client = import_module("holdfast").SyncClient.open(self.url)


class ServedAsyncHoldfast(_Served, AsyncHoldfast):
    def __init__(self, name: str, fsync: str = "") -> None:
        AsyncHoldfast.__init__(self, name)
        self._serve(fsync)

    async def open(self, directory: Path) -> None:
        self._client = await import_module("holdfast").Client.open(self.url).__aenter__()


class RedisCheckpnt(_Served, Checkpnt):
    requires = "checkpnt.backends.redis"

    def __init__(self, name: str, fsync: str) -> None:
        Checkpnt.__init__(self, name)
        self._serve(fsync)

    def _client_in(self, checkpnt: Any, directory: Path) -> Any:
        return checkpnt.Client.redis(self.url)


class ServedSaver(_Served, SyncContender):
    """LangGraph's savers for Redis and PostgreSQL, opened as their documentation does."""

    def __init__(self, name: str, requires: str, saver: str, fsync: str = "") -> None:
        self.name = name
        self.requires = requires
        self._class = saver
        self._serve(fsync)

    def open_now(self, directory: Path) -> None:
        known = getattr(self, "_threads", None)
        saver = getattr(import_module(self.requires), self._class)
        self._context = saver.from_conn_string(self.url)
        self._saver = self._context.__enter__()
        self._saver.setup()
        self._threads = known or Threads(self._saver)

    def save_now(self, step: int, state: State, session: str = MAIN) -> None:
        self._saver.put(*self._threads.put_arguments(step, state, session))

    def restore_now(self, session: str = MAIN) -> Any:
        return self._saver.get_tuple(thread_config(session)).checkpoint["channel_values"]

    def close_now(self) -> None:
        self._context.__exit__(None, None, None)
