"""A conversation that any framework can go on with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from holdfast.core.conversation.checking import checked, problems_of
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.normal import normal
from holdfast.core.conversation.parts import Message, Part
from holdfast.core.conversation.plain import plain
from holdfast.core.conversation.settling import RESTS, Rest, Settling
from holdfast.core.short_repr import brief
from holdfast.errors import AdapterError, InvalidArgumentError

FORMAT = "holdfast.conversation/1"
SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai/1.42.0"


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asked for."""

    id: str
    name: str
    arguments: Any
    """An object; text where the model wrote no JSON."""


@dataclass(frozen=True)
class Conversation:
    """Who said what, in OpenTelemetry's GenAI messages, and what could not be carried.

    >>> from holdfast.core.conversation import Conversation
    >>> hello = {"role": "user", "parts": [{"type": "text", "content": "hello"}]}
    >>> Conversation.of([hello]).problems()
    []
    """

    system_instructions: list[Part] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    interrupts: list[dict[str, Any]] = field(default_factory=list)
    """What waits for an answer of people, as AG-UI has it."""
    plan: list[dict[str, Any]] = field(default_factory=list)
    """Entries of content, status and priority, as ACP has it."""
    context: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, Any] = field(default_factory=dict)
    """The framework it comes from; version and provider where they are known."""
    lost: list[str] = field(default_factory=list)
    """What could not be carried: where it was, and why."""

    @classmethod
    def of(
        cls,
        messages: list[Any],
        system_instructions: list[Any] | None = None,
        *,
        interrupts: list[Any] | None = None,
        plan: list[Any] | None = None,
        context: Mapping[str, Any] | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the conversation that messages of any order and kind are, in the normal form."""
        lost = Lost()
        system, ordered = normal(messages, system_instructions or [], lost)
        return cls(
            system,
            ordered,
            _dicts(interrupts, lost, "$.interrupts"),
            _dicts(plan, lost, "$.plan"),
            plain(dict(context or {}), lost, "$.context"),
            plain(dict(origin or {}), lost, "$.origin"),
            lost.found,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, in the envelope ``holdfast.conversation/1``."""
        own = {name: getattr(self, name) for name in _FIELDS}
        return {"format": FORMAT, "schema_url": SCHEMA_URL, **own}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Return the conversation that ``as_dict`` gave; what is none is InvalidArgumentError."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            said = brief(data.get("format")) if isinstance(data, Mapping) else type(data).__name__
            raise InvalidArgumentError(f"a conversation is a dict of format {FORMAT!r}, not {said}")
        lost = Lost()
        try:
            fields = {
                name: plain(data[name], lost, f"$.{name}") for name in _FIELDS if name in data
            }
        except AdapterError as error:
            raise InvalidArgumentError(str(error)) from None
        for name, value in fields.items():
            if type(value) is not _FIELDS[name]:
                kind = _FIELDS[name].__name__
                raise InvalidArgumentError(f"$.{name} is a {kind}, not {type(value).__name__}")
        if not all(isinstance(each, str) for each in fields.get("lost", [])):
            raise InvalidArgumentError("$.lost is a list of texts")
        found = cls(**fields)
        if lost.found:
            raise InvalidArgumentError(f"{lost.found[0]}: a conversation is plain JSON")
        checked(found.system_instructions, found.messages)
        return found

    def problems(self) -> list[str]:
        """Return what keeps other frameworks from going on with it: calls without an answer…"""
        return problems_of(self.system_instructions, self.messages)

    @property
    def pending(self) -> list[ToolCall]:
        """The calls at the end that nothing answers yet."""
        _, last = normal(self.messages[-2:])
        if not last or last[-1]["role"] not in ("assistant", "tool"):
            return []
        answers = last[-1]["parts"] if last[-1]["role"] == "tool" else []
        answered = {part["id"] for part in answers}
        calls = (last[-2] if answers else last[-1])["parts"]
        return [
            ToolCall(part["id"], part["name"], part["arguments"])
            for part in calls
            if part["type"] == "tool_call" and part["id"] not in answered
        ]

    def settle(
        self,
        outputs: Mapping[str, Any] | None = None,
        rest: Rest = "keep",
        *,
        irreversible: Collection[str] = (),
    ) -> Self:
        """Return the conversation with its calls answered, as far as ``outputs`` (by call id) tell.

        The rest is kept for a framework that runs it, dropped (where nothing of the same message
        has an answer), or answered as interrupted. Of ``irreversible`` calls (ids or names)
        none is kept or dropped: they are answered as unknown.
        """
        if rest not in RESTS:
            raise InvalidArgumentError(f"rest is one of {', '.join(RESTS)}, not {rest!r}")
        if isinstance(irreversible, str):
            raise InvalidArgumentError("irreversible is a collection of ids or names, not one text")
        lost = Lost()
        system, messages = normal(self.messages, self.system_instructions, lost)
        given = {key: plain(value, lost, "$.outputs") for key, value in (outputs or {}).items()}
        settled = Settling(given, rest, irreversible).of(messages, lost)
        _, messages = normal(settled, [], lost)  # who stood beside a message that is gone
        found = replace(
            self,
            system_instructions=system,
            messages=messages,
            lost=list(dict.fromkeys([*self.lost, *lost.found])),
        )
        waiting = {call.id for call in found.pending}
        still = [each for each in self.interrupts if each.get("tool_call_id") in (None, *waiting)]
        return replace(found, interrupts=still)

    def with_tool_names(self, names: Mapping[str, str]) -> Self:
        """Return the conversation with tools called as the next agent calls them."""
        for old, new in names.items():
            if not isinstance(old, str) or not isinstance(new, str) or not new:
                raise InvalidArgumentError(
                    f"tool names are a dict of texts, old to new, not {brief(old)}: {brief(new)}"
                )
        messages = [
            {**message, "parts": [_renamed(part, names) for part in message["parts"]]}
            for message in self.messages
        ]
        return replace(self, messages=messages)


_FIELDS: dict[str, type] = {
    "system_instructions": list,
    "messages": list,
    "interrupts": list,
    "plan": list,
    "context": dict,
    "origin": dict,
    "lost": list,
}


def _renamed(part: Part, names: Mapping[str, str]) -> Part:
    if part["type"] not in ("tool_call", "tool_call_response") or part.get("name") not in names:
        return part
    return {**part, "name": names[part["name"]]}


def _dicts(given: list[Any] | None, lost: Lost, path: str) -> list[dict[str, Any]]:
    found = []
    for i, each in enumerate(given or []):
        if isinstance(each, Mapping):
            found.append(plain(each, lost, f"{path}[{i}]"))
        else:
            lost.add(f"{path}[{i}]", f"is {type(each).__name__}, where an object is")
    return found
