"""What is kept of a session of an agent, as plain data, and how it goes on; nothing is asked here.

``messages`` is all that was said so far, ``system`` the agent's instructions, ``session`` the
framework's AgentSession. While a run is under way there is also ``turn``: where its messages
begin, how many of them are its input, and the model's answers, each with its place.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.conversation.settling import INTERRUPTED
from holdfast.errors import AdapterError

State = dict[str, Any]
Native = dict[str, Any]


def checked(state: Any, session_id: str) -> State:
    """Return the state of an agent's session; an error if it holds something else."""
    if state is None or state == {}:
        return {"messages": []}
    if not isinstance(state, dict) or not _is_whole(state):
        raise AdapterError(
            f"session {session_id!r} does not hold an agent's messages: it is damaged, or of "
            "another program; use another session_id, or go back with holdfast rollback"
        )
    if "checkpoint" in state:
        raise AdapterError(
            f"session {session_id!r} holds the checkpoints of a workflow, not an agent's "
            "messages: use another session_id for the agent"
        )
    return {**state, "messages": state.get("messages", [])}


def _is_whole(state: State) -> bool:
    messages, turn = state.get("messages", []), state.get("turn")
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        return False
    if turn is None:
        return True
    if not isinstance(turn, dict) or not isinstance(turn.get("failures"), dict):
        return False
    begins, responses = (turn.get("start"), turn.get("inputs")), turn.get("responses")
    return (
        all(type(each) is int and 0 <= each <= len(messages) for each in begins)
        and isinstance(responses, list)
        and all(_is_answer(each) for each in responses)
    )


def _is_answer(answer: Any) -> bool:
    return (
        isinstance(answer, dict)
        and type(answer.get("at")) is int
        and type(answer.get("count")) is int
        and isinstance(answer.get("fields"), dict)
    )


def begun(state: State, inputs: list[Native]) -> None:
    """Begin a turn with its input."""
    state["turn"] = {
        "start": len(state["messages"]),
        "inputs": len(inputs),
        "responses": [],
        "failures": {},
    }
    state["messages"] = [*state["messages"], *inputs]


def inputs_of(state: State) -> list[Native]:
    """Return the input of the turn that is under way."""
    turn = state["turn"]
    found: list[Native] = state["messages"][turn["start"] : turn["start"] + turn["inputs"]]
    return found


def is_same_input(state: State, inputs: Sequence[Native]) -> bool:
    """Return whether the turn that is under way was begun with this input, or none is given."""
    return not inputs or list(map(_said, inputs)) == list(map(_said, inputs_of(state)))


def _said(message: Mapping[str, Any]) -> str:
    """Return who said what, without ids and names that differ each time."""
    return json.dumps([message.get("role"), message.get("contents")], sort_keys=True)


def tail(state: State) -> int:
    """Return where the messages begin that followed the model's last answer of the turn."""
    turn = state["turn"]
    if not turn["responses"]:
        return int(turn["start"])
    last = turn["responses"][-1]
    return int(last["at"] + last["count"])


def following(state: State, number: int) -> list[Native]:
    """Return the messages that followed an answer of the turn, up to the next one."""
    responses = state["turn"]["responses"]
    begin = responses[number]["at"] + responses[number]["count"]
    end = responses[number + 1]["at"] if number + 1 < len(responses) else None
    found: list[Native] = state["messages"][begin:end]
    return found


def unseen(state: State, given: Sequence[Native], *, is_partial: bool) -> list[Native]:
    """Return those of the messages sent to a model that are not kept yet.

    ``is_partial``: only what came since the last answer is sent, not the whole turn.
    """
    known = Counter(map(_identity, state["messages"][_known_from(state, is_partial) :]))
    found = []
    for message in given:
        who = _identity(message)
        if known[who]:
            known[who] -= 1
        elif message.get("role") != "assistant":  # answers are kept when they come
            found.append(message)
    return found


def _known_from(state: State, is_partial: bool) -> int:
    return tail(state) if is_partial else int(state["turn"]["start"])


def _identity(message: Mapping[str, Any]) -> Any:
    """Return what a message is told by: the calls that it answers, else what it says."""
    answered = [each.get("call_id") for each in results_in([message])]
    return ("answers", *answered) if answered else _said(message)


def answered(state: State, messages: list[Native], fields: Mapping[str, Any]) -> None:
    """Keep an answer of the model."""
    at = len(state["messages"])
    state["messages"] = [*state["messages"], *messages]
    answer = {"at": at, "count": len(messages), "fields": dict(fields)}
    state["turn"]["responses"] = [*state["turn"]["responses"], answer]


def ended(state: State, messages: list[Native]) -> None:
    """End a turn whose run gave these messages."""
    turn = state.pop("turn")
    begin = turn["start"] + turn["inputs"]
    kept = state["messages"][begin:]
    if any(message.get("role") in ("user", "system") for message in kept):  # put in on the way
        known = Counter(map(_identity, kept))
        more = [each for each in messages if not known[_identity(each)]]
        state["messages"] = [*state["messages"], *more]
    else:
        state["messages"] = [*state["messages"][:begin], *messages]


def left(state: State, output_of: Callable[[str], Any]) -> None:
    """Leave a turn that did not end, since something else is asked: no call stays without answer.

    ``output_of`` gives the result of a call that was journaled, or None.
    """
    begin = tail(state)
    given = [each.get("call_id") for each in results_in(state["messages"][begin:])]
    asked = list(calls_in(state["messages"][_last_answer(state) : begin]))
    if not state["turn"]["responses"] and _is_decision(inputs_of(state)):
        asked = _last_calls(state["messages"][:begin])
    state.pop("turn")
    missing = [call for call in asked if call.get("call_id") not in given]
    if missing:
        results = [output_of(str(call["call_id"])) or interrupted(call) for call in missing]
        state["messages"] = [*state["messages"], _tool_message(results)]


def _last_answer(state: State) -> int:
    responses = state["turn"]["responses"]
    return int(responses[-1]["at"]) if responses else tail(state)


def _is_decision(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether messages answer a question of approval."""
    return any(each.get("type") == "function_approval_response" for each in _contents(messages))


def _last_calls(messages: Sequence[Native]) -> list[Mapping[str, Any]]:
    """Return the calls of the last answer of a model that made some."""
    return next(filter(None, (list(calls_in([each])) for each in reversed(messages))), [])


def calls_in(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Return the calls in messages that the framework makes itself."""
    for content in _contents(messages):
        is_elsewhere = content.get("hosted") or content.get("informational_only")
        if content.get("type") == "function_call" and not is_elsewhere:
            yield content


def results_in(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Return the results of calls in messages."""
    return (each for each in _contents(messages) if each.get("type") == "function_result")


def _contents(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        for content in message.get("contents") or ():
            if isinstance(content, Mapping):
                yield content


def interrupted(call: Mapping[str, Any]) -> Native:
    """Return what is said of a call that did not come to its end."""
    return {
        "type": "function_result",
        "call_id": call.get("call_id"),
        "result": INTERRUPTED,
        "items": [{"type": "text", "text": INTERRUPTED}],
        "exception": "interrupted",
    }


def _tool_message(results: list[Native]) -> Native:
    return {"type": "message", "role": "tool", "contents": results, "additional_properties": {}}


def repaired(messages: Sequence[Native]) -> list[Native]:
    """Return messages in which every call has its answer, as models take them.

    A call that a crash left behind is dropped where it was made again, and else answered.
    An answer whose question of approval is open stays as it is, with all its calls: the framework
    runs them together once the question is answered.
    """
    made: list[Native] = []
    for i, message in enumerate(messages):
        calls = list(calls_in([message]))
        later = messages[i + 1 :] if calls else []
        after = _until_asked_again(later)
        results = {each.get("call_id") for each in results_in(after)}
        missing = [call for call in calls if call.get("call_id") not in results]
        waiting = _questioned([message, *after])
        if not missing or any(call.get("call_id") in waiting for call in missing):
            made.append(message)
            continue
        again = {call.get("call_id") for call in calls_in(later)}
        dropped = [call for call in missing if call.get("call_id") in again]
        rest = [call for call in missing if call not in dropped]
        contents = [each for each in message["contents"] if each not in dropped]
        if any(each.get("type") != "text" or each.get("text") for each in contents):
            made.append({**message, "contents": contents})
        if rest:
            made.append(_tool_message([interrupted(call) for call in rest]))
    return made


def _questioned(messages: Sequence[Mapping[str, Any]]) -> set[Any]:
    """Return the calls that questions of approval in messages are about."""
    return {
        (each.get("function_call") or {}).get("call_id")
        for each in _contents(messages)
        if each.get("type") == "function_approval_request"
    }


def _until_asked_again(messages: Sequence[Native]) -> list[Native]:
    """Return the messages up to the next answer of a model that calls something."""
    found = []
    for message in messages:
        if next(iter(calls_in([message])), None) is not None:
            break
        found.append(message)
    return found


def news(existing: Sequence[Native], given: Sequence[Native]) -> list[Native]:
    """Return what of the given messages is not at the end of the existing ones already."""
    known, said = list(map(_said, existing)), list(map(_said, given))
    for overlap in range(min(len(known), len(said)), 0, -1):
        if known[-overlap:] == said[:overlap]:
            is_asked_again = overlap == 1 and existing[-1].get("role") == "user"
            return list(given if is_asked_again else given[overlap:])
    return list(given)
