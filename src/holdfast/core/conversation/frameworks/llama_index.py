"""LlamaIndex: chat messages in the state of a workflow's context, where agents keep them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation import blocks, parts
from holdfast.core.conversation.blocks import word
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

_ROLES = {"user": "user", "system": "system", "developer": "system", "tool": "tool"}
_ROLES |= {"assistant": "assistant", "chatbot": "assistant", "model": "assistant"}
_ROLES |= {"function": "tool"}
_HISTORY = "chat_history"
_PLACES = ("memory", _HISTORY, "messages", "history")
"""Keys of the state under which agents keep what was said, the framework's own first."""
_TURN = "scratchpad"
"""What was said in a turn that has not ended, which is in no memory yet."""
_MEDIA = {
    "image": ("image", "image", "image_mimetype"),
    "audio": ("audio", "audio", "format"),
    "video": ("video", "video", "video_mimetype"),
    "document": ("document", "data", "document_mimetype"),
}
"""By the kind of block: what it is, where its bytes are, and where its type is."""
_REASONING = ("signature", "encrypted", "redacted", "id", "provider")


def _extract(state: Any) -> Native | None:
    context = state.get("context") if isinstance(state, Mapping) else None
    values = _values(context) if isinstance(context, Mapping) else None
    if values is None or not isinstance(context, Mapping):
        return None
    found = [_messages(values.get(name)) for name in _PLACES]
    said = next((messages for messages in found if messages is not None), None)
    turn = _messages(values.get(_TURN))
    if said is None and turn is None:
        return None
    return Native([*(said or ()), *(turn or ())], interrupts=_waiting(context))


def _values(context: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the state of a workflow by its keys: a dict's, or the fields of a model."""
    state = context.get("state")
    data = state.get("state_data") if isinstance(state, Mapping) else None
    if not isinstance(data, Mapping):
        return None
    values = data.get("_data", data.get("value"))
    return values if isinstance(values, Mapping) else None


def _messages(value: Any) -> list[Any] | None:
    """Return the chat messages that a value of the state is, or keeps; None if it is none."""
    value = _unwrapped(value)
    if isinstance(value, Mapping):
        return _remembered(value)
    if not isinstance(value, (list, tuple)):
        return None
    found = [_unwrapped(each) for each in value]
    return found if all(_is_message(each) for each in found) else None


def _unwrapped(value: Any) -> Any:
    """Return the fields of an object that a serializer wrote down with its class."""
    if isinstance(value, Mapping) and "qualified_name" in value and "value" in value:
        return value["value"]
    return value


def _is_message(value: Any) -> bool:
    is_said = isinstance(value, Mapping) and ("blocks" in value or "content" in value)
    return is_said and isinstance(value.get("role"), str)


def _remembered(memory: Mapping[str, Any]) -> list[Any] | None:
    """Return what a memory of LlamaIndex keeps: in a chat store, or in rows of a table."""
    for name in ("chat_store", "sql_store"):
        store = memory.get(name)
        if isinstance(store, str):
            try:
                store = json.loads(store)
            except (ValueError, RecursionError):
                continue
        if not isinstance(store, Mapping):
            continue
        kept, rows = store.get("store"), store.get("db_data")
        if isinstance(kept, Mapping):
            return _messages(kept.get(word(memory, "chat_store_key") or _HISTORY, []))
        if isinstance(rows, (list, tuple)):
            active = [row for row in rows if isinstance(row, Mapping)]
            return _messages([row.get("data") for row in active if row.get("status") == "active"])
    return None


def _waiting(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the workflow waits for from outside, as by ``wait_for_event``."""
    workers = context.get("workers")
    steps = workers.values() if isinstance(workers, Mapping) else ()
    return [
        {"id": waiter.get("waiter_id"), "reason": "input_required", "tool_call_id": None}
        for step in steps
        if isinstance(step, Mapping) and isinstance(step.get("collected_waiters"), (list, tuple))
        for waiter in step["collected_waiters"]
        if isinstance(waiter, Mapping) and waiter.get("resolved_event") is None
    ]


# Reading


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found = []
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        role = _ROLES.get(str(message.get("role"))) if isinstance(message, Mapping) else None
        if role is None:
            lost.add(path, "is no chat message")
            continue
        extra = message.get("additional_kwargs")
        extra = extra if isinstance(extra, Mapping) else {}
        content = message.get("blocks", message.get("content"))
        inner = _parts(content, lost, path)
        if role == "tool":
            call_id, name = word(extra, "tool_call_id"), word(extra, "name")
            inner = [blocks.response_of(call_id, inner, name=name)]
        elif role == "assistant":
            inner += _called(extra.get("tool_calls"), inner, lost, path)
        found.append({"role": role, "parts": inner})
    return found


def _parts(content: Any, lost: Lost, path: str) -> list[Part]:
    if isinstance(content, str):
        return [parts.text(content)]
    if not isinstance(content, (list, tuple)):
        return []
    found = [_part(block, lost, f"{path}.blocks[{j}]") for j, block in enumerate(content)]
    return [part for part in found if part is not None]


def _part(block: Any, lost: Lost, path: str) -> Part | None:
    kind = block.get("block_type") if isinstance(block, Mapping) else None
    if kind == "text" and isinstance(block.get("text"), str):
        return parts.text(block["text"])
    if kind == "thinking":
        extra = block.get("additional_information")
        own = extra if isinstance(extra, Mapping) else {}
        thought = word(block, "content") or ""
        return parts.reasoning(thought, **{name: own.get(name) for name in _REASONING})
    if kind == "tool_call" and word(block, "tool_name"):
        arguments = block.get("tool_kwargs")
        return parts.tool_call(word(block, "tool_call_id"), block["tool_name"], arguments)
    found = _media(block, kind) if kind in _MEDIA else None
    if found is None:
        lost.add(path, f"a block {str(kind)[:40]!r} that has no place elsewhere")
    return found


def _media(block: Mapping[str, Any], kind: str) -> Part | None:
    modality, bytes_in, type_in = _MEDIA[kind]
    mime_type = word(block, type_in)
    if kind == "audio" and mime_type is not None:
        mime_type = f"audio/{mime_type}"
    data, address = word(block, bytes_in), word(block, "url")
    if data is not None:
        return parts.blob(data, mime_type, modality)
    return None if address is None else parts.uri(address, mime_type, modality)


def _called(given: Any, said: list[Part], lost: Lost, path: str) -> list[Part]:
    """Return calls as older agents keep them: beside the blocks, as the provider gave them."""
    known = {part.get("id") for part in said if part["type"] == "tool_call"}
    found = []
    for j, each in enumerate(given if isinstance(given, (list, tuple)) else ()):
        own = _unwrapped(each)
        call = blocks.call_of(own) if isinstance(own, Mapping) else None
        if call is None:
            lost.add(f"{path}.additional_kwargs.tool_calls[{j}]", "is a call without a name")
        elif call.get("id") is None or call.get("id") not in known:
            found.append(call)
    return found


# Writing


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    found = []
    if conversation.system_instructions:
        lost.add("$.system_instructions", "the agent has its own: give them to it")
    for i, message in enumerate(conversation.messages):
        path = f"$.messages[{i}]"
        if message["role"] == "tool":
            found += [
                _result(part, lost, f"{path}.parts[{j}]") for j, part in enumerate(message["parts"])
            ]
            continue
        content = _blocks(message["parts"], lost, path)
        if content:
            found.append(_message(message["role"], content, {}))
    return found


def _message(role: str, content: list[Any], extra: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "additional_kwargs": extra, "blocks": content}


def _result(part: Part, lost: Lost, path: str) -> dict[str, Any]:
    if part.get("is_error"):
        lost.add(f"{path}.is_error", "that the answer is an error")
    if not isinstance(part["response"], str):
        lost.add(f"{path}.response", "is JSON text there")
    said = parts.text_of_response(part["response"])
    texts = [{"block_type": "text", "text": said}] if said else []
    content = [*texts, *_blocks(part.get("parts", []), lost, path)]
    return _message("tool", content, {"tool_call_id": part["id"], "name": part["name"]})


def _blocks(given: Sequence[Part], lost: Lost, path: str) -> list[dict[str, Any]]:
    found = [_block(part, lost, f"{path}.parts[{j}]") for j, part in enumerate(given)]
    return [block for block in found if block is not None]


def _block(part: Part, lost: Lost, path: str) -> dict[str, Any] | None:
    kind = part["type"]
    if kind == "text":
        return {"block_type": "text", "text": part["content"]}
    if kind == "reasoning":
        extra = {name: part[name] for name in _REASONING if name in part}
        thought = {"block_type": "thinking", "content": part["content"], "num_tokens": None}
        return {**thought, "additional_information": extra}
    if kind == "tool_call":
        return {
            "block_type": "tool_call",
            "tool_call_id": part["id"],
            "tool_name": part["name"],
            "tool_kwargs": part["arguments"],
        }
    if kind in ("blob", "uri"):
        return _media_block(part, lost, path)
    lost.add(path, f"a part {kind[:60]}")
    return None


def _media_block(part: Part, lost: Lost, path: str) -> dict[str, Any]:
    name, bytes_in, type_in = _MEDIA[part["modality"]]
    mime_type = part.get("mime_type")
    if name == "audio" and mime_type is not None:
        kind, _, mime_type = mime_type.partition("/")
        if kind != "audio":
            lost.add(f"{path}.mime_type", f"{part['mime_type'][:60]!r} of a sound")
    place = bytes_in if part["type"] == "blob" else "url"
    address = part["content"] if part["type"] == "blob" else part["uri"]
    return {"block_type": name, place: address, type_in: mime_type}


def _state(messages: list[Any], conversation: Conversation) -> Any:
    """Return a context that has not run yet, whose state has the messages."""
    state = {
        "store_type": "in_memory",
        "state_type": "DictState",
        "state_module": "workflows.context.state_store",
        "state_data": {"_tree": "dict", "_data": {_HISTORY: messages}},
    }
    return {"context": {"version": 2, "state": state, "is_running": False, "workers": {}}}


FORM = Form("llama_index", _extract, _read, _write, _state)
