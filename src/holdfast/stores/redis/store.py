"""The store on a Redis or Valkey server, version 7 or later, without modules; or on a cluster.

URLs
    ====================================================  =====================================
    ``redis://user:password@host:6379/0``                 one server; ``rediss://`` with TLS
    ``unix:///run/redis.sock?db=0``                       one server on this machine
    ``redis+cluster://host:6379,host:6379``               a cluster, by some of its nodes
    ``redis+sentinel://host:26379,host:26379/service/0``  the primary that Sentinels know by a name
    ====================================================  =====================================

    ``rediss+cluster://`` and ``rediss+sentinel://`` use TLS. ``?prefix=…``, ``?timeout=…`` and
    ``?allow_eviction=true`` do what the arguments of ``RedisStore`` do; other options are those of
    the Redis client, for instance ``?ssl_ca_certs=/path/ca.pem``.

Layout
    Everything but chunks lies in one slot, that of ``{prefix}``: records, the sorted sets that
    list them, and notes. So one script makes a checkpoint visible, with all that leads to it, at
    one moment; it refuses what has to be refused in the same moment; and no crash leaves a half.
    Records are a few hundred bytes, so one node of a cluster keeps millions and commits tens of
    thousands a second; where that is not enough, several prefixes lie on several nodes.

    Chunks, which hold the states, are keys of their own, spread over all nodes. On one server they
    go with the record in that same script: a save is one round trip. On a cluster, and where
    they are large, they are entered in a list, written, and then the record follows: a save that
    is cut short leaves chunks which no record names, and ``collect`` takes them.

    Sorted sets are ordered by their members, which begin with the time in microseconds and end
    with the id: never by a float, never by milliseconds. A page costs O(log n + page). The script
    that writes gives a record its place: that of its time, or the microsecond after the last of
    its session where a clock was behind.

    Sessions are listed by when they were touched last, and filed by their tags as the stores that
    speak SQL file them: a page of sessions, and what has a rare tag, are found without the others.

    A record has a key of its own, which is the truth. Redis removes that of a record with a time
    to live by itself, a day after it has expired (until then listings may ask for expired ones);
    entries that lead nowhere are ignored, and ``sweep`` removes them.

    A note under a name also adds to a small stream, ``wake``, on which those wait who follow one.

Garbage collection
    What records begin with is listed in pages, and again if one was removed meanwhile, which is
    counted: it may have been the base of one that was committed behind where the listing was.
    Chunks are listed with the time they were last written. ``collect`` marks an old one that no
    record needs, removes it unless it was written again, and then strikes it off. The script that
    makes a record visible requires each of its chunks to be listed and not marked, and dates it
    anew: a save either finds its chunks safe, or is told so and writes them again.

Durability
    A save that was acknowledged is as durable as the server makes it: with ``appendonly yes`` and
    ``appendfsync always`` it survives a power loss, with ``everysec`` a crash may take the last
    second. Replicas follow a moment later, so a failover may take what was acknowledged last.
    A server with another policy than ``noeviction`` drops what it likes when its memory is full,
    and is refused unless ``allow_eviction`` is given. A full server refuses saves; all that reads
    works, and so does what frees memory: delete, sweep, collect.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from holdfast.errors import InvalidArgumentError, StoreConnectionError, StoreFormatError
from holdfast.stores.async_base import AsyncStore
from holdfast.stores.base import Store
from holdfast.stores.redis.connection import RedisConnection
from holdfast.stores.redis.errors import redis_errors
from holdfast.stores.redis.eviction import allowed, check_policy, lost
from holdfast.stores.redis.keys import FORMAT, OLDER, Keys
from holdfast.stores.redis.urls import package, parse
from holdfast.stores.redis.writes import RedisWrites
from holdfast.stores.shared.planned import PlannedStore
from holdfast.system import patience
from holdfast.system.threads import Threads

C = TypeVar("C")
logger = logging.getLogger("holdfast")

DEFAULT_PREFIX = "holdfast"
DEFAULT_TIMEOUT = 5.0
_OLDEST = 7
_TOLD = 100_000
"""So often it is said how far an older store was brought to this format."""


class _RedisMethods(PlannedStore):
    """What is asked of a Redis server, however it is carried out."""

    _plans: RedisWrites
    _link: RedisConnection

    def newest(self, agent_id: str, session_id: str) -> Any:
        return self._carry_out(self._plans.newest, agent_id, session_id)

    def last_notes(self, scopes: Collection[str], count: int) -> Any:
        return self._carry_out(self._plans.last_notes, scopes, count)

    def targets(self) -> Any:
        return self._carry_out(self._plans.targets)

    def roots(self, include_expired: bool, take: Callable[[list[bytes]], object]) -> Any:
        return self._carry_out(self._plans.roots, include_expired, take)

    def wait(self, scope: str, after: int, timeout: float) -> Any:
        # No longer than a connection may be silent; who waits then asks again.
        return self._carry_out(self._plans.wait, scope, after, min(timeout, self._link.timeout / 2))

    def lost(self) -> Any:
        return self._carry_out(lost, self._plans)


class RedisStore(_RedisMethods, Store):
    """Keeps checkpoints on a Redis server, safe for many threads, tasks, processes and machines."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str | None = None,
        timeout: float | None = None,
        allow_eviction: bool | None = None,
    ) -> None:
        package()
        address = parse(url)
        keys = Keys(prefix if prefix is not None else address.own.get("prefix", DEFAULT_PREFIX))
        seconds = _checked_timeout(timeout if timeout is not None else address.own.get("timeout"))
        name = f"the Redis store {address.shown}"
        if keys.prefix != DEFAULT_PREFIX:
            name += f" (prefix {keys.prefix})"
        may_evict = allowed(allow_eviction, address.own.get("allow_eviction"))
        self._link = RedisConnection(address, name, patience.seconds(seconds))
        self._plans = RedisWrites(keys, spread=address.kind == "cluster")
        try:
            self.concerns = self._check_server(keys, may_evict)
        except BaseException:
            self._link.close()
            raise

    @property
    def name(self) -> str:
        return self._link.name

    def _check_server(self, keys: Keys, may_evict: bool) -> tuple[str, ...]:
        """See that it answers, is recent enough, is what the URL says, and what is kept there.

        Returns what a user should know of it.
        """
        try:
            client = self._link.client()
            nodes = [client]
            if self._plans.spread:
                nodes = [each.redis_connection for each in client.get_primaries()]
            hello = nodes[0].execute_command("HELLO")
            self._check_hello(dict(zip(hello[::2], hello[1::2], strict=True)))
            concerns = check_policy(nodes, self.name, may_evict)
            kept, is_filing = client.execute_command("MGET", keys.format, keys.filing)
        except redis_errors() as error:
            raise self._link.explained(error) from error
        except TypeError as error:  # a connection takes the options of the URL as arguments
            raise InvalidArgumentError(f"{self.name} has no such option: {error}") from None
        if kept not in (None, FORMAT, *OLDER):
            raise StoreFormatError(
                f"{self.name} has format {kept!r}, this Holdfast reads up to {FORMAT!r}: upgrade "
                "Holdfast to open it, or choose another prefix"
            )
        if kept in OLDER or is_filing:
            logger.info("%s is brought from format %r to %r", self.name, kept, FORMAT)
            self._link.run(self._plans.file_sessions(self._tell))
        return concerns

    def _tell(self, done: int) -> None:
        """Say how far an older store was brought to this format."""
        if done % _TOLD == 0:
            logger.info("%s: the sessions of %s checkpoints are filed", self.name, f"{done:,}")

    def _check_hello(self, about: dict[bytes, Any]) -> None:
        version = about[b"version"].decode()
        if int(version.split(".")[0]) < _OLDEST:
            raise StoreConnectionError(
                f"{self.name} is of version {version}: Redis {_OLDEST} or Valkey is needed"
            )
        if about[b"mode"] == b"cluster" and not self._plans.spread:
            raise StoreConnectionError(
                f"{self.name} is a node of a cluster: write redis+cluster:// for the cluster"
            )

    def _carry_out(self, plan: Callable[..., Any], *args: Any) -> Any:
        return self._link.run(plan(*args))

    def async_store(self, threads: Threads) -> AsyncStore:
        return _AsyncRedisStore(self._link, self._plans)

    def close(self) -> None:
        self._link.close()


class _AsyncRedisStore(_RedisMethods):
    """The same, as event loops ask it."""

    def __init__(self, link: RedisConnection, plans: RedisWrites) -> None:
        self._link = link
        self._plans = plans

    def _carry_out(self, plan: Callable[..., Any], *args: Any) -> Awaitable[Any]:
        return self._link.arun(plan(*args))

    def capability(self, kind: type[C]) -> C | None:
        return self if isinstance(self, kind) else None

    def release(self) -> None:
        """Do nothing: the store has all of it, and closes it."""

    async def close(self) -> None:
        await self._link.aclose()


def _checked_timeout(value: float | str | None) -> float:
    try:
        seconds = DEFAULT_TIMEOUT if value is None else float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidArgumentError(f"timeout is a number of seconds above 0, not {value!r}")
    return seconds
