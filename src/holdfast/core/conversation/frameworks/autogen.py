"""AutoGen: what an agent keeps for its model (``llm_context``), and the thread of a team."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

NAME = "autogen"
_SIGNATURES = {
    "iVBOR": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
"""How the base64 of images begins."""
_RE_ENCODED = "an image, which AutoGen encodes anew as a PNG without transparency"


def extract(state: Any) -> Native | None:
    """Find the messages of an agent, or the thread of a team, in what the adapter keeps."""
    if not isinstance(state, Mapping):
        return None
    system = state.get("system")
    own = state.get("state", state)
    messages = _messages_of(own) if isinstance(own, Mapping) else None
    if messages is None:
        return None
    return Native(messages=messages, system=system if isinstance(system, list) else [])


def _messages_of(state: Mapping[str, Any]) -> list[Any] | None:
    context = state.get("llm_context")
    if isinstance(context, Mapping) and isinstance(context.get("messages"), list):
        found: list[Any] = context["messages"]
        return found
    members = state.get("agent_states")
    for member in members.values() if isinstance(members, Mapping) else ():
        if isinstance(member, Mapping) and isinstance(member.get("message_thread"), list):
            thread: list[Any] = member["message_thread"]
            return thread
    return None


# Reading


def read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    """Give messages of parts."""
    found: list[Message] = []
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        kind = message.get("type") if isinstance(message, Mapping) else None
        if kind in ("SystemMessage", "UserMessage"):
            role = "system" if kind == "SystemMessage" else "user"
            found.append({"role": role, "parts": _said(message.get("content"), lost, path)})
        elif kind == "AssistantMessage":
            found.append({"role": "assistant", "parts": _answer(message, lost, path)})
        elif kind in ("FunctionExecutionResultMessage", "ToolCallExecutionEvent"):
            found.append({"role": "tool", "parts": _results(message.get("content"), lost, path)})
        else:
            found += _in_team(message, lost, path)
    return found


def _in_team(message: Any, lost: Lost, path: str) -> list[Message]:
    """Read a message of the thread of a team: who else than the user speaks is the assistant."""
    if not isinstance(message, Mapping) or "source" not in message:
        lost.add(path, "is no message of AutoGen")
        return []
    kind, content = message.get("type"), message.get("content")
    if kind == "ToolCallRequestEvent":
        return [{"role": "assistant", "parts": _calls(content, lost, path)}]
    if kind == "ThoughtEvent":
        return [{"role": "assistant", "parts": [parts.reasoning(str(content))]}]
    if kind == "ToolCallSummaryMessage":
        return []  # it says again what the results say
    if isinstance(content, Mapping):  # a structured message
        content = parts.json_text(content)
    source = str(message["source"])
    if source != "user":
        lost.add(f"{path}.source", f"that {source[:60]} said it")
    role = "user" if source == "user" else "assistant"
    return [{"role": role, "parts": _said(content, lost, path)}]


def _said(content: Any, lost: Lost, path: str) -> list[Part]:
    found: list[Part] = []
    for i, each in enumerate(content if isinstance(content, list) else [content]):
        if isinstance(each, str):
            found.append(parts.text(each))
        elif isinstance(each, Mapping) and isinstance(each.get("data"), str):
            found.append(parts.blob(each["data"], _type_of(each["data"]), "image"))
        else:
            lost.add(f"{path}.content[{i}]", "is neither a text nor an image")
    return found


def _type_of(data: str) -> str:
    return next((kind for head, kind in _SIGNATURES.items() if data.startswith(head)), "image/png")


def _answer(message: Mapping[str, Any], lost: Lost, path: str) -> list[Part]:
    content, thought = message.get("content"), message.get("thought")
    if isinstance(content, list):  # what a model says beside its calls is kept as its thought
        said = [parts.text(thought)] if isinstance(thought, str) else []
        return [*said, *_calls(content, lost, path)]
    thoughts = [parts.reasoning(thought)] if isinstance(thought, str) and thought else []
    return [*thoughts, *_said(content, lost, path)]


def _calls(content: Any, lost: Lost, path: str) -> list[Part]:
    found = []
    for i, call in enumerate(content if isinstance(content, list) else []):
        if isinstance(call, Mapping) and isinstance(call.get("name"), str):
            own_id = call.get("id") or None
            found.append(parts.tool_call(own_id, call["name"], call.get("arguments")))
        else:
            lost.add(f"{path}.content[{i}]", "is a call without a name")
    return found


def _results(content: Any, lost: Lost, path: str) -> list[Part]:
    found = []
    for i, result in enumerate(content if isinstance(content, list) else []):
        if not isinstance(result, Mapping):
            lost.add(f"{path}.content[{i}]", "is no result of a call")
            continue
        found.append(
            parts.tool_call_response(
                result.get("call_id") or None,
                result.get("content"),
                name=result.get("name") or None,
                is_error=result.get("is_error") is True,
            )
        )
    return found


# Writing


def write(conversation: Conversation, lost: Lost) -> list[Any]:
    """Give messages as an agent's ``load_state`` takes them in its ``llm_context``."""
    if conversation.system_instructions:
        lost.add("$.system_instructions", "the agent has its own: give them to it")
    found: list[Any] = []
    for i, message in enumerate(conversation.messages):
        path = f"$.messages[{i}]"
        if message["role"] == "assistant":
            found += _written_answer(message["parts"], lost, path)
        elif message["role"] == "tool":
            found.append(_written_results(message["parts"], lost, path))
        else:
            if message["role"] == "system" and i and not found:
                lost.add(path, "stands first now, as all before it is lost: a system prompt")
            found += _written_said(message, lost, path)
    return found


def _places(given: Sequence[Part], path: str) -> Iterator[tuple[Part, str]]:
    return ((part, f"{path}.parts[{j}]") for j, part in enumerate(given))


def _written_said(message: Message, lost: Lost, path: str) -> list[Any]:
    is_system = message["role"] == "system"
    content: list[Any] = []
    for part, place in _places(message["parts"], path):
        if part["type"] == "text":
            content.append(part["content"])
        elif part["type"] == "blob" and part["modality"] == "image" and not is_system:
            lost.add(place, _RE_ENCODED)
            content.append({"data": part["content"]})
        else:
            _is_lost(part, lost, place)
    if is_system:
        return [{"content": each, "type": "SystemMessage"} for each in content]
    if not content:
        return []
    is_text = len(content) == 1 and isinstance(content[0], str)
    said = content[0] if is_text else content
    return [{"content": said, "source": "user", "type": "UserMessage"}]


def _written_answer(given: Sequence[Part], lost: Lost, path: str) -> list[Any]:
    """Give one message for each text, and one for all calls with the text before them."""
    calls = [part for part in given if part["type"] == "tool_call"]
    texts: list[str] = []
    thoughts: list[tuple[str, str]] = []
    for part, place in _places(given, path):
        if part["type"] == "text":
            texts.append(part["content"])
        elif part["type"] == "reasoning" and part["content"]:
            thoughts.append((part["content"], place))
            if len(part) > 2:
                lost.add(place, "what proves to a provider that its model thought so")
        elif part["type"] != "tool_call":
            _is_lost(part, lost, place)
    found = [_assistant(text) for text in texts]
    kept = None
    if thoughts and given[0]["type"] == "reasoning" and len(found) > bool(calls):
        kept = thoughts.pop(0)
        found[0]["thought"] = kept[0]
    for _, place in thoughts:
        lost.add(place, "what a model thought beside its calls")
    if not calls:
        return found
    beside = found.pop()["content"] if found else None
    own = [
        {
            "id": call["id"],
            "arguments": parts.text_of_response(call["arguments"]),
            "name": call["name"],
        }
        for call in calls
    ]
    return [*found, {**_assistant(own), "thought": beside}]


def _assistant(content: Any) -> dict[str, Any]:
    return {"content": content, "thought": None, "source": "assistant", "type": "AssistantMessage"}


def _written_results(given: Sequence[Part], lost: Lost, path: str) -> dict[str, Any]:
    results = []
    for part, place in _places(given, path):
        if not isinstance(part["response"], str):
            lost.add(f"{place}.response", "an answer that is no text is JSON text here")
        for each, inner in _places(part.get("parts", []), place):
            _is_lost(each, lost, inner)
        results.append(
            {
                "content": parts.text_of_response(part["response"]),
                "name": part.get("name") or "",
                "call_id": part["id"],
                "is_error": bool(part.get("is_error")),
            }
        )
    return {"content": results, "type": "FunctionExecutionResultMessage"}


def _is_lost(part: Part, lost: Lost, place: str) -> None:
    kind = part["type"] if "modality" not in part else f"{part['modality']} ({part['type']})"
    lost.add(place, f"{kind[:60]}, where AutoGen takes texts, and images of the user")


def state(messages: list[Any], conversation: Conversation) -> dict[str, Any]:
    """Give the state of an agent from which ``run`` and ``load`` go on."""
    own = {
        "type": "AssistantAgentState",
        "version": "1.0.0",
        "llm_context": {"messages": messages},
    }
    return {"state": own, "system": list(conversation.system_instructions)}


def output(kept: Any) -> Any:
    """Give what the journal kept of a tool: a text, or a result in several."""
    result = kept.get("result") if isinstance(kept, Mapping) else None
    if not isinstance(kept, Mapping) or not isinstance(result, list):
        return kept
    said = [str(each.get("content")) for each in result if isinstance(each, Mapping)]
    is_error = kept.get("is_error") is True
    return parts.tool_call_response(None, "\n".join(said), is_error=is_error)


FORM = Form(framework=NAME, extract=extract, read=read, write=write, state=state, output=output)
