"""The normal form: messages of any origin, brought into the one order that every writer relies on.

1. System prompts that lead are apart; later ones stay messages of role ``system``.
2. A ``tool`` message answers the assistant message just before it, one response a call, in order.
3. A call has an id: unique, of letters, digits, ``_`` and ``-``, 64 at most.
4. Arguments are an object; text only where they are no JSON.
5. An answer has the ``name`` of its call, and may carry ``parts`` and ``is_error``.
6. Inline media are blobs in standard base64.
7. Reasoning may carry ``signature``, ``encrypted``, ``redacted``, ``id`` and ``provider``.
8. Foreign items are parts of a type of their own.

And two that follow from what frameworks have in common: neighbours of one role are one message,
and in an assistant message calls come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from holdfast.core.conversation.kinds import CALL_ID, mended
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part
from holdfast.core.conversation.plain import plain

ROLES = ("system", "user", "assistant", "tool")


def normal(
    messages: Iterable[Any], system: Sequence[Any] = (), lost: Lost | None = None
) -> tuple[list[Part], list[Message]]:
    """Return system instructions and messages in the normal form; what has no place in it is lost.

    >>> from holdfast.core.conversation import normal
    >>> from holdfast.core.conversation.parts import text
    >>> system, messages = normal([{"role": "system", "parts": [text("a")]}])
    >>> system, messages
    ([{'type': 'text', 'content': 'a'}], [])
    """
    lost = Lost() if lost is None else lost
    ordered = _Ordered(lost)
    for i, part in enumerate(system):
        ordered.add("system", part, f"$.system_instructions[{i}]")
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        role = message.get("role") if isinstance(message, dict) else None
        inner = message.get("parts") if isinstance(message, dict) else None
        if role not in ROLES or not isinstance(inner, list):
            lost.add(path, f"is no message: it has a role of {', '.join(ROLES)}, and parts")
            continue
        for j, part in enumerate(inner):
            ordered.add(role, part, f"{path}.parts[{j}]")
    return ordered.finished()


@dataclass(eq=False)
class _Group:
    """What one role said before another did."""

    role: str
    parts: list[Part] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    is_over: bool = False


@dataclass(eq=False)
class _Call:
    part: Part
    group: _Group
    answer: Part | None = None


class _Ordered:
    """Takes parts in the order in which they came."""

    def __init__(self, lost: Lost) -> None:
        self.lost = lost
        self.groups: list[_Group] = []
        self.ids: set[str] = set()
        self.unanswered: dict[str | None, list[_Call]] = {}

    def add(self, role: str, given: Any, path: str) -> None:
        part = mended(plain(given, self.lost, path), self.lost, path)
        if part is None:
            return
        if part["type"] == "tool_call_response":
            self._answer(part, path)
        elif part["type"] == "tool_call":
            self._call(part)
        elif role == "tool":
            self.lost.add(path, "is something else than an answer in a message of role tool")
        else:
            self._group(role).parts.append(part)

    def _group(self, role: str) -> _Group:
        if not self.groups or self.groups[-1].role != role or self.groups[-1].is_over:
            self.groups.append(_Group(role))
        return self.groups[-1]

    def _call(self, part: Part) -> None:
        own_id = part.get("id")
        call_id = self._unique(own_id)
        group = self._group("assistant")
        call = _Call({"type": "tool_call", "id": call_id, **_rest(part)}, group)
        group.calls.append(call)
        self.unanswered.setdefault(own_id or None, []).append(call)

    def _unique(self, own_id: str | None) -> str:
        wanted = f"call_{len(self.ids) + 1}" if not own_id else safe_id(own_id)
        found, number = wanted, 1
        while found in self.ids:
            number += 1
            found = f"{wanted[:56]}_{number}"
        self.ids.add(found)
        return found

    def _answer(self, part: Part, path: str) -> None:
        call = self._called(part.get("id"), part.get("name"))
        if call is None:
            self.lost.add(path, "is an answer to a call that is not there, or has one already")
            return
        own = {"id": call.part["id"], "response": part["response"], "name": call.part["name"]}
        call.answer = {**part, **own}
        call.group.is_over = True

    def _called(self, own_id: str | None, name: str | None) -> _Call | None:
        """Return the call that an answer belongs to: the first of the newest that fit."""
        waiting = self.unanswered.get(own_id or None, [])
        fitting = [call for call in waiting if own_id or name in (None, call.part["name"])]
        if not fitting:
            return None
        found = next(call for call in fitting if call.group is fitting[-1].group)
        waiting.remove(found)
        return found

    def finished(self) -> tuple[list[Part], list[Message]]:
        system: list[Part] = []
        messages: list[Message] = []
        for group in self.groups:
            said = [*group.parts, *(call.part for call in group.calls)]
            answers = [call.answer for call in group.calls if call.answer is not None]
            if group.role == "system" and not messages:
                system += said
            elif messages and messages[-1]["role"] == group.role:
                messages[-1]["parts"] += said
            else:
                messages.append({"role": group.role, "parts": said})
            if answers:
                messages.append({"role": "tool", "parts": answers})
        return system, messages


def _rest(part: Part) -> Part:
    return {name: value for name, value in part.items() if name not in ("type", "id")}


def safe_id(own_id: str) -> str:
    """Return an id that every provider takes: its own where that is one, else one made of it.

    >>> from holdfast.core.conversation.normal import safe_id
    >>> safe_id("call_1"), safe_id("fc|1")
    ('call_1', 'fc_1_7f56b2eb')
    """
    if CALL_ID.fullmatch(own_id):
        return own_id
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in own_id[:40])
    return f"{kept}_{sha256(own_id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
