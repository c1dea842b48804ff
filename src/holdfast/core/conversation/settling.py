"""What becomes of calls without an answer, where a conversation was cut in the middle of them.

Most frameworks refuse a conversation with such calls, or ask the model again beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.normal import safe_id
from holdfast.core.conversation.parts import Message, Part, tool_call_response

Rest = Literal["keep", "drop", "answer"]
RESTS = ("keep", "drop", "answer")

INTERRUPTED = (
    "[interrupted: this call did not come to its end, and its outcome is unknown; "
    "make it again if it is still needed]"
)
UNKNOWN = (
    "[interrupted: nobody knows whether this took place, and it cannot be undone; "
    "find out before it is done again]"
)


@dataclass(frozen=True)
class Settling:
    """How calls without an answer are settled."""

    outputs: Mapping[str, Any]
    """What calls gave, by their id."""
    rest: Rest
    irreversible: Collection[str] = ()
    """Ids or names of calls that are never kept as if they could run again."""

    def of(self, messages: list[Message], lost: Lost) -> list[Message]:
        """Return messages in the normal form without calls that nothing answers.

        But with ``keep`` those at the very end stay: their framework runs them.
        """
        known = {safe_id(own_id): output for own_id, output in self.outputs.items()}
        never = {*self.irreversible, *map(safe_id, self.irreversible)}
        settled: list[Message] = []
        for i, message in enumerate(messages):
            calls = [part for part in message["parts"] if part["type"] == "tool_call"]
            following = messages[i + 1] if i + 1 < len(messages) else None
            answers: dict[str, Part] = {}
            if message["role"] == "tool":
                continue  # written with the calls that it answers
            if following is not None and following["role"] == "tool":
                answers = {part["id"]: part for part in following["parts"]}
            if calls:
                for call in calls:
                    self._answer(call, answers, known, never)
                is_last = i + (2 if following and following["role"] == "tool" else 1) >= len(
                    messages
                )
                left = [call for call in calls if call["id"] not in answers]
                if left and not (self.rest == "keep" and is_last):
                    if answers or self.rest == "answer":
                        answers |= {call["id"]: interrupted(call) for call in left}
                    else:
                        message = _without(message, left, lost, f"$.messages[{i}]")
            if message["parts"]:
                settled.append(message)
            said = [answers[call["id"]] for call in calls if call["id"] in answers]
            if said:
                settled.append({"role": "tool", "parts": said})
        return settled

    def _answer(
        self, call: Part, answers: dict[str, Part], known: Mapping[str, Any], never: set[str]
    ) -> None:
        call_id = call["id"]
        if call_id in answers:
            return
        if call_id in known:
            answers[call_id] = answered(call, known[call_id])
        elif call_id in never or call["name"] in never:
            answers[call_id] = tool_call_response(
                call_id, UNKNOWN, name=call["name"], is_error=True
            )


def answered(call: Part, output: Any) -> Part:
    """Return the answer to a call, of what it gave: plain data, or a whole answer."""
    if isinstance(output, dict) and output.get("type") == "tool_call_response":
        # A journal may hold beside it how its framework has the same.
        own = {name: output[name] for name in ("response", "is_error", "parts") if name in output}
        return {"type": output["type"], "response": None, **own, "id": call["id"]}
    return tool_call_response(call["id"], output, name=call["name"])


def interrupted(call: Part) -> Part:
    """Return what is said of a call that did not come to its end."""
    return tool_call_response(call["id"], INTERRUPTED, name=call["name"], is_error=True)


def _without(message: Message, calls: list[Part], lost: Lost, path: str) -> Message:
    for call in calls:
        lost.add(path, f"call {call['id']} ({call['name'][:60]}) had no answer and is left out")
    return {**message, "parts": [part for part in message["parts"] if part not in calls]}
