"""The form that naming a session had before: its agent, then its id, by place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def agent_first(method: F) -> F:
    """Return a method that also takes the agent as one more argument in front, with a warning."""
    name = method.__name__
    before = method.__code__.co_argcount  # self counted now, the agent then

    def by_name(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if len(args) != before or "agent_id" in named:
            return args, named
        from warnings import warn

        told = f"{name}(agent_id, session_id, …) is {name}(session_id, …, agent_id=agent_id) now"
        warn(told, DeprecationWarning, stacklevel=3)
        return args[1:], {**named, "agent_id": args[0]}

    if isasyncgenfunction(method):

        @wraps(method)
        async def called(self: Any, *args: Any, **named: Any) -> AsyncIterator[Any]:
            args, named = by_name(args, named)
            async with aclosing(method(self, *args, **named)) as every:
                async for each in every:
                    yield each

        return cast(F, called)
    if iscoroutinefunction(method):

        @wraps(method)
        async def awaited(self: Any, *args: Any, **named: Any) -> Any:
            args, named = by_name(args, named)
            return await method(self, *args, **named)

        return cast(F, awaited)

    @wraps(method)
    def plain(self: Any, *args: Any, **named: Any) -> Any:
        args, named = by_name(args, named)
        return method(self, *args, **named)

    return cast(F, plain)
