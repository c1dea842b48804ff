"""Export: the Agent Trajectory Interchange Format, version 1.7, which evaluations read.

A step is what the user, the system or the agent said; the answers to the agent's calls are the
observation of the same step. Text and images only: all else is told by what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.checking import checked
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.parts import Message, Part
from holdfast.errors import InvalidArgumentError

VERSION = "ATIF-v1.7"
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_SOURCES = {"user": "user", "assistant": "agent", "system": "system"}
_AGENT = ("name", "version", "model_name", "tool_definitions", "extra")


def trajectory(
    conversation: Conversation, agent: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the trajectory of a conversation."""
    checked(conversation.system_instructions, conversation.messages)
    steps: list[dict[str, Any]] = []
    if conversation.system_instructions:
        content = _content(conversation.system_instructions)
        steps.append({"step_id": 1, "source": "system", "message": content})
    for message in conversation.messages:
        if message["role"] == "tool":
            results = [_result(part) for part in message["parts"]]
            steps[-1]["observation"] = {"results": results}
        else:
            steps.append({"step_id": len(steps) + 1, **_step(message)})
    if not steps:
        raise InvalidArgumentError("a trajectory has a step: this conversation holds no message")
    extra = {"extra": {"lost": conversation.lost}} if conversation.lost else {}
    who = _agent(conversation, agent)
    return {"schema_version": VERSION, "agent": who, "steps": steps, **extra}


def _agent(conversation: Conversation, given: Mapping[str, Any] | None) -> dict[str, Any]:
    for name in given or {}:
        if name not in _AGENT:
            raise InvalidArgumentError(f"an agent has {', '.join(_AGENT)}, and no {name!r}")
    origin = conversation.origin
    own = {
        "name": str(origin.get("framework") or "agent"),
        "version": str(origin.get("version") or "unknown"),
    }
    return {**own, **(given or {})}


def _step(message: Message) -> dict[str, Any]:
    inner = message["parts"]
    said = [part for part in inner if part["type"] not in ("tool_call", "reasoning")]
    step = {"source": _SOURCES[message["role"]], "message": _content(said)}
    thought = "\n\n".join(p["content"] for p in inner if p["type"] == "reasoning" and p["content"])
    if thought and message["role"] == "assistant":
        step["reasoning_content"] = thought
    calls = [_call(part) for part in inner if part["type"] == "tool_call"]
    return {**step, "tool_calls": calls} if calls else step


def _call(part: Part) -> dict[str, Any]:
    given = part["arguments"]
    return {
        "tool_call_id": part["id"],
        "function_name": part["name"],
        "arguments": given if isinstance(given, dict) else {"arguments": given},
    }


def _result(part: Part) -> dict[str, Any]:
    text = parts.text_of_response(part["response"])
    media = part.get("parts", [])
    content = _content([parts.text(text), *media]) if media else text
    extra = {"extra": {"is_error": True}} if part.get("is_error") else {}
    return {"source_call_id": part["id"], "content": content, **extra}


def _content(inner: list[Part]) -> Any:
    """Return a text, or text and images where there are images."""
    found = [_content_part(part) for part in inner]
    if any(part["type"] == "image" for part in found):
        return found
    return "\n\n".join(part["text"] for part in found)


def _content_part(part: Part) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["content"]}
    mime_type = part.get("mime_type")
    if part["type"] in ("blob", "uri") and mime_type in _IMAGES:
        path = parts.data_url(part) if part["type"] == "blob" else part["uri"]
        return {"type": "image", "source": {"media_type": mime_type, "path": path}}
    return {"type": "text", "text": f"[{part.get('modality', part['type'])}]"}
