"""Real servers for the contenders that need one: started when first needed, gone with the run.

The programs are those on PATH. Where the modules of Redis Stack lie beside its `redis-server`
(`../lib/redisearch.so`, `../lib/rejson.so`), they are loaded: LangGraph's RedisSaver needs them.
"""

from __future__ import annotations

import atexit
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.redis_servers import RedisServer
    from tests.servers import PostgresServer

_MODULES = ("redisearch.so", "rejson.so")


@cache
def _redis(contender: str, fsync: str) -> RedisServer:
    from tests.redis_servers import RedisServer, binary

    beside = Path(binary()).resolve().parent.parent / "lib"
    modules = [str(beside / name) for name in _MODULES if (beside / name).exists()]
    options = [word for module in modules for word in ("--loadmodule", module)]
    # A rewrite of the log would go on beside the turns of others.
    quiet = ("--auto-aof-rewrite-percentage", "0")
    return RedisServer("--appendfsync", fsync, *quiet, *options)


@cache
def _postgres() -> PostgresServer:
    from tests.servers import PostgresServer

    server = PostgresServer()
    atexit.register(server.remove)
    return server


class RedisPlace:
    """A Redis server of a contender's own, emptied: its memory is what that contender takes."""

    def __init__(self, contender: str, fsync: str) -> None:
        self._server = _redis(contender, fsync)
        self.url = self._server.url
        with self._server.client() as client:
            client.flushall()

    @contextmanager
    def configured(self, **settings: Any) -> Iterator[None]:
        """With other settings, for a while."""
        with self._server.configured(**settings):
            yield

    def cpu(self) -> float:
        """Seconds of CPU that the server has used."""
        return _cpu_of(self._server.pid)

    def remove(self) -> None:
        """Give its memory back."""
        with self._server.client() as client:
            client.flushall()

    def bytes(self) -> int:
        """Memory taken by what is kept."""
        with self._server.client() as client:
            return int(client.info("memory")["used_memory_dataset"])


class PostgresPlace:
    """An empty database on a server that all contenders share."""

    def __init__(self) -> None:
        self._server = _postgres()
        self.name = f"bench_{secrets.token_hex(6)}"
        self._server.execute(f"CREATE DATABASE {self.name}", database="postgres")
        self.url = self._server.url(database=self.name)

    def execute(self, statement: str) -> list[Any]:
        """Run a statement in the database."""
        return self._server.execute(statement, database=self.name)

    def cpu(self) -> float:
        """Seconds of CPU that those processes of the server have used which are there now."""
        parent = self._server.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children")
        return sum(map(_cpu_of, children.read_text().split())) if children.exists() else 0.0

    def remove(self) -> None:
        """Give its room back."""
        self._server.execute(f"DROP DATABASE {self.name} WITH (FORCE)", database="postgres")

    def bytes(self) -> int:
        """The size of its files, beyond those of an empty one."""
        size = f"pg_database_size('{self.name}') - pg_database_size('template1')"
        ((found,),) = self._server.execute(f"SELECT {size}", database="postgres")
        return int(found)


def _cpu_of(process: str | int) -> float:
    """Seconds of CPU that a process has used; 0 for one that has ended, or where nothing tells."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
