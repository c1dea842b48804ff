"""CrewAI: the chat messages that ``Agent.kickoff`` takes, and those of a crew's finished tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation import blocks, parts
from holdfast.core.conversation.blocks import word
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

_ROLES = ("system", "user", "assistant", "tool")
_PROVIDER = "crewai"
_FIELDS = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "name", "cache_breakpoint"}
    | {"raw_tool_call_parts"}
)


def _extract(state: Any) -> Native | None:
    if not isinstance(state, Mapping):
        return None
    if isinstance(state.get("messages"), (list, tuple)):
        return Native(state["messages"])
    version = word(state, "crewai_version")
    entities = state.get("entities")
    if version is None or not isinstance(entities, (list, tuple)):
        return None
    return Native([m for entity in entities for m in _of_tasks(entity)], version=version)


def _of_tasks(entity: Any) -> list[Any]:
    """Return what was said in the tasks that a crew has done."""
    tasks = entity.get("tasks") if isinstance(entity, Mapping) else None
    said: list[Any] = []
    for task in tasks if isinstance(tasks, (list, tuple)) else ():
        output = task.get("output") if isinstance(task, Mapping) else None
        messages = output.get("messages") if isinstance(output, Mapping) else None
        said += messages if isinstance(messages, (list, tuple)) else ()
        raw = output.get("raw") if isinstance(output, Mapping) else None
        is_told = bool(said) and isinstance(said[-1], Mapping) and said[-1].get("role") == _ROLES[2]
        if raw and not is_told:  # agents without tools do not put their answer there
            said.append({"role": "assistant", "content": raw})
    return said


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found: list[Message] = []
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        role = word(message, "role") if isinstance(message, Mapping) else None
        if role not in _ROLES:
            lost.add(path, f"a message of the role {str(role)[:40]!r}")
            continue
        for name in message:
            if name not in _FIELDS and message[name]:
                lost.add(f"{path}.{name}"[:200], "a field that no message of CrewAI's has")
        content = blocks.parts_of(message.get("content"), lost, f"{path}.content", _PROVIDER)
        if role == "tool":
            call_id, name = word(message, "tool_call_id"), word(message, "name")
            content = [blocks.response_of(call_id, content, name=name)]
        elif role == "assistant":
            content += _calls(message.get("tool_calls"), lost, path)
        found.append({"role": role, "parts": content})
    return found


def _calls(given: Any, lost: Lost, path: str) -> list[Part]:
    calls = []
    for j, each in enumerate(given if isinstance(given, (list, tuple)) else ()):
        call = blocks.call_of(each) if isinstance(each, Mapping) else None
        if call is None:
            lost.add(f"{path}.tool_calls[{j}]", "is a call without a name")
        else:
            calls.append(call)
    return calls


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    found: list[Any] = []
    if conversation.system_instructions and not lost.first:
        content = _content(conversation.system_instructions, lost, "$.system_instructions")
        found += [{"role": "system", "content": content}] if content else []
    for i, message in enumerate(conversation.messages):
        path = f"$.messages[{i}].parts"
        if message["role"] == "tool":
            answers = enumerate(message["parts"])
            found += [_answer(part, lost, f"{path}[{j}]") for j, part in answers]
        elif message["role"] == "assistant":
            found += _assistant(message, lost, path)
        else:
            leads = all(each["role"] == "system" for each in found) and not lost.first
            if message["role"] == "system" and leads:
                lost.add(f"$.messages[{i}]", "all before it is lost, so that it leads")
            content = _content(message["parts"], lost, path)
            found += [{"role": message["role"], "content": content}] if content else []
    return found


def _assistant(message: Message, lost: Lost, path: str) -> list[dict[str, Any]]:
    said = _content(message["parts"], lost, path, is_models=True)
    calls = [part for part in message["parts"] if part["type"] == "tool_call"]
    if not calls:
        return [{"role": "assistant", "content": said}] if said else []
    asked = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": _arguments(call["arguments"])},
        }
        for call in calls
    ]
    return [{"role": "assistant", "content": said or None, "tool_calls": asked}]


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else parts.json_text(given)


def _answer(part: Part, lost: Lost, path: str) -> dict[str, Any]:
    if not isinstance(part["response"], str):
        lost.add(f"{path}.response", "an answer that is no text is JSON text here")
    if part.get("is_error"):
        lost.add(f"{path}.is_error", "answers have no flag for errors")
    for k, _ in enumerate(part.get("parts", [])):
        lost.add(f"{path}.parts[{k}]", "media in an answer, where only text is taken")
    said = parts.text_of_response(part["response"])
    own = {"role": "tool", "tool_call_id": part["id"], "name": part["name"]}
    return {**own, "content": said}


def _content(given: list[Part], lost: Lost, path: str, *, is_models: bool = False) -> Any:
    """Return what is said: a text where it is one, else blocks."""
    found = []
    for j, part in enumerate(given):
        if part["type"] == "tool_call":
            continue
        block = _block(part, lost, f"{path}[{j}]", is_models)
        if block is not None:
            found.append(block)
    is_text = len(found) == 1 and found[0]["type"] == "text"
    return found[0]["text"] if is_text else found


def _block(part: Part, lost: Lost, path: str, is_models: bool) -> dict[str, Any] | None:
    kind = part["type"]
    if kind == "text":
        return {"type": "text", "text": part["content"]}
    if kind == "reasoning":
        lost.add(path, "what a model thought goes to no other")
        return None
    block = None if is_models else _media(part)
    if block is None:
        lost.add(path, "a model's own media" if kind in _MEDIA else f"a part {kind[:60]}")
    elif blocks.part_of(block, Lost(), path, _PROVIDER) != part:
        lost.add(path, "the type of media, which CrewAI's messages have no place for")
    return block


_MEDIA = ("blob", "uri", "file")


def _media(part: Part) -> dict[str, Any] | None:
    """Return media as chat messages have them: images by their address, all else as a file."""
    is_image = part.get("modality") == "image"
    if part["type"] == "file":
        return {"type": "file", "file": {"file_id": part["file_id"]}}
    if part["type"] == "blob":
        address = parts.data_url(part)
        if is_image:
            return {"type": "image_url", "image_url": {"url": address}}
        return {"type": "file", "file": {"file_data": address}}
    if part["type"] == "uri":
        if is_image:
            return {"type": "image_url", "image_url": {"url": part["uri"]}}
        extra = {"mime_type": part["mime_type"]} if "mime_type" in part else {}
        return {"type": "file", "file": {"file_url": part["uri"], **extra}}
    return None


def _state(messages: list[Any], conversation: Conversation) -> Any:
    return {"messages": messages, "turn": None}


FORM = Form("crewai", _extract, _read, _write, _state)
