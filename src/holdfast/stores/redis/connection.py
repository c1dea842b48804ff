"""The connections to a Redis server: they carry out plans, for threads and for event loops.

A command that met no server, or a server that just comes up or changes roles, is sent again for a
while. That is safe: every plan may be carried out twice with the same outcome as once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, TypeVar

from holdfast.errors import StoreClosedError
from holdfast.stores.redis.errors import (
    cut_connection,
    is_passing,
    is_unknown_script,
    redis_errors,
    translated,
)
from holdfast.stores.redis.reads import RedisPlan
from holdfast.stores.redis.scripts import RedisCommand, ScriptCall
from holdfast.stores.redis.urls import Address, async_client, sync_client
from holdfast.stores.shared.per_loop import PerLoop
from holdfast.stores.shared.retry import Attempts, Rule, retry, retry_async
from holdfast.system.drive import drive, drive_async
from holdfast.system.forks import Locked

T = TypeVar("T")

_SHORTEST_WAIT, _LONGEST_WAIT = 0.02, 0.5
_left_by_parents: list[Any] = []
"""Clients of event loops that a fork copied: closing them would disturb those of the parent."""


class RedisConnection(Locked):
    """Clients of one server, made when they are needed: one for threads, one for each loop."""

    def __init__(self, address: Address, name: str, timeout: float) -> None:
        super().__init__()
        self.address = address
        self.name = name
        self.timeout = timeout
        self.closed = False
        self._client: Any = None
        self._clients: PerLoop[_ClientOfLoop] = PerLoop(
            self._client_of_loop, leave=_left_by_parents.append
        )
        self._rules = (
            Rule(
                lambda error: not self.closed and is_passing(error),
                seconds=timeout,
                at_least=2,
                shortest=_SHORTEST_WAIT,
                longest=_LONGEST_WAIT,
                steady=0.5,
            ),
        )

    def _after_fork(self, in_child: bool) -> None:
        super()._after_fork(in_child)
        if in_child:
            self._client = None

    def run(self, plan: RedisPlan[T]) -> T:
        """Carry out a plan in this thread."""
        return drive(plan, self._answer)

    async def arun(self, plan: RedisPlan[T]) -> T:
        """Carry out a plan on the running loop."""
        return await drive_async(plan, self._answer_async)

    def _answer(self, batch: Sequence[RedisCommand | ScriptCall]) -> list[Any]:
        return drive(_told(batch), self._sent)

    async def _answer_async(self, batch: Sequence[RedisCommand | ScriptCall]) -> list[Any]:
        return await drive_async(_told(batch), self._sent_async)

    def _sent(self, commands: list[RedisCommand]) -> list[Any]:
        return retry(self._attempts(), lambda: _checked(_send(self.client(), commands)))

    async def _sent_async(self, commands: list[RedisCommand]) -> list[Any]:
        async def attempt() -> list[Any]:
            if self.closed:
                raise StoreClosedError(self.name)
            client = await self._clients.get().opened()
            return _checked(await _send_async(client, commands))

        return await retry_async(self._attempts(), attempt)

    def _attempts(self) -> Attempts:
        return Attempts(self._rules, self.explained)

    def explained(self, error: Exception) -> Exception:
        """Return what went wrong, in Holdfast's own words where it is an error of the client."""
        if not isinstance(error, redis_errors()):
            return error
        if self.closed:
            return StoreClosedError(self.name)
        return translated(error, self.name, self.timeout)

    def client(self) -> Any:
        """Return the client for threads."""
        if self.closed:
            raise StoreClosedError(self.name)
        client = self._client
        if client is None:
            with self._lock:
                if self._client is None and not self.closed:
                    self._client = sync_client(self.address, self.timeout)
                client = self._client
            if client is None:
                raise StoreClosedError(self.name)
        return client

    def _client_of_loop(self) -> _ClientOfLoop:
        return _ClientOfLoop(self.address, self.timeout, self._clients)

    def close(self) -> None:
        """Close the connections of threads; those of a loop are closed on it, or when it ends."""
        with self._lock:
            self.closed = True
            client, self._client = self._client, None
        for each in _with_sentinels(client) if client is not None else ():
            each.close()
            if hasattr(each, "connection_pool"):
                each.connection_pool.disconnect()

    async def aclose(self) -> None:
        """Close the connections of the running loop, too."""
        self.close()
        held = self._clients.find()
        if held is not None:
            await held.aclose()


class _ClientOfLoop:
    """The client of one event loop, which closes it at its end."""

    def __init__(self, address: Address, timeout: float, among: PerLoop[_ClientOfLoop]) -> None:
        self._client = async_client(address, timeout)
        self._is_cluster = address.kind == "cluster"
        self._among = among
        self._keeper: AsyncGenerator[None] | None = None

    async def opened(self) -> Any:
        """Return the client; the first time, have the loop see to its end."""
        if self._keeper is None:
            self._keeper = self._keep()
            await anext(self._keeper)
        if self._is_cluster:
            # Else tasks that come together would ask any node, before it is known which has what.
            await self._client.initialize()
        return self._client

    async def _keep(self) -> AsyncGenerator[None]:
        """Close the client when this is closed: every loop does so with all it has, at its end."""
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._among.drop(loop)
            for each in _with_sentinels(self._client):
                await each.aclose()
                if hasattr(each, "connection_pool"):
                    await each.connection_pool.disconnect()

    async def aclose(self) -> None:
        """Close the client, on its loop."""
        if self._keeper is not None:
            await self._keeper.aclose()


def _told(
    batch: Sequence[RedisCommand | ScriptCall],
) -> Generator[list[RedisCommand], list[Any], list[Any]]:
    """Return the replies to a batch; a script that the server does not know is sent again."""
    replies = yield [each.by_sha() if isinstance(each, ScriptCall) else each for each in batch]
    unknown = {
        place: each
        for place, (each, reply) in enumerate(zip(batch, replies, strict=True))
        if isinstance(each, ScriptCall) and is_unknown_script(reply)
    }
    if unknown:
        told = yield [call.by_text() for call in unknown.values()]
        for place, reply in zip(unknown, told, strict=True):
            replies[place] = reply
    return replies


def _send(client: Any, commands: list[RedisCommand]) -> list[Any]:
    """Return the replies, where one of them may be an error."""
    if not commands:
        return []
    try:
        if len(commands) == 1:
            return [client.execute_command(*commands[0])]
        pipeline = _pipeline(client)
        for command in commands:
            pipeline.execute_command(*command)
        return list(pipeline.execute(raise_on_error=False))
    except redis_errors() as error:
        return [error]


async def _send_async(client: Any, commands: list[RedisCommand]) -> list[Any]:
    if not commands:
        return []
    try:
        if len(commands) == 1:
            return [await client.execute_command(*commands[0])]
        pipeline = _pipeline(client)
        for command in commands:
            pipeline.execute_command(*command)
        return list(await pipeline.execute(raise_on_error=False))
    except redis_errors() as error:
        return [error]
    except AttributeError as error:
        # On any fault, the client of a cluster cuts also what other tasks are just connecting.
        return [cut_connection(error)]


def _pipeline(client: Any) -> Any:
    return client.pipeline(transaction=False)


def _checked(replies: list[Any]) -> list[Any]:
    """Return the replies if none is an error, but for those about scripts that have to be told."""
    for reply in replies:
        if isinstance(reply, Exception) and not is_unknown_script(reply):
            raise reply
    return replies


def _with_sentinels(client: Any) -> list[Any]:
    """Return a client, and those it asks which server is the primary."""
    pool = getattr(client, "connection_pool", None)
    manager = getattr(pool, "sentinel_manager", None)
    return [client, *(manager.sentinels if manager is not None else ())]
