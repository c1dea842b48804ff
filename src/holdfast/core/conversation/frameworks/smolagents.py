"""smolagents: steps of an agent's memory. It has calls and answers as text for its model.

They are read from the calls and observations of each step; others' conversations become text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation import blocks, parts
from holdfast.core.conversation.blocks import word
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

_PROVIDER = "smolagents"
_FINAL = "final_answer"


def _extract(state: Any) -> Native | None:
    steps = state.get("steps") if isinstance(state, Mapping) else None
    if not isinstance(steps, (list, tuple)) or "system_prompt" not in state:
        return None
    prompt = word(state, "system_prompt")
    return Native(steps, system=[] if prompt is None else [parts.text(prompt)])


def _read(steps: Sequence[Any], lost: Lost) -> list[Message]:
    found: list[Message] = []
    for i, step in enumerate(steps):
        path = f"$.messages[{i}]"
        kind = step.get("type") if isinstance(step, Mapping) else None
        if kind == "task":
            said = [parts.text(str(step.get("task", "")))]
            found.append({"role": "user", "parts": [*said, *_images(step, lost, path)]})
        elif kind == "planning":
            found.append({"role": "assistant", "parts": [parts.text(str(step.get("plan", "")))]})
        elif kind == "action":
            found += _action(step, lost, path)
        else:
            lost.add(path, f"a step of the type {str(kind)[:40]!r}")
    return found


def _action(step: Mapping[str, Any], lost: Lost, path: str) -> list[Message]:
    said = blocks.parts_of(step.get("model_output"), lost, f"{path}.model_output", _PROVIDER)
    calls = [call for call in _listed(step, "tool_calls") if isinstance(call, Mapping)]
    asked = [call for call in calls if call.get("name") != _FINAL]
    made = [parts.tool_call(word(c, "id"), str(c.get("name")), c.get("arguments")) for c in asked]
    found: list[Message] = [{"role": "assistant", "parts": [*said, *made]}]
    answers = _answers(step, calls, lost, path)
    if made:
        kept = zip(calls, answers, strict=True)
        answered = [answer for call, answer in kept if call.get("name") != _FINAL]
        found.append({"role": "tool", "parts": answered})
    elif not calls and (text := _observed(step)):
        found.append({"role": "user", "parts": [parts.text(text)]})
    images = _images(step, lost, path)
    if images:
        found.append({"role": "user", "parts": images})
    if step.get("is_final_answer"):
        output = step.get("output")
        if output is not None:
            text = output if isinstance(output, str) else parts.json_text(output)
            found.append({"role": "assistant", "parts": [parts.text(text)]})
    return found


def _answers(
    step: Mapping[str, Any], calls: list[Mapping[str, Any]], lost: Lost, path: str
) -> list[Part]:
    """Return one answer for each call: their observations are one text, a line or more each."""
    if not calls:
        return []
    observed, is_error = _observed(step), step.get("error") is not None
    lines = observed.split("\n") if len(calls) > 1 else [observed]
    if len(lines) != len(calls):
        lost.add(f"{path}.observations", "which answer is whose: the first call has them all")
        lines = [observed, *[""] * (len(calls) - 1)]
    return [
        parts.tool_call_response(word(c, "id"), line, name=word(c, "name"), is_error=is_error)
        for c, line in zip(calls, lines, strict=True)
    ]


def _observed(step: Mapping[str, Any]) -> str:
    error = step.get("error")
    told = word(error, "message") if isinstance(error, Mapping) else None
    return "\n".join(filter(None, [word(step, "observations"), told]))


def _images(step: Mapping[str, Any], lost: Lost, path: str) -> list[Part]:
    found = []
    for j, image in enumerate(_listed(step, "images")):
        if isinstance(image, (str, bytes)) and image:
            found.append(parts.blob(image, "image/png"))
        else:
            lost.add(f"{path}.images[{j}]", "is no image")
    return found


def _listed(step: Mapping[str, Any], name: str) -> Sequence[Any]:
    given = step.get(name)
    return given if isinstance(given, (list, tuple)) else ()


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    if conversation.system_instructions and not lost.first:
        lost.add("$.system_instructions", "the agent has its own: give them to it")
    steps: list[dict[str, Any]] = []
    for i, message in enumerate(conversation.messages):
        path = f"$.messages[{i}]"
        text = _text(message, lost, path)
        if not text:
            continue
        if message["role"] == "assistant":
            steps.append(_step(len(steps) + 1, text))
        elif message["role"] == "tool" and steps and steps[-1]["type"] == "action":
            steps[-1]["observations"] = text
        else:
            if message["role"] == "system":
                lost.add(path, "a late system prompt is a task here")
            steps.append({"type": "task", "task": text, "images": []})
    return steps


def _text(message: Message, lost: Lost, path: str) -> str:
    """Return all that a message says as text; of what is more than text it is said."""
    found: list[str] = []
    for j, part in enumerate(message["parts"]):
        own = f"{path}.parts[{j}]"
        if part["type"] == "text":
            if found:
                lost.add(own, "texts of one message are one text here")
            found.append(part["content"])
        elif part["type"] == "tool_call":
            lost.add(own, "a call is text here")
            given = part["arguments"]
            arguments = given if isinstance(given, str) else parts.json_text(given)
            found.append(f"Calling tool: {part['name']}({arguments})")
        elif part["type"] == "tool_call_response":
            lost.add(own, "an answer is text here")
            found.append(parts.text_of_response(part["response"]))
        else:
            lost.add(own, f"a part {part['type'][:60]}, where only text is taken")
    return "\n".join(found)


def _step(number: int, text: str) -> dict[str, Any]:
    return {
        "type": "action",
        "step_number": number,
        "model_output": text,
        "code_action": None,
        "observations": None,
        "is_final_answer": False,
        "answer": None,
        "tool_calls": [],
        "error": None,
        "images": [],
        "output": None,
        "timing": {"start_time": 0.0, "end_time": 0.0},
        "token_usage": None,
    }


def _state(messages: list[Any], conversation: Conversation) -> Any:
    return {
        "system_prompt": "",
        "steps": messages,
        "asked": None,
        "state": {},
        "variables": {},
        "left_out": [],
    }


FORM = Form("smolagents", _extract, _read, _write, _state)
