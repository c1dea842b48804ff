"""Where a run begins: at a new turn, or in the middle of the one that its session is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)
from pydantic_ai.usage import RunUsage

from holdfast.adapters.pydantic_ai.messages import dumped, loaded
from holdfast.adapters.pydantic_ai.tool_outputs import answer_parts
from holdfast.adapters.pydantic_ai.turns import (
    Turn,
    digest_of,
    is_prompt,
    prompt_in_json,
    same_history,
    usage_from_json,
)
from holdfast.errors import InvalidArgumentError


@dataclass
class Beginning:
    """Where a run begins."""

    turn: Turn
    node: Any
    """The node that the framework carries out first."""
    messages: list[Any]
    """The history it finds."""
    is_kept: bool = False
    """Whether the request that is about to be sent is kept already."""
    answer: ModelResponse | None = None
    """The model's answer, if there is one that was not acted on, with the calls that are open."""
    answers: ModelRequest | None = None
    """What came from elsewhere for other calls of that answer: it follows it in the history."""
    usage: RunUsage = field(default_factory=RunUsage)
    """What the turn has used before it was cut off."""
    is_left: bool = False
    """Whether the turn was cut off and another begins: its calls are to be closed."""


def begin(
    turn: Turn, given: Sequence[Any], node: Any, session_id: str, is_again: bool
) -> Beginning:
    """Return where a run begins whose program gives this history and this first node.

    ``is_again`` says that nobody can have had the result of the last run, even if it has ended.
    """
    history, prompt = dumped(given), prompt_in_json(node.user_prompt)
    asked = Turn(turn.messages, prompt, finished=False, given=digest_of(history))
    if not turn.messages:
        return Beginning(asked, node, list(given))
    _check_history(turn, history, session_id)
    messages = loaded(turn.messages)
    is_same = prompt is None or is_prompt(prompt, turn.prompt)
    results = node.deferred_tool_results
    has_results = results is None or _are_answered(results, messages)
    if turn.finished and is_again and is_same and has_results:
        messages = _up_to_answer(messages)
    elif turn.finished:
        return Beginning(asked, node, messages)
    elif not is_same:
        return Beginning(asked, node, messages, is_left=True)
    return _resumed(turn, messages, node, has_results)


def _check_history(turn: Turn, history: list[Any], session_id: str) -> None:
    """Refuse a history that is not the session's: one of the two would be lost."""
    if history and digest_of(history) != turn.given and not same_history(history, turn.messages):
        raise InvalidArgumentError(
            f"session {session_id!r} holds a conversation of {len(turn.messages)} messages, and "
            f"message_history= is another one, of {len(history)}: leave message_history out, as "
            "the session has it, or give this one a session_id (or conversation_id) of its own"
        )


def _resumed(turn: Turn, messages: list[Any], node: Any, has_results: bool) -> Beginning:
    """Return the middle of a turn: its prompt is there, and so are the answers to it so far."""
    turn = replace(turn, finished=False)
    usage = usage_from_json(turn.usage)
    if not has_results:
        return Beginning(turn, node, messages, usage=usage)
    node = replace(node, user_prompt=None, deferred_tool_results=None)
    last = messages[-1]
    if isinstance(last, ModelRequest) and (answer := _open_part(messages)) is not None:
        return Beginning(turn, node, messages[:-1], answer=answer, answers=last, usage=usage)
    if isinstance(last, ModelRequest):
        whole = list(repair_messages(messages))
        return Beginning(turn, node, whole, is_kept=whole == messages, usage=usage)
    answer = last if last.state == "complete" else None
    return Beginning(turn, node, messages, answer=answer, usage=usage)


def _open_part(messages: list[Any]) -> ModelResponse | None:
    """Return the model's last answer with those of its calls that are open, if only some are.

    Only a conversation that came from elsewhere has some: here a request holds what all gave.
    """
    still_open = [call.tool_call_id for call in open_calls(messages)]
    if not still_open or not all(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        return None
    said = messages[-2]
    parts = [
        part
        for part in said.parts
        if not isinstance(part, ToolCallPart) or part.tool_call_id in still_open
    ]
    return replace(said, parts=parts)


def open_calls(messages: Sequence[Any]) -> list[Any]:
    """Return the calls of the model's last answer that have none themselves."""
    answered: set[str] = set()
    for message in messages[:-3:-1]:
        if isinstance(message, ModelResponse):
            return [call for call in message.tool_calls if call.tool_call_id not in answered]
        answered |= {p.tool_call_id for p in message.parts if isinstance(p, ToolReturnPart)}
    return []


def _are_answered(results: Any, messages: list[Any]) -> bool:
    """Return whether calls whose results were given have them in the history already."""
    answered = {
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    return set(results.to_tool_call_results()) <= answered


def closed(messages: list[Any], done: Mapping[str, Any]) -> list[Any]:
    """Return messages of a turn that is left: its calls have what they gave, or were interrupted.

    ``done`` is what those gave that ended, by their ids.
    """
    if done:
        calls = [call for call in open_calls(messages) if call.tool_call_id in done]
        parts = [part for call in calls for part in answer_parts(call, done[call.tool_call_id])]
        messages = [*messages, ModelRequest(parts=parts)]
    return list(repair_messages(messages))


def _up_to_answer(messages: list[Any]) -> list[Any]:
    """Return a finished history up to the model's last answer, from which the result is made."""
    while messages and not isinstance(messages[-1], ModelResponse):
        messages = messages[:-1]
    return messages


def name_of(request: ModelRequest) -> str:
    """Return what a request holds, as the name of a step."""
    kinds = {type(part) for part in request.parts}
    if ToolReturnPart in kinds:
        return "tools"
    if UserPromptPart in kinds:
        return "user prompt"
    return "retry" if RetryFeedbackPart in kinds else "request"
