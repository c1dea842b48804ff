"""The link to a Redis server: it carries out steps, for threads and for event loops.

A command that met no server, or a server that just comes up or changes roles, is sent again for a
while. That is safe: every step may be done twice with the same outcome as once.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import HoldfastError, StoreClosedError
from holdfast.stores.redis.errors import (
    cut_connection,
    is_passing,
    is_unknown_script,
    redis_errors,
    translated,
)
from holdfast.stores.redis.reads import Steps
from holdfast.stores.redis.scripts import Call, Command
from holdfast.stores.redis.urls import Address, async_client, sync_client
from holdfast.system.forks import Locked

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_SHORTEST_WAIT, _LONGEST_WAIT = 0.02, 0.5
_left_by_parents: list[Any] = []
"""Clients of event loops that a fork copied: closing them would disturb those of the parent."""


class Link(Locked):
    """Clients of one server, made when they are needed: one for threads, one for each loop."""

    def __init__(self, address: Address, name: str, timeout: float) -> None:
        super().__init__()
        self.address = address
        self.name = name
        self.timeout = timeout
        self.closed = False
        self._client: Any = None
        self._of_loops: dict[asyncio.AbstractEventLoop, Any] = {}

    def _after_fork(self, in_child: bool) -> None:
        super()._after_fork(in_child)
        if in_child:
            self._client = None
            _left_by_parents.extend(self._of_loops.values())
            self._of_loops = {}

    def run(self, steps: Steps[T]) -> T:
        """Carry out steps in this thread."""
        plain = _plain(steps)
        try:
            commands = next(plain)
            while True:
                commands = plain.send(self._answer(commands))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            plain.close()

    async def arun(self, steps: Steps[T]) -> T:
        """Carry out steps on the running loop."""
        plain = _plain(steps)
        try:
            commands = next(plain)
            while True:
                commands = plain.send(await self._answer_async(commands))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            plain.close()

    def _answer(self, commands: list[Command]) -> list[Any]:
        patience = Patience(self.timeout)
        while True:
            try:
                return _checked(_send(self.client(), commands))
            except redis_errors() as error:
                pause = self._pause(error, patience)
            time.sleep(pause)

    async def _answer_async(self, commands: list[Command]) -> list[Any]:
        import asyncio

        patience = Patience(self.timeout)
        while True:
            try:
                return _checked(await _send_async(await self._client_of_loop(), commands))
            except redis_errors() as error:
                pause = self._pause(error, patience)
            await asyncio.sleep(pause)

    def _pause(self, error: Exception, patience: Patience) -> float:
        """How long to wait before another attempt; raises the error if there is to be none."""
        if self.closed:
            raise StoreClosedError(self.name) from None
        pause = patience.pause() if is_passing(error) else None
        if pause is None:
            raise self.explained(error) from error
        return pause

    def explained(self, error: Exception) -> HoldfastError:
        """What went wrong, in Holdfast's own words."""
        return translated(error, self.name, self.timeout)

    def client(self) -> Any:
        """The client for threads."""
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

    async def _client_of_loop(self) -> Any:
        import asyncio

        if self.closed:
            raise StoreClosedError(self.name)
        loop = asyncio.get_running_loop()
        held = self._of_loops.get(loop)
        if held is None:
            for gone in [known for known in list(self._of_loops) if known.is_closed()]:
                self._of_loops.pop(gone, None)
            client = async_client(self.address, self.timeout)
            held = (client, self._keep(loop, client))
            await anext(held[1])
            self._of_loops[loop] = held
        client = held[0]
        if self.address.kind == "cluster":
            # Else tasks that come together would ask any node, before it is known which has what.
            await client.initialize()
        return client

    async def _keep(self, loop: asyncio.AbstractEventLoop, client: Any) -> AsyncGenerator[None]:
        """Close a client when this is closed: every loop does so with all it has, at its end."""
        try:
            yield
        finally:
            self._of_loops.pop(loop, None)
            for each in _with_sentinels(client):
                await each.aclose()
                if hasattr(each, "connection_pool"):
                    await each.connection_pool.disconnect()

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
        import asyncio

        self.close()
        held = self._of_loops.get(asyncio.get_running_loop())
        if held is not None:
            await held[1].aclose()


class Patience:
    """How long to go on trying: a second time at least, and until the time has passed."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._wait = _SHORTEST_WAIT
        self._attempts = 1

    def pause(self) -> float | None:
        """How long to wait before the next attempt, or None if enough was tried."""
        self._attempts += 1
        if self._attempts > 2 and time.monotonic() > self._deadline:
            return None
        wait, self._wait = self._wait, min(2 * self._wait, _LONGEST_WAIT)
        return random.uniform(wait / 2, wait)  # noqa: S311


def _plain(steps: Steps[T]) -> Generator[list[Command], list[Any], T]:
    """The same steps in commands alone; a script that the server does not know is sent again."""
    try:
        batch = next(steps)
        while True:
            replies = yield [each.by_sha() if isinstance(each, Call) else each for each in batch]
            unknown = {
                place: each
                for place, (each, reply) in enumerate(zip(batch, replies, strict=True))
                if isinstance(each, Call) and is_unknown_script(reply)
            }
            if unknown:
                told = yield [call.by_text() for call in unknown.values()]
                for place, reply in zip(unknown, told, strict=True):
                    replies[place] = reply
            batch = steps.send(replies)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()


def _send(client: Any, commands: list[Command]) -> list[Any]:
    """The replies, where one of them may be an error."""
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


async def _send_async(client: Any, commands: list[Command]) -> list[Any]:
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
    """The replies if none is an error, but for those about scripts that have to be told."""
    for reply in replies:
        if isinstance(reply, Exception) and not is_unknown_script(reply):
            raise reply
    return replies


def _with_sentinels(client: Any) -> list[Any]:
    """A client, and those it asks which server is the primary."""
    pool = getattr(client, "connection_pool", None)
    manager = getattr(pool, "sentinel_manager", None)
    return [client, *(manager.sentinels if manager is not None else ())]
