"""AgentScope: one message for a whole reply, with its calls and what they gave in turn."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.blocks import response_of, word
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

FOREIGN = "assistant"
"""The name of who spoke in another framework: the agent that goes on there takes it over."""
_HELD = "holdfast"
"""In the metadata of a result: what it was, where AgentScope's form of it says less."""
_ANY = "/*"
_ADDRESS = re.compile(r"(?!https?:(?!//[^/?#]))[a-z][a-z0-9+.-]*:\S+", re.IGNORECASE)
_REASONING = {"signature": "signature", "encrypted": "encrypted", "provider": "provider"}
_REASONING |= {"id": "reasoning_id", "redacted": "redacted"}


def _extract(state: Any) -> Native | None:
    agent = state.get("agent") if isinstance(state, Mapping) else None
    context = agent.get("context") if isinstance(agent, Mapping) else None
    if not isinstance(agent, Mapping) or not isinstance(context, (list, tuple)):
        return None
    summary = agent.get("summary")
    first = [{"role": "user", "name": "user", "content": summary}] if summary else []
    return Native([*first, *context], interrupts=_interrupts(context), plan=_plan(agent))


def _interrupts(context: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the calls that wait for a person's permission, or for who executes them elsewhere."""
    reasons = {"asking": "tool_approval", "submitted": "external_execution"}
    return [
        {"id": block.get("id"), "reason": reasons[block["state"]], "tool_call_id": block.get("id")}
        for message in context[-1:]
        for block in _blocks(message)
        if block.get("type") == "tool_call" and block.get("state") in reasons
    ]


def _plan(agent: Mapping[str, Any]) -> list[dict[str, Any]]:
    tasks = agent.get("tasks_context")
    given = tasks.get("tasks") if isinstance(tasks, Mapping) else None
    return [
        {"content": task.get("subject"), "status": task.get("state"), "priority": None}
        for task in (given if isinstance(given, list) else ())
        if isinstance(task, Mapping)
    ]


def _blocks(message: Any) -> list[Mapping[str, Any]]:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [each for each in content or () if isinstance(each, Mapping)]


# Reading


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found: list[Message] = []
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("user", "assistant", "system"):
            lost.add(path, "is no message of AgentScope's")
            continue
        for j, block in enumerate(_blocks(message)):
            part = _part(block, lost, f"{path}.content[{j}]")
            if part is None:
                continue
            own = "tool" if part["type"] == "tool_call_response" else role
            if found and found[-1]["role"] == own and j:
                found[-1]["parts"].append(part)
            else:
                found.append({"role": own, "parts": [part]})
    return found


def _part(block: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return parts.text(block["text"])
    if kind == "thinking":
        return _thought(block)
    if kind == "data":
        return _media(block.get("source"), lost, path)
    if kind == "tool_call" and word(block, "name"):
        return parts.tool_call(word(block, "id"), block["name"], block.get("input"))
    if kind == "tool_result":
        return response_part(block, lost, path)
    own = "a hint of AgentScope's own" if kind == "hint" else f"a block {str(kind)[:40]!r}"
    lost.add(path, own)
    return None


def _thought(block: Mapping[str, Any]) -> Part:
    extra = {name: block.get(own) for name, own in _REASONING.items()}
    hidden = word(block, "redacted_thinking_data")
    if hidden is not None:
        extra |= {"encrypted": hidden, "redacted": True, "provider": "anthropic"}
    elif extra["signature"] is not None and "provider" not in block:
        extra["provider"] = "anthropic"  # nobody else's are kept so
    return parts.reasoning(word(block, "thinking") or "", **extra)


def _media(source: Any, lost: Lost, path: str) -> Part | None:
    given = source if isinstance(source, Mapping) else {}
    kind = word(given, "media_type")
    any_of, mime_type = None, kind
    if kind is not None and kind.endswith(_ANY):
        any_of, mime_type = kind.removesuffix(_ANY), None
    data, address = word(given, "data"), word(given, "url")
    if data is not None:
        return parts.blob(data, mime_type, any_of)
    if address is not None:
        return parts.uri(address, mime_type, any_of)
    lost.add(path, "is data without a source")
    return None


def response_part(
    block: Mapping[str, Any], lost: Lost | None = None, path: str = "$"
) -> dict[str, Any]:
    """Return what a tool gave, from its result (``output``, ``state``, ``metadata``)."""
    lost = Lost() if lost is None else lost
    inner = _blocks({"content": block.get("output")})
    given = [_part(each, lost, f"{path}.output[{j}]") for j, each in enumerate(inner)]
    is_error = block.get("state") in ("error", "denied", "interrupted")
    said = [part for part in given if part is not None]
    part = response_of(word(block, "id"), said, name=word(block, "name"), is_error=is_error)
    metadata = block.get("metadata")
    held: Any = metadata.get(_HELD) if isinstance(metadata, Mapping) else None
    is_held = isinstance(held, Mapping) and "response" in held
    return {**part, "response": held["response"]} if is_held else part


# Writing


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    if conversation.system_instructions:
        lost.add("$.system_instructions", "the agent has its own: give them to it")
    answered = {
        part["id"]
        for message in conversation.messages
        if message["role"] == "tool"
        for part in message["parts"]
    }
    found: list[dict[str, Any]] = []
    for i, message in enumerate(conversation.messages):
        role = "assistant" if message["role"] == "tool" else message["role"]
        content = [
            block
            for j, part in enumerate(message["parts"])
            if (block := _block(part, role, answered, lost, f"$.messages[{i}].parts[{j}]"))
        ]
        if not content:
            continue
        if role == "system" and not found:
            lost.add(f"$.messages[{i}]", "leads there, so that it is a system prompt")
        if role == "assistant" and found and found[-1]["role"] == role:
            found[-1]["content"] += content
        else:
            name = FOREIGN if role == "assistant" else role
            found.append({"name": name, "role": role, "content": content, "metadata": {}})
    return [{**message, "id": _made_id(message, n)} for n, message in enumerate(found)]


def _made_id(message: dict[str, Any], number: int) -> str:
    whole = json.dumps([number, message], sort_keys=True)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _block(
    part: Part, role: str, answered: set[str], lost: Lost, path: str
) -> dict[str, Any] | None:
    kind = part["type"]
    if kind == "text":
        return {"type": "text", "text": part["content"]}
    if kind in ("blob", "uri") and role != "system":
        return _data(part, lost, path)
    if kind == "reasoning" and role == "assistant":
        return _thinking(part)
    if kind == "tool_call":
        arguments = part["arguments"]
        return {
            "type": "tool_call",
            "id": part["id"],
            "name": part["name"],
            "input": arguments if isinstance(arguments, str) else parts.json_text(arguments),
            "state": "finished" if part["id"] in answered else "pending",
        }
    if kind == "tool_call_response":
        return _result(part, lost, path)
    lost.add(path, f"a part {kind[:60]} in a message of role {role}")
    return None


def _thinking(part: Part) -> dict[str, Any]:
    block = {"type": "thinking", "thinking": part["content"]}
    named: list[str]
    extra: dict[str, Any]
    if part.get("redacted") and part.get("encrypted") and part.get("provider") == "anthropic":
        extra = {"redacted_thinking_data": part["encrypted"]}
        named = [name for name in ("signature", "id") if name in part]
    else:
        extra, named = {}, [name for name in _REASONING if name in part]
    own = {_REASONING[name]: part[name] for name in named}
    if "signature" in own and not extra:
        own.setdefault("provider", None)
    return {**block, **extra, **own}


def _data(part: Part, lost: Lost, path: str) -> dict[str, Any] | None:
    kind = part.get("mime_type") or f"{part['modality']}{_ANY}"
    if parts.modality_of(kind) != part["modality"]:
        lost.add(f"{path}.modality", f"{part['modality']}, where {kind[:60]!r} says another")
    if part["type"] == "blob":
        source = {"type": "base64", "data": part["content"], "media_type": kind}
        return {"type": "data", "source": source}
    if not _is_address(part["uri"]):
        lost.add(path, "an address that is no URL")
        return None
    return {"type": "data", "source": {"type": "url", "url": part["uri"], "media_type": kind}}


def _is_address(address: str) -> bool:
    return address.isprintable() and _ADDRESS.fullmatch(address) is not None


def _result(part: Part, lost: Lost, path: str) -> dict[str, Any]:
    response = part["response"]
    said = parts.text_of_response(response)
    media = [
        block
        for j, each in enumerate(part.get("parts", ()))
        if (block := _in_result(each, lost, f"{path}.parts[{j}]"))
    ]
    texts = [{"type": "text", "text": said}] if said else []
    return {
        "type": "tool_result",
        "id": part["id"],
        "name": part["name"],
        "output": [*texts, *media] if media else said,
        "state": "error" if part.get("is_error") else "success",
        "metadata": {} if isinstance(response, str) else {_HELD: {"response": response}},
    }


def _in_result(part: Part, lost: Lost, path: str) -> dict[str, Any] | None:
    if part["type"] in ("blob", "uri"):
        return _data(part, lost, path)
    lost.add(path, f"a part {part['type'][:60]} in the answer to a call")
    return None


def _state(messages: list[Any], conversation: Conversation) -> Any:
    """Return a state in which a reply that was cut short elsewhere goes on under its own id."""
    stage = _stage(messages, conversation)
    agent: dict[str, Any] = {"context": messages}
    reply_id = messages[-1].get("id") if messages else None
    if stage == "begun":
        reply_id = _made_id({"replies to": reply_id}, len(messages))
    if stage != "ended" and isinstance(reply_id, str):
        agent |= {"reply_context": {"reply_id": reply_id}}
    return {"agent": agent, "reply": {"stage": stage}}


def _stage(messages: list[Any], conversation: Conversation) -> str:
    """Return how far the last reply had come, in the words of the adapter's turns."""
    role = messages[-1]["role"] if messages else None
    last = conversation.messages[-1]["role"] if conversation.messages else None
    if role == "assistant" and conversation.pending:
        return "answered"
    if role == "assistant" and last == "tool":
        return "asking"
    return "begun" if role == last == "user" else "ended"


FORM = Form("agentscope", _extract, _read, _write, _state, runs_pending=True)
