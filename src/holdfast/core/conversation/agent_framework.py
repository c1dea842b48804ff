"""Messages of Microsoft Agent Framework: ``Message.to_dict``, one list of contents each.

What the framework has no field for is kept in ``additional_properties["holdfast"]``, which it
keeps and does not send.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

NAME = "agent_framework"
OURS = "holdfast"
"""The name under which the framework's own additional properties hold what is ours."""
_FOREIGN = f"{NAME}_"
_ROLES = {"system": "system", "developer": "system", "user": "user", "tool": "tool"}
_CONTROLS = ("function_approval_request", "function_approval_response")


def extract(state: Any) -> Native | None:
    """Find the messages that the history provider keeps, or those of a stored AgentSession."""
    if not isinstance(state, Mapping):
        return None
    messages = state.get("messages")
    if not isinstance(messages, list):
        messages = _of_session(state.get("session"))
    if messages is None:
        return None
    system = state.get("system")
    return Native(
        messages=messages,
        system=system if isinstance(system, list) else [],
        interrupts=_interrupts(messages),
    )


def _of_session(session: Any) -> list[Any] | None:
    """Return the messages that the framework's own in-memory history holds in a session."""
    kept = session.get("state") if isinstance(session, Mapping) else None
    if not isinstance(kept, Mapping):
        return None
    found = [
        each["messages"]
        for each in kept.values()
        if isinstance(each, Mapping) and isinstance(each.get("messages"), list)
    ]
    return found[0] if found else []


def _contents(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        given = message.get("contents") if isinstance(message, Mapping) else None
        for content in given if isinstance(given, list) else []:
            if isinstance(content, Mapping):
                yield content


def _interrupts(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the questions of approval that have no answer yet."""
    asked: dict[str, dict[str, Any]] = {}
    for content in _contents(messages):
        kind, own_id = content.get("type"), content.get("id")
        if kind == "function_approval_request" and isinstance(own_id, str):
            asked[own_id] = {
                "id": own_id,
                "reason": "tool_approval",
                "tool_call_id": _call_of(content).get("call_id"),
                "message": None,
                "response_schema": None,
                "expires_at": None,
            }
        elif kind == "function_approval_response":
            asked.pop(str(own_id), None)
        elif kind == "function_result":
            call_id = content.get("call_id")
            asked = {key: each for key, each in asked.items() if each["tool_call_id"] != call_id}
    return list(asked.values())


def _call_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    call = content.get("function_call")
    return call if isinstance(call, Mapping) else {}


# Reading


def read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    """Give messages of parts."""
    calls = {each.get("call_id") for each in _contents(messages) if _is_call(each)}
    found: list[Message] = []
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        contents = message.get("contents") if isinstance(message, Mapping) else None
        if not isinstance(contents, list):
            lost.add(path, "is no message of Agent Framework")
            continue
        role = str(message.get("role"))
        made = [
            _read(each, calls, lost, f"{path}.contents[{j}]") for j, each in enumerate(contents)
        ]
        said = [part for part in made if part is not None]
        for place, part in _stash(message).get("foreign", []):
            said.insert(place, part)
        found.append({"role": _ROLES.get(role, "assistant"), "parts": said})
    return found


def _is_call(content: Mapping[str, Any]) -> bool:
    is_hosted = content.get("hosted") or content.get("informational_only")
    return content.get("type") == "function_call" and not is_hosted


def _stash(native: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = native.get("additional_properties")
    ours = properties.get(OURS) if isinstance(properties, Mapping) else None
    return ours if isinstance(ours, Mapping) else {}


def _read(content: Any, calls: set[Any], lost: Lost, path: str) -> Part | None:
    if not isinstance(content, Mapping):
        lost.add(path, "is no content")
        return None
    kind = str(content.get("type"))
    if kind == "usage":
        return None  # it stays in the native state
    if kind in _CONTROLS:
        return _read_control(content, calls, lost, path)
    if content.get("annotations"):
        lost.add(f"{path}.annotations", "sources that a text quotes")
    return _read_content(content, lost, path)


def _read_control(
    content: Mapping[str, Any], calls: set[Any], lost: Lost, path: str
) -> Part | None:
    """Read a question of approval: the call is a part, the question an interrupt."""
    call = _call_of(content)
    if content.get("type") == "function_approval_response":
        lost.add(path, "an answer to a question of approval; what came of it is told by the call")
        return None
    if call.get("call_id") in calls or not call:
        return None
    calls.add(call.get("call_id"))
    return _read_content(call, lost, path)


def _read_content(content: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    part = _part(content, lost, path)
    if part is None:
        return None
    kept = _stash(content)
    if kept.get("json") and isinstance(part.get("response"), str):
        part["response"] = json.loads(part["response"])
    part.update(kept.get("fields", {}))
    for name in kept.get("without", []):
        part.pop(name, None)
    return part


def _part(content: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    kind = str(content.get("type"))
    if kind == "text":
        return parts.text(content.get("text") or "")
    if kind == "text_reasoning":
        return parts.reasoning(
            content.get("text") or "",
            encrypted=content.get("protected_data"),
            id=content.get("id"),
        )
    if kind in ("data", "uri") and isinstance(content.get("uri"), str):
        return parts.uri(content["uri"], content.get("media_type"))
    if kind == "hosted_file" and isinstance(content.get("file_id"), str):
        return parts.file(content["file_id"], content.get("media_type"))
    if _is_call(content) and isinstance(content.get("name"), str):
        return parts.tool_call(content.get("call_id"), content["name"], content.get("arguments"))
    if kind == "function_result":
        return _result(content, lost, path)
    own = {name: content[name] for name in content if name not in ("type", "additional_properties")}
    return {"type": f"{_FOREIGN}{kind}", **own}


def _result(content: Mapping[str, Any], lost: Lost, path: str) -> Part:
    items = content.get("items")
    media: list[Part] = []
    texts: list[str] = []
    for i, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, Mapping) and item.get("type") == "text":
            texts.append(str(item.get("text") or ""))
        elif isinstance(item, Mapping):
            part = _read_content(item, lost, f"{path}.items[{i}]")
            media += [part] if part is not None else []
        else:
            lost.add(f"{path}.items[{i}]", "is no content")
    response = content.get("result")
    return parts.tool_call_response(
        content.get("call_id"),
        "\n".join(filter(None, texts)) if response is None else response,
        name=content.get("name"),
        is_error=content.get("exception") is not None,
        parts=media,
    )


# Writing


def write(conversation: Conversation, lost: Lost) -> list[Any]:
    """Give messages as ``Message.from_dict`` takes them."""
    if conversation.system_instructions:
        lost.add("$.system_instructions", "the agent has its own: give them to it")
    return [_message(each) for each in conversation.messages]


def _message(message: Message) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    foreign: list[list[Any]] = []
    for place, part in enumerate(message["parts"]):
        content = _content(part)
        if content is None:
            foreign.append([place, part])
        else:
            contents.append(content)
    kept = {OURS: {"foreign": foreign}} if foreign else {}
    return {
        "type": "message",
        "role": message["role"],
        "contents": contents,
        "additional_properties": kept,
    }


def _content(part: Part) -> dict[str, Any] | None:
    """Return the content that a part is; None for what is another provider's alone."""
    make = _MAKERS.get(part["type"])
    if make is not None:
        return _with_rest(make(part), part)
    if not part["type"].startswith(_FOREIGN):
        return None
    own = {name: value for name, value in part.items() if name != "type"}
    return {"type": part["type"].removeprefix(_FOREIGN), **own, "additional_properties": {}}


def _with_rest(content: dict[str, Any], part: Part) -> dict[str, Any]:
    """Keep beside a content what it has no field for."""
    ours: dict[str, Any] = {}
    if part["type"] == "tool_call_response" and not isinstance(part["response"], str):
        ours["json"] = True
    content["additional_properties"] = {OURS: ours} if ours else {}
    found = _read_content(content, Lost(), "$") or {}
    fields = {name: value for name, value in part.items() if found.get(name, ...) != value}
    without = [name for name in found if name not in part]
    if fields:
        ours["fields"] = fields
    if without:
        ours["without"] = without
    content["additional_properties"] = {OURS: ours} if ours else {}
    return content


def _text(part: Part) -> dict[str, Any]:
    return {"type": "text", "text": part["content"]}


def _reasoning(part: Part) -> dict[str, Any]:
    return {"type": "text_reasoning", "text": part["content"]}


def _blob(part: Part) -> dict[str, Any]:
    mime_type = part.get("mime_type") or parts.OCTETS
    return {"type": "data", "uri": parts.data_url(part), "media_type": mime_type}


def _uri(part: Part) -> dict[str, Any]:
    kind = {"media_type": part["mime_type"]} if part.get("mime_type") else {}
    return {"type": "uri", "uri": part["uri"], **kind}


def _file(part: Part) -> dict[str, Any]:
    kind = {"media_type": part["mime_type"]} if part.get("mime_type") else {}
    return {"type": "hosted_file", "file_id": part["file_id"], **kind}


def _call(part: Part) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": part["id"],
        "name": part["name"],
        "arguments": part["arguments"],
        "hosted": False,
    }


def _answer(part: Part) -> dict[str, Any]:
    said = parts.text_of_response(part["response"])
    media = [_content(each) for each in part.get("parts", [])]
    items = [_content(parts.text(said)), *filter(None, media)]
    name = {"name": part["name"]} if part.get("name") else {}
    failed = {"exception": "failed"} if part.get("is_error") else {}
    return {
        "type": "function_result",
        "call_id": part["id"],
        **name,
        "result": said,
        "items": items,
        **failed,
    }


_MAKERS: dict[str, Callable[[Part], dict[str, Any]]] = {
    "text": _text,
    "reasoning": _reasoning,
    "blob": _blob,
    "uri": _uri,
    "file": _file,
    "tool_call": _call,
    "tool_call_response": _answer,
}


def state(messages: list[Any], conversation: Conversation) -> dict[str, Any]:
    """Give the state of a session of the history provider."""
    return {"messages": messages, "system": list(conversation.system_instructions)}


def output(kept: Any) -> Any:
    """Give what the journal kept of a tool: a text, a value, or contents."""
    if not isinstance(kept, Mapping):
        return kept
    if "contents" in kept:
        return _result({"items": kept["contents"]}, Lost(), "$")
    return kept.get("value", dict(kept))


FORM = Form(framework=NAME, extract=extract, read=read, write=write, state=state, output=output)
