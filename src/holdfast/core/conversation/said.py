"""Messages as people read them: in the order in which a framework keeps them, each as it is there.

A conversation in the normal form has the same parts, but neighbours of one role are one message
there and an answer stands behind its call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.kinds import mended
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.normal import ROLES
from holdfast.core.conversation.parts import Message, Part
from holdfast.core.conversation.plain import plain
from holdfast.core.conversation.reading import found_in


@dataclass(frozen=True)
class RequestedCall:
    """A tool call that a message asks for."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Said:
    """Who said what."""

    role: str
    parts: list[Part]

    @property
    def text(self) -> str:
        """What is said, in lines; media and the like by what they are."""
        return "\n".join(filter(None, map(_text, self.parts)))

    @property
    def calls(self) -> list[RequestedCall]:
        """The tools that are called."""
        return [
            RequestedCall(part["name"], parts.text_of_response(part["arguments"]))
            for part in self.parts
            if part["type"] == "tool_call"
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        calls = [{"name": call.name, "arguments": call.arguments} for call in self.calls]
        return {"role": self.role, "text": self.text, "calls": calls}


def messages_in(framework: str, state: Any, lost: Lost | None = None) -> list[Said]:
    """Return the messages that a state of a framework holds.

    >>> from holdfast.core.conversation.said import messages_in
    >>> [message.text for message in messages_in("custom", [{"role": "user", "content": "hi"}])]
    ['hi']
    """
    lost = Lost() if lost is None else lost
    form, native = found_in(framework, state)
    if native is None:
        return []
    given = form.read(plain(native.messages, lost, "$.messages"), lost)
    system = [{"role": "system", "parts": list(native.system)}] if native.system else []
    return [found for message in (*system, *given) if (found := _said(message, lost)) is not None]


def _said(message: Message, lost: Lost) -> Said | None:
    if message.get("role") not in ROLES:
        return None
    kept = [mended(plain(part, lost), lost, "$") for part in message["parts"]]
    name = message.get("name")
    role = name if isinstance(name, str) and name else message["role"]
    return Said(role, [part for part in kept if part is not None])


def _text(part: Part) -> str:
    kind = part["type"]
    if kind == "text":
        return str(part["content"])
    if kind == "reasoning":
        return f"({part['content']})" if part["content"] else "(…)"
    if kind == "tool_call":
        return ""  # shown as a call
    if kind == "tool_call_response":
        said = parts.text_of_response(part["response"])
        return "\n".join(filter(None, [said, *map(_text, part.get("parts", []))]))
    if kind in ("blob", "uri", "file"):
        where = f" {part['uri']}" if kind == "uri" else ""
        return f"[{part['modality']}{where}]"
    return f"[{kind.removeprefix('custom_')}]"
