"""``@checkpoint``: save an agent after every n-th call of a function."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from holdfast.errors import InvalidArgumentError
from holdfast.state.checkpointable import Checkpointable, as_checkpointable
from holdfast.state.manager import CheckpointManager
from holdfast.state.save_queue import PendingSave

P = ParamSpec("P")
R = TypeVar("R")

Key = str | Callable[[Any], str]


def checkpoint(
    manager: CheckpointManager,
    key: Key | None = None,
    every: int = 1,
    agent: Checkpointable | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Save the agent after every n-th call of a function or method, sync or async.

    The agent is the first argument (``self``, for a method) that is a Checkpointable, or ``agent``.
    The key is a string, a function of the agent, or by default the name of the agent's class;
    calls are counted for each key. A call that raises is neither counted nor saved. In an async
    function the state is taken at once and written in another thread.

    >>> from holdfast import Checkpointable, CheckpointManager, checkpoint
    >>> manager = CheckpointManager()
    >>> class Agent(Checkpointable):
    ...     def __init__(self):
    ...         self.messages = []
    ...     @checkpoint(manager, key="chat", every=2)
    ...     def reply(self, message):
    ...         self.messages.append(message)
    >>> agent = Agent()
    >>> for message in "abc":
    ...     agent.reply(message)
    >>> manager.load("chat", agent).messages
    ['a', 'b']
    """
    if not isinstance(manager, CheckpointManager):
        raise InvalidArgumentError(
            "checkpoint wants a CheckpointManager: @checkpoint(manager), with parentheses"
        )
    if type(every) is not int or every < 1:
        raise InvalidArgumentError(f"every is a whole number from 1, not {every!r}")
    if key is not None and not isinstance(key, str) and not callable(key):
        raise InvalidArgumentError(f"key is a string or a function of the agent, not {key!r}")
    if agent is not None:
        as_checkpointable(agent)

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        return _wrapped(_checked(fn), _Saves(manager, key, every, agent))

    return decorate


def _checked(fn: Callable[P, R]) -> Callable[P, R]:
    if isinstance(fn, (staticmethod, classmethod)):
        raise InvalidArgumentError("put @checkpoint below @staticmethod or @classmethod")
    if isinstance(fn, type) or not callable(fn):
        raise InvalidArgumentError(f"@checkpoint is for functions and methods, not {fn!r}")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise InvalidArgumentError(
            "@checkpoint cannot tell when a generator's work is done: "
            "decorate the function that consumes it, or call manager.save in it"
        )
    return fn


class _Saves:
    """Which agent a call is about, and whether its save is due."""

    def __init__(
        self,
        manager: CheckpointManager,
        key: Key | None,
        every: int,
        agent: Checkpointable | None,
    ) -> None:
        self._manager = manager
        self._key = key
        self._every = every
        self._agent = agent
        self._calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def agent_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Checkpointable:
        """Return the agent of a call; asked before it, so that no work is done in vain."""
        if self._agent is not None:
            return self._agent
        for value in (*args, *kwargs.values()):
            if isinstance(value, Checkpointable):
                return value
        raise InvalidArgumentError(
            "@checkpoint found no Checkpointable among the arguments: "
            "pass one, or name it with @checkpoint(manager, agent=...)"
        )

    def due(self, agent: Checkpointable) -> PendingSave | None:
        """Count a call; return the save to be written, with the state as it is now, or None."""
        if self._key is None:
            key = type(agent).__name__
        else:
            key = self._key if isinstance(self._key, str) else self._key(agent)
        with self._lock:
            self._calls[key] += 1
            if self._calls[key] % self._every:
                return None
        return self._manager.prepare(key, agent)


def _wrapped(fn: Callable[P, R], saves: _Saves) -> Callable[P, R]:
    async def finish(call: Any, agent: Checkpointable) -> Any:
        result = await call
        pending = saves.due(agent)
        if pending is not None:
            await asyncio.to_thread(pending.write)
        return result

    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def in_turn(*args: P.args, **kwargs: P.kwargs) -> Any:
            agent = saves.agent_of(args, kwargs)
            return await finish(fn(*args, **kwargs), agent)

        return cast("Callable[P, R]", in_turn)

    @functools.wraps(fn)
    def at_once(*args: P.args, **kwargs: P.kwargs) -> R:
        agent = saves.agent_of(args, kwargs)
        result = fn(*args, **kwargs)
        if inspect.iscoroutine(result):  # a coroutine function in disguise, such as a partial
            return cast("R", finish(result, agent))
        pending = saves.due(agent)
        if pending is not None:
            pending.write()
        return result

    return at_once
