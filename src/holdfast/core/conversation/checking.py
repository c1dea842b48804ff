"""What keeps a framework from going on with a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.core.conversation import kinds
from holdfast.core.conversation.normal import ROLES
from holdfast.errors import InvalidArgumentError


def problems_of(system: Any, messages: Any) -> list[str]:
    """Return where a conversation is not in the normal form, and its calls without an answer."""
    found = list(_system_problems(system))
    if not isinstance(messages, list):
        return [*found, "$.messages is no list"]
    pairing = _Pairing()
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        found += _message_problems(message, path) or pairing.of(message, path)
    return [*found, *pairing.unanswered()]


def _system_problems(system: Any) -> Iterator[str]:
    if not isinstance(system, list):
        yield "$.system_instructions is no list"
        return
    for i, part in enumerate(system):
        problem = kinds.problem(part)
        if problem is not None:
            yield f"$.system_instructions[{i}] {problem}"


def _message_problems(message: Any, path: str) -> list[str]:
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        return [f"{path} is no message of a known role"]
    parts = message.get("parts")
    if not isinstance(parts, list) or not parts:
        return [f"{path} has no parts"]
    problems = [(i, kinds.problem(part)) for i, part in enumerate(parts)]
    return [f"{path}.parts[{i}] {problem}" for i, problem in problems if problem is not None]


class _Pairing:
    """Follows which calls wait for an answer, message by message."""

    def __init__(self) -> None:
        self.role: str | None = None
        self.ids: set[str] = set()
        self.calls: dict[str, tuple[int, str]] = {}
        """The calls of the last assistant message: their order and names."""
        self.answered: list[int] = []
        self.left: list[str] = []

    def of(self, message: dict[str, Any], path: str) -> list[str]:
        role = message["role"]
        found = []
        if role == self.role:
            found.append(f"{path} is of the same role as the message before it: they are one")
        if role == "system" and self.role is None:
            found.append(f"{path} leads: it belongs into system_instructions")
        if role != "tool":
            self.left = self.unanswered()
            self.calls, self.answered = {}, []
        self.role = role
        for i, part in enumerate(message["parts"]):
            said = self._problem(role, part)
            if said is not None:
                found.append(f"{path}.parts[{i}] {said}")
        return found

    def _problem(self, role: str, part: dict[str, Any]) -> str | None:
        kind = part["type"]
        if (kind == "tool_call_response") != (role == "tool"):
            return f"is {kind[:60]} in a message of role {role}"
        if kind == "tool_call_response":
            return self._answer_problem(part["id"])
        if kind != "tool_call":
            return "comes after a call: calls come last" if self.calls else None
        if role != "assistant":
            return f"is a call in a message of role {role}"
        if part["id"] in self.ids:
            return f"has the id {part['id']} of another call"
        self.ids.add(part["id"])
        self.calls[part["id"]] = len(self.calls), part["name"]
        return None

    def _answer_problem(self, call_id: str) -> str | None:
        if call_id not in self.calls:
            return f"answers {call_id}, which is no call of the message just before it"
        number = self.calls[call_id][0]
        if number in self.answered:
            return f"answers {call_id} again"
        is_late = any(other > number for other in self.answered)
        self.answered.append(number)
        return f"answers {call_id} out of the order of the calls" if is_late else None

    def unanswered(self) -> list[str]:
        """Return the calls that nothing answers."""
        waiting = [
            f"call {call_id} ({name[:60]}) has no answer"
            for call_id, (number, name) in self.calls.items()
            if number not in self.answered
        ]
        return [*self.left, *waiting]


def checked(system: Any, messages: Any) -> None:
    """Refuse a conversation that is not in the normal form; calls may wait for their answers."""
    for problem in problems_of(system, messages):
        if not problem.startswith("call "):
            raise InvalidArgumentError(
                f"{problem}; Conversation.of(messages) makes one of messages of any order"
            )
