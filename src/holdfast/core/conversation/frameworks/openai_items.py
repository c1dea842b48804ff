"""The items of a run of the OpenAI Agents SDK, as its state has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation.settling import INTERRUPTED

_WAITING = "tool_approval_item"


def item_list(given: Any) -> list[Any]:
    """Return a run's input as a list of items: a text is what the user says."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(given) if isinstance(given, list) else []


def generated_items(state: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return what the JSON of a RunState holds beyond its input, and the calls that wait."""
    found: list[Any] = []
    for entry in state.get("generated_items") or []:
        raw = entry.get("raw_item") if isinstance(entry, Mapping) else None
        if isinstance(raw, Mapping) and entry.get("type") != _WAITING:
            found.append(raw)
    step = state.get("current_step")
    data = step.get("data") if isinstance(step, Mapping) else None
    interruptions = data.get("interruptions") if isinstance(data, Mapping) else None
    waiting = [
        entry["raw_item"]
        for entry in interruptions or []
        if isinstance(entry, Mapping) and isinstance(entry.get("raw_item"), Mapping)
    ]
    return found, waiting


def answer_items(run: Mapping[str, Any]) -> list[Any]:
    """Return the model's answer that is kept and not acted on yet, and what is known of calls."""
    answer = run.get("answer")
    if not isinstance(answer, Mapping) or not isinstance(answer.get("output"), list):
        return []
    outputs = run.get("outputs")
    known = outputs if isinstance(outputs, Mapping) else {}
    given = [output_item(call_id, output) for call_id, output in known.items()]
    return [*answer["output"], *given]


def is_run(run: Any) -> bool:
    """Return whether a value is what a state of ours holds of a run that is not finished."""
    match run:
        case {
            "prompt": str() | [*_],
            "state": None
            | {"current_agent": {"name": str()}, "context": {}, "current_turn": int()},
            "answer": None | {"output": [*_]},
            "outputs": {},
        }:
            return True
    return False


def output_item(call_id: str, output: Any) -> dict[str, Any]:
    """Return the item that answers a call."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def unanswered(items: Sequence[Any]) -> tuple[list[Any], dict[str, Any] | None]:
    """Return items up to a last answer with calls that wait, and the run that it is part of.

    None if every call at the end has its answer.
    """
    begin = len(items)
    while begin and _is_of_answer(items[begin - 1]):
        begin -= 1
    tail = items[begin:]
    outputs = {item["call_id"]: item["output"] for item in tail if _is_output(item)}
    calls = [item["call_id"] for item in tail if item.get("type") == "function_call"]
    if all(call_id in outputs for call_id in calls):
        return list(items), None
    first = begin
    for i in range(len(items) - 1, begin - 1, -1):  # the last answer: behind what came before it
        if _is_output(items[i]) and any(not _is_output(later) for later in items[i + 1 :]):
            first = i + 1
            break
    last = items[first:]
    prompt = next((item for item in reversed(items[:begin]) if item.get("role") == "user"), None)
    return list(items[:first]), {
        "prompt": [prompt] if prompt is not None else [],
        "state": None,
        "answer": {
            "output": [_as_output(item) for item in last if not _is_output(item)],
            "usage": None,
            "response_id": None,
            "request_id": None,
        },
        "outputs": {item["call_id"]: item["output"] for item in last if _is_output(item)},
    }


def _is_output(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "function_call_output"


def _is_of_answer(item: Mapping[str, Any]) -> bool:
    """Tell what a model says, and what its calls gave, from what others say."""
    return item.get("role") not in ("user", "system", "developer")


def _as_output(item: dict[str, Any]) -> dict[str, Any]:
    """Return what a model said as it would have said it: a message has a list of contents."""
    if item.get("role") != "assistant" or not isinstance(item.get("content"), str):
        return item
    text = {"type": "output_text", "text": item["content"], "annotations": []}
    return {"type": "message", "role": "assistant", "status": "completed", "content": [text]}


_ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Calls that a program carries out, and what answers each."""


def repaired(items: Sequence[Any], outputs: Mapping[str, Any] | None = None) -> list[Any]:
    """Return items in which every call has its answer and every answer its call.

    Providers refuse all else. A call without an answer is given what is known of it by ``outputs``
    (items, by call id), or said to be interrupted; one that has no text as its answer is left out.
    """
    unanswered_calls, strays = _unpaired(items)
    known = outputs or {}
    found: list[Any] = []
    waiting: list[Any] = []
    before = ""
    for i, item in enumerate(items):
        kind = _role_in_calls(item)
        if waiting and (kind == "" or (kind == "call" and before == "answer")):
            found += waiting
            waiting = []
        before = kind
        if i in strays:
            continue
        if i in unanswered_calls:
            if item["type"] != "function_call":
                _leave_out(found)
                continue
            call_id = str(item.get("call_id"))
            waiting.append(known.get(call_id) or output_item(call_id, INTERRUPTED))
        found.append(item)
    return [*found, *waiting]


def _unpaired(items: Sequence[Any]) -> tuple[set[int], set[int]]:
    """Return the places of calls without an answer, and of answers without a call."""
    waiting: dict[tuple[str, Any], list[int]] = {}
    strays = set()
    for i, item in enumerate(items):
        kind = _role_in_calls(item)
        if kind == "call":
            waiting.setdefault((_ANSWERS[item["type"]], item.get("call_id")), []).append(i)
        elif kind == "answer":
            calls = waiting.get((item["type"], item.get("call_id")))
            if calls:
                calls.pop(0)
            else:
                strays.add(i)
    return {i for calls in waiting.values() for i in calls}, strays


def _role_in_calls(item: Any) -> str:
    kind = item.get("type") if isinstance(item, Mapping) else None
    if kind in _ANSWERS:
        return "call"
    return "answer" if kind in _ANSWERS.values() else ""


def _leave_out(found: list[Any]) -> None:
    """Take back the thoughts that led to a call which is left out: one is not sent without it."""
    while found and isinstance(found[-1], Mapping) and found[-1].get("type") == "reasoning":
        found.pop()
