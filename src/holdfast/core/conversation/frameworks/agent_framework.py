"""Microsoft Agent Framework: ``Message.to_dict``, a list of contents each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.frameworks.agent_framework_contents import (
    OURS,
    content_of,
    is_call,
    part_of,
    result_of,
    stash,
)
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

NAME = "agent_framework"
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
    calls = {each.get("call_id") for each in _contents(messages) if is_call(each)}
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
        for place, part in _foreign(message, lost, path):
            said.insert(place, part)
        found.append({"role": _ROLES.get(role, "assistant"), "parts": said})
    return found


def _foreign(message: Mapping[str, Any], lost: Lost, path: str) -> Iterator[tuple[int, Part]]:
    """Give the parts of other providers that were kept beside a message, each with its place."""
    kept = stash(message).get("foreign")
    for each in kept if isinstance(kept, list) else []:
        match each:
            case [int(place), dict(part)]:
                yield place, part
            case _:
                lost.add(path, "what was kept beside it is no part")


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
    return part_of(content, lost, path)


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
    return part_of(call, lost, path)


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
        content = content_of(part)
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


def state(messages: list[Any], conversation: Conversation) -> dict[str, Any]:
    """Give the state of a session of the history provider."""
    return {"messages": messages, "system": list(conversation.system_instructions)}


def output(kept: Any) -> Any:
    """Give what the journal kept of a tool: a text, a value, or contents."""
    if not isinstance(kept, Mapping):
        return kept
    if "contents" in kept:
        return result_of({"items": kept["contents"]}, Lost(), "$")
    return kept.get("value", dict(kept))


FORM = Form(framework=NAME, extract=extract, read=read, write=write, state=state, output=output)
