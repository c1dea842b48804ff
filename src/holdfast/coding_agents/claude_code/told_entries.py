"""What a hook tells before the program writes it down, as the entry that it will be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.coding_agents.claude_code.lines import TOLD, Lines
from holdfast.coding_agents.masking import masked
from holdfast.coding_agents.told import Moment, Told
from holdfast.core.conversation.frameworks.claude_entries import Entry, made_uuid, result_content

_COMMON = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")


def with_told(entries: Sequence[Any], told: Told) -> list[Any]:
    """Return entries with the result, or the last message, of which an event tells.

    The program writes its lines a tenth of a second late. So a checkpoint has what it is named
    after, also where the program is ended before it wrote that down.
    """
    lines = Lines(entries)
    made = None
    if told.moment is Moment.CALL and told.call_id is not None:
        made = _result(lines, told, told.call_id)
    elif told.moment in (Moment.END, Moment.SUBAGENT_END) and told.last_message:
        made = _last_message(lines, told.last_message)
    return list(entries) if made is None else [*entries, masked(made)]


def _result(lines: Lines, told: Told, call_id: str) -> dict[str, Any] | None:
    place = lines.call(call_id)
    if place is None or lines.result(call_id) is not None:
        return None
    failed = told.error is not None
    content = result_content(told.error if failed else told.output)
    block = {"tool_use_id": call_id, "type": "tool_result", "content": content}
    message = {"role": "user", "content": [{**block, "is_error": True} if failed else block]}
    asked = lines.entries[place]
    own = _entry(asked, "user", message, made_uuid("result", call_id))
    return {**own, "sourceToolAssistantUUID": asked["uuid"]}


def _last_message(lines: Lines, said: str) -> dict[str, Any] | None:
    place = lines.said_last(lines.last)
    if lines.last is None or place is None or lines.entries[place]["type"] != "user":
        return None
    models = [each["message"].get("model") for each in lines.entries if _is_answer(each)]
    before = lines.entries[lines.last]
    own = made_uuid("end", before["uuid"])
    message: dict[str, Any] = {"id": f"msg_{own.replace('-', '')[:24]}", "type": "message"}
    message |= {"role": "assistant", "content": [{"type": "text", "text": said}]}
    message |= {"stop_reason": "end_turn", "stop_sequence": None}
    message |= {"usage": {"input_tokens": 0, "output_tokens": 0}}
    if models:  # the program goes on with the model that said something last
        message["model"] = models[-1]
    return _entry(before, "assistant", message, own)


def _is_answer(entry: Entry) -> bool:
    return entry["type"] == "assistant" and isinstance(entry.get("message"), dict)


def _entry(before: Entry, kind: str, message: Any, own: str) -> dict[str, Any]:
    return {
        "parentUuid": before["uuid"],
        **{name: before[name] for name in _COMMON if name in before},
        "type": kind,
        "message": message,
        "uuid": own,
        **({"timestamp": before["timestamp"]} if "timestamp" in before else {}),
        TOLD: True,
    }
