"""What holds a run of an agent together: around the run, around each model call, each tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_framework import (
    AgentMiddleware,
    AgentResponse,
    ChatMiddleware,
    FunctionMiddleware,
    MiddlewareFailure,
    MiddlewareTermination,
    ResponseStream,
)

from holdfast.adapters.agent_framework.turn import Turn
from holdfast.errors import HoldfastError

Next = Callable[[], Awaitable[None]]
Begin = Callable[[Any], Awaitable[Turn]]
Find = Callable[[Any], Turn | None]


class HoldfastMiddleware(AgentMiddleware, Sequence[Any]):
    """Opens the session for a run and keeps its end; brings along what is around models and tools.

    ``middleware=[provider.middleware]``, or without the brackets: as a sequence it holds itself.
    """

    def __init__(self, begin: Begin, find: Find) -> None:
        self._begin = begin
        self._inner = [_AroundTools(find), _AroundModels(find)]

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return (self,)[index]

    async def process(self, context: Any, call_next: Next) -> None:
        turn = await self._begin(context)
        others = context.client_kwargs.get("middleware") or []
        context.client_kwargs = {**context.client_kwargs, "middleware": [*others, *self._inner]}
        try:
            await call_next()
        except MiddlewareTermination:
            await turn.end(_response(context.result))
            raise
        except BaseException as error:
            await _failed(turn, error)
        if isinstance(context.result, ResponseStream):
            context.result = _watched(context.result, turn)
        else:
            await turn.end(_response(context.result))


def _response(result: Any) -> Any:
    return result if isinstance(result, AgentResponse) else None


async def _failed(turn: Turn, error: BaseException) -> None:
    """Let go of the session, and raise what went wrong: in Holdfast itself, if it did there."""
    cause = error.__cause__
    if isinstance(error, MiddlewareFailure) and isinstance(cause, HoldfastError):
        await turn.fail(cause)
        raise cause
    await turn.fail(error)
    raise error


def _watched(stream: Any, turn: Turn) -> Any:
    """Return a stream that keeps the end of its run before it says that it is over."""
    final: list[Any] = []

    async def updates() -> Any:
        try:
            async for update in stream:
                yield update
            final.append(await stream.get_final_response())
        except BaseException as error:
            await _failed(turn, error)
        await turn.end(final[0])

    return ResponseStream(updates(), finalizer=lambda _: final[0])


class _AroundModels(ChatMiddleware):
    """Gives recorded answers of the model, and keeps new ones before any tool runs."""

    def __init__(self, find: Find) -> None:
        self._find = find

    async def process(self, context: Any, call_next: Next) -> None:
        turn = self._find(context.session)
        if turn is None:
            await call_next()
            return
        recorded = turn.recorded_answer(context.options)
        if recorded is not None:
            context.result = _replayed(recorded) if context.stream else recorded
            return
        options = context.options or {}
        is_partial = bool(options.get("conversation_id") or context.kwargs.get("conversation_id"))
        await turn.asks(_own(context.messages), is_partial=is_partial)
        await call_next()
        if isinstance(context.result, ResponseStream):
            context.result = context.result.with_result_hook(turn.answered)
        elif context.result is not None:
            await turn.answered(context.result)


def _own(messages: Sequence[Any]) -> list[Any]:
    """Return the messages of the run itself, without those that providers put before them."""
    return [each for each in messages if "_attribution" not in each.additional_properties]


def _replayed(response: Any) -> Any:
    """Return an answer as a stream of it."""

    async def updates() -> Any:
        for update in response.to_updates():
            yield update

    return ResponseStream(updates(), finalizer=lambda _: response)


class _AroundTools(FunctionMiddleware):
    """Journals each tool by the id of its call."""

    def __init__(self, find: Find) -> None:
        self._find = find

    async def process(self, context: Any, call_next: Next) -> None:
        turn = self._find(context.session)
        if turn is None or context.metadata.get("call_id") is None:
            await call_next()
            return
        await turn.call(context, call_next)
