"""Conversations as the OpenAI Agents SDK keeps them: input items of the Responses API.

A state of ours is ``{"items": […], "instructions": text, "run": None or what is not finished}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.frameworks.openai_items import (
    answer_items,
    generated_items,
    item_list,
    unanswered,
)
from holdfast.core.conversation.frameworks.openai_media import content_part, media_content
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

PROVIDER = "openai"
FOREIGN = f"{PROVIDER}_"
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_KNOWN = ("message", "function_call", "function_call_output", "reasoning")


def extract(state: Any) -> Native | None:
    """Return the items of a state, those of a run that is not finished too."""
    if not isinstance(state, Mapping) or not isinstance(state.get("items"), list):
        return None
    run = state.get("run")
    run = run if isinstance(run, Mapping) else {}
    kept = run.get("state")
    kept = kept if isinstance(kept, Mapping) else {}
    begun = item_list(kept.get("original_input")) if kept else list(state["items"])
    generated, waiting = generated_items(kept)
    said = state.get("instructions")
    return Native(
        messages=[*begun, *generated, *answer_items(run)],
        system=[parts.text(said)] if isinstance(said, str) and said else [],
        interrupts=[_interrupt(item) for item in waiting],
        provider=PROVIDER,
    )


def _interrupt(item: Mapping[str, Any]) -> dict[str, Any]:
    call_id = item.get("call_id") or item.get("id")
    return {"id": call_id, "reason": "tool_approval", "tool_call_id": call_id}


def read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    """Return messages of parts; what an item of another kind holds is a part of its own type."""
    return [
        message
        for i, item in enumerate(messages)
        for message in _read_item(item, f"$.messages[{i}]", lost)
    ]


def _read_item(item: Any, path: str, lost: Lost) -> list[Message]:
    if not isinstance(item, Mapping):
        lost.add(path, f"is {type(item).__name__}, where an item is")
        return []
    kind = item.get("type") or "message"
    if kind == "message":
        return _read_message(item, path, lost)
    if kind == "function_call":
        if item.get("namespace"):
            lost.add(f"{path}.namespace", "the namespace of a tool")
        call = parts.tool_call(item.get("call_id"), item.get("name", ""), item.get("arguments"))
        return [{"role": "assistant", "parts": [call]}]
    if kind == "function_call_output":
        return [{"role": "tool", "parts": [_read_output(item, path, lost)]}]
    if kind == "reasoning":
        return _read_reasoning(item, path, lost)
    own = {key: value for key, value in item.items() if key != "type"}
    return [{"role": "assistant", "parts": [{"type": f"{FOREIGN}{kind}", **own}]}]


def _read_message(item: Mapping[str, Any], path: str, lost: Lost) -> list[Message]:
    role = _ROLES.get(str(item.get("role")))
    if role is None:
        lost.add(path, f"has the role {str(item.get('role'))[:40]!r}")
        return []
    if item["role"] == "developer":
        lost.add(f"{path}.role", "the role developer, which is system here")
    content = item.get("content")
    if isinstance(content, str):
        return [{"role": role, "parts": [parts.text(content)]}]
    return [{"role": role, "parts": _read_content(content, f"{path}.content", lost)}]


def _read_content(content: Any, path: str, lost: Lost) -> list[Part]:
    if not isinstance(content, list):
        lost.add(path, f"is {type(content).__name__}, where text or a list is")
        return []
    read_parts = [content_part(each, f"{path}[{i}]", lost) for i, each in enumerate(content)]
    return [part for part in read_parts if part is not None]


def _read_output(item: Mapping[str, Any], path: str, lost: Lost) -> Part:
    output = item.get("output")
    if not isinstance(output, list):
        return parts.tool_call_response(item.get("call_id"), output)
    given = _read_content(output, f"{path}.output", lost)
    first = given[0]["content"] if given and given[0]["type"] == "text" else None
    rest = given if first is None else given[1:]
    return parts.tool_call_response(item.get("call_id"), first or "", parts=rest)


def _read_reasoning(item: Mapping[str, Any], path: str, lost: Lost) -> list[Message]:
    texts = [
        str(each["text"])
        for field in ("summary", "content")
        for each in item.get(field) or []
        if isinstance(each, Mapping) and each.get("text")
    ]
    if len(texts) > 1:
        lost.add(path, "reasoning in several texts, which are one here")
    thought = parts.reasoning(
        "\n\n".join(texts),
        id=item.get("id"),
        encrypted=item.get("encrypted_content"),
        provider=PROVIDER,
    )
    return [{"role": "assistant", "parts": [thought]}]


def write(conversation: Conversation, lost: Lost) -> list[Any]:
    """Return input items: what the SDK takes as a run's input, or keeps in a Session."""
    if conversation.system_instructions:
        lost.add("$.system_instructions", "the agent has its own: give them to it")
    items: list[Any] = []
    for i, message in enumerate(conversation.messages):
        path = f"$.messages[{i}]"
        leads = all(item.get("role") == "system" for item in items)
        if message["role"] == "system" and i and leads:
            lost.add(path, "a late system prompt, which leads where all before it is lost")
        items += _WRITERS[message["role"]](message["parts"], f"{path}.parts", lost)
    return items


def _write_user(given: Sequence[Part], path: str, lost: Lost) -> list[Any]:
    content = [
        made
        for j, part in enumerate(given)
        if (made := media_content(part, f"{path}[{j}]", lost)) is not None
    ]
    if not content:
        return []
    if len(content) == 1 and content[0]["type"] == "input_text":
        return [{"role": "user", "content": content[0]["text"]}]
    return [{"role": "user", "content": content}]


def _write_system(given: Sequence[Part], path: str, lost: Lost) -> list[Any]:
    items = []
    for j, part in enumerate(given):
        if part["type"] == "text":
            items.append({"role": "system", "content": part["content"]})
        else:
            lost.add(f"{path}[{j}]", f"{part['type']} in a system message")
    return items


def _write_assistant(given: Sequence[Part], path: str, lost: Lost) -> list[Any]:
    items = []
    for j, part in enumerate(given):
        item = _assistant_item(part, f"{path}[{j}]", lost)
        if item is not None:
            items.append(item)
    return items


def _assistant_item(part: Part, path: str, lost: Lost) -> dict[str, Any] | None:
    kind = part["type"]
    if kind == "text":
        return {"role": "assistant", "content": part["content"]}
    if kind == "tool_call":
        arguments = part["arguments"]
        return {
            "type": "function_call",
            "call_id": part["id"],
            "name": part["name"],
            "arguments": arguments if isinstance(arguments, str) else parts.json_text(arguments),
        }
    if kind == "reasoning":
        return _reasoning_item(part, path, lost)
    if kind.startswith(FOREIGN) and kind.removeprefix(FOREIGN) not in ("", *_KNOWN):
        return {**part, "type": kind.removeprefix(FOREIGN)}
    lost.add(path, f"{kind} in an assistant message")
    return None


def _reasoning_item(part: Part, path: str, lost: Lost) -> dict[str, Any] | None:
    if part.get("provider") != PROVIDER or not part.get("id"):
        lost.add(path, "reasoning that OpenAI has no id of")
        return None
    for name in ("signature", "redacted"):
        if part.get(name) is not None:
            lost.add(f"{path}.{name}", "not a field of OpenAI's reasoning")
    said = [{"type": "summary_text", "text": part["content"]}] if part["content"] else []
    item = {"type": "reasoning", "id": part["id"], "summary": said}
    if part.get("encrypted") is not None:
        item["encrypted_content"] = part["encrypted"]
    return item


def _write_tool(given: Sequence[Part], path: str, lost: Lost) -> list[Any]:
    return [_output_item(part, f"{path}[{j}]", lost) for j, part in enumerate(given)]


def _output_item(part: Part, path: str, lost: Lost) -> dict[str, Any]:
    response = part["response"]
    if not isinstance(response, str):
        lost.add(f"{path}.response", f"{type(response).__name__}, which is text here")
    if part.get("is_error"):
        lost.add(f"{path}.is_error", "that the call failed, for which there is no flag")
    output: Any = parts.text_of_response(response)
    media = [
        made
        for k, each in enumerate(part.get("parts") or [])
        if (made := media_content(each, f"{path}.parts[{k}]", lost, of_output=True)) is not None
    ]
    if media:
        output = [*([{"type": "input_text", "text": output}] if output else []), *media]
    return {"type": "function_call_output", "call_id": part["id"], "output": output}


_WRITERS: dict[str, Callable[[Sequence[Part], str, Lost], list[Any]]] = {
    "user": _write_user,
    "system": _write_system,
    "assistant": _write_assistant,
    "tool": _write_tool,
}


def state(messages: list[Any], conversation: Conversation) -> dict[str, Any]:
    """Return the state from which HoldfastRunner and HoldfastSession go on.

    Calls without an answer are the end of a run that is not finished, so that they are run; but
    none of those is which wait for a person's approval.
    """
    said = [part["content"] for part in conversation.system_instructions if part["type"] == "text"]
    items, run = unanswered(messages)
    waiting = {each.get("tool_call_id") for each in conversation.interrupts}
    if run is not None and any(item.get("call_id") in waiting for item in run["answer"]["output"]):
        items, run = list(messages), None
    return {"items": items, "instructions": "\n\n".join(said) or None, "run": run}


FORM = Form(
    framework="openai_agents",
    extract=extract,
    read=read,
    write=write,
    state=state,
    runs_pending=True,
)
