"""Where a run begins: at a new turn, or in the middle of the one that its session is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)
from pydantic_ai.usage import RunUsage

from holdfast.adapters.pydantic_ai.delegation import OuterCall
from holdfast.adapters.pydantic_ai.messages import dumped, loaded
from holdfast.adapters.pydantic_ai.turns import (
    Turn,
    digest_of,
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
    kept: int = 0
    """How many messages are kept already, with the one that is about to be sent."""
    answer: ModelResponse | None = None
    """The model's answer, if the history ends with one that was not acted on."""
    usage: RunUsage = field(default_factory=RunUsage)
    """What the turn has used before it was cut off."""


def begin(
    turn: Turn, given: Sequence[Any], node: Any, session_id: str, outer: OuterCall | None
) -> Beginning:
    """Return where a run begins whose program gives this history and this first node."""
    history, prompt = dumped(given), prompt_in_json(node.user_prompt)
    asked = Turn(turn.messages, prompt, finished=False, given=digest_of(history))
    if not turn.messages:
        return Beginning(asked, node, list(given))
    _check_history(turn, history, session_id)
    messages = loaded(turn.messages)
    is_same = prompt is None or prompt == turn.prompt
    if turn.finished and outer is not None and is_same:
        messages = _up_to_answer(messages)  # the call that it was made in was cut off
    elif turn.finished:
        return Beginning(asked, node, messages, kept=len(messages))
    elif not is_same:
        closed = repair_messages(messages)
        return Beginning(asked, node, closed, kept=len(closed))
    return _resumed(turn, messages, node)


def _check_history(turn: Turn, history: list[Any], session_id: str) -> None:
    """Refuse a history that is not the session's: one of the two would be lost."""
    if history and digest_of(history) != turn.given and not same_history(history, turn.messages):
        raise InvalidArgumentError(
            f"session {session_id!r} holds a conversation of {len(turn.messages)} messages, and "
            f"message_history= is another one, of {len(history)}: leave message_history out, as "
            "the session has it, or give this one a session_id (or conversation_id) of its own"
        )


def _resumed(turn: Turn, messages: list[Any], node: Any) -> Beginning:
    """Return the middle of a turn: its prompt is there, and so are the answers to it so far."""
    kept = len(messages)
    turn = replace(turn, finished=False)
    usage = usage_from_json(turn.usage)
    results = node.deferred_tool_results
    if results is not None and not _are_answered(results, messages):
        return Beginning(turn, node, messages, kept, usage=usage)
    node = replace(node, user_prompt=None, deferred_tool_results=None)
    last = messages[-1]
    answer = last if isinstance(last, ModelResponse) and last.state == "complete" else None
    return Beginning(turn, node, messages, kept, answer, usage)


def _are_answered(results: Any, messages: list[Any]) -> bool:
    """Return whether calls whose results were given have them in the history already."""
    last = messages[-1]
    answered = {part.tool_call_id for part in last.parts if isinstance(part, ToolReturnPart)}
    return isinstance(last, ModelRequest) and set(results.to_tool_call_results()) <= answered


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
