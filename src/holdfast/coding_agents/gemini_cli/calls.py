"""Which of the calls in a chat a checkpoint is of: Gemini CLI tells its hooks no call id.

When the hook runs, the message that makes the calls is in the chat without them; they come, with
their results, once the last one has ended. So what is known then (the message, the call and what it
gave) is kept as a mark, and looked for in the message as it was written later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.coding_agents.gemini_cli.program import text_of
from holdfast.coding_agents.masking import masked
from holdfast.core.conversation.programs.gemini_chat import MARK, messages_in, response_id

Mark = Mapping[str, Any]


def mark(message: str | None, tool: str | None, args: Any, output: Any) -> dict[str, Any]:
    """Return the record that says which call a checkpoint is of."""
    said: dict[str, Any] = {"message": message, "name": tool, "args": masked(args)}
    error = output.get("error") if isinstance(output, Mapping) else None
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        said["response"] = {"error": masked(error["message"])}
    elif (text := text_of(output)) is not None:
        said["response"] = {"output": masked(text)}
    return {MARK: said}


def mark_of(entries: Sequence[Any]) -> Mark | None:
    """Return the mark of a checkpoint's entries, if they have one."""
    last = entries[-1] if entries else None
    found = last.get(MARK) if isinstance(last, Mapping) else None
    return found if isinstance(found, Mapping) else None


def open_message(entries: Sequence[Any]) -> Mapping[str, Any] | None:
    """Return the last message of the model in a chat: calls that run now are its."""
    return next((each for each in messages_in(entries) if each.get("type") == "gemini"), None)


def claimed(calls: Sequence[Mapping[str, Any]], marks: Sequence[Mark]) -> list[str | None]:
    """Return the id of the call that each mark is of; None where it is of none of them.

    Of equal calls each mark has another: the one with its result, else the next in order. A call
    whose arguments the user has changed is known by its result.
    """
    found: list[str | None] = [None] * len(marks)
    free = list(calls)
    for is_same in (_same_call_and_result, _same_call, _same_result):
        for i, each in enumerate(marks):
            if found[i] is None:
                match = next((call for call in free if is_same(call, each)), None)
                if match is not None:
                    free.remove(match)
                    found[i] = match["id"]
    return found


def _same_call_and_result(call: Mapping[str, Any], its: Mark) -> bool:
    return _same_call(call, its) and _same_result(call, its)


def _same_call(call: Mapping[str, Any], its: Mark) -> bool:
    return bool(call.get("name") == its.get("name") and call.get("args") == its.get("args"))


def _same_result(call: Mapping[str, Any], its: Mark) -> bool:
    if call.get("name") != its.get("name") or its.get("response") is None:
        return False
    result = call.get("result")
    return any(
        isinstance(part, Mapping)
        and response_id(part) == call["id"]
        and part["functionResponse"].get("response") == its["response"]
        for part in (result if isinstance(result, list) else [result])
    )
