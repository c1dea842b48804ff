"""What a hook tells before the program writes it down, as the entries that it will be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.coding_agents.claude_code.lines import TOLD, Lines, text_of
from holdfast.coding_agents.masking import masked
from holdfast.coding_agents.told import Moment, Told
from holdfast.core.conversation.frameworks.claude_entries import (
    Entry,
    made_uuid,
    result_content,
    results_in,
)

_COMMON = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")

_LOOKED_AT = 500
"""Lines at the end of a long conversation: a call that ends now was asked for not long ago."""
_REMEMBERED = 32


class ToldEntries:
    """What hooks told of the conversations that one reader of files reads."""

    def __init__(self) -> None:
        self._results: dict[str, list[Entry]] = {}

    def added(self, path: str, entries: Sequence[Any], told: Told) -> list[Any]:
        """Return entries with the call and its result, or the last message, that an event tells of.

        The program writes its lines a tenth of a second late. So a checkpoint has what it is named
        after, also where the program is ended before it wrote that down; and what was told before
        and is not written yet stays.
        """
        lines = Lines(entries[-_LOOKED_AT:])
        before = [each for each in self._results.pop(path, []) if _is_missing(lines, each)]
        if before:
            lines = Lines([*entries[-_LOOKED_AT:], *before], with_told=True)
        made: list[Entry] = []
        if told.moment is Moment.CALL and told.call_id is not None:
            made = masked(_call(lines, told, told.call_id))
        elif told.moment in (Moment.END, Moment.SUBAGENT_END) and told.last_message:
            made = masked(_last_message(lines, told, told.last_message))
        results = [each for each in (*before, *made) if results_in(each)]
        if results:
            self._results[path] = results[-_REMEMBERED:]
        return [*entries, *before, *made]


def _is_missing(lines: Lines, told: Entry) -> bool:
    """Return whether a result is not written yet that was asked for not long ago."""
    call_id = results_in(told)[0]
    return lines.result(call_id) is None and lines.call(call_id) is not None


def _call(lines: Lines, told: Told, call_id: str) -> list[Entry]:
    if lines.result(call_id) is not None:
        return []
    place = lines.call(call_id)
    asked: Entry
    if place is None:
        block = {"type": "tool_use", "id": call_id, "name": told.tool, "input": told.input}
        asked = _answer(lines, told, [block], made_uuid("call", call_id))
    else:
        asked = lines.entries[place]
    failed = told.error is not None
    content = result_content(told.error if failed else _words(told.output))
    result = {"tool_use_id": call_id, "type": "tool_result", "content": content}
    message = {"role": "user", "content": [{**result, "is_error": True} if failed else result]}
    own = _entry(asked, told, "user", message, made_uuid("result", call_id))
    return [*([asked] if place is None else []), own]


def _words(output: Any) -> Any:
    """Return what a tool gave without the program's own bookkeeping, where that is known."""
    if not isinstance(output, Mapping):
        return output
    file = output.get("file")
    if isinstance(file, Mapping) and isinstance(file.get("content"), str):  # of Read
        return file["content"]
    if isinstance(output.get("filePath"), str):  # of Write and Edit
        return f"{output['filePath']} is written."
    if isinstance(output.get("content"), list) and output.get("status") == "completed":  # of Agent
        return output["content"]
    if output.get("status") == "async_launched":
        return "It works in the background."
    return output


def _last_message(lines: Lines, told: Told, said: str) -> list[Entry]:
    place = lines.said_last(lines.last)
    before = None if place is None else lines.entries[place]
    if place is not None and lines.ends_turn(place) and text_of(lines.entries[place]) in said:
        return []
    own = made_uuid("end", told.prompt_id or "", "" if before is None else before["uuid"])
    return [_answer(lines, told, [{"type": "text", "text": said}], own)]


def _answer(lines: Lines, told: Told, content: list[Any], own: str) -> Entry:
    known = [each for each in lines.entries if each["type"] == "assistant"]
    messages = [each["message"] for each in known if isinstance(each.get("message"), dict)]
    message: dict[str, Any] = {"id": f"msg_{own.replace('-', '')[:24]}", "type": "message"}
    if messages and "model" in messages[-1]:  # the program goes on with the one that spoke last
        message["model"] = messages[-1]["model"]
    message |= {"role": "assistant", "content": content}
    message |= {"stop_reason": None, "stop_sequence": None}
    message |= {"usage": {"input_tokens": 0, "output_tokens": 0}}
    before = None if lines.last is None else lines.entries[lines.last]
    return _entry(before, told, "assistant", message, own)


def _entry(before: Entry | None, told: Told, kind: str, message: Any, own: str) -> Entry:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    common = {"sessionId": told.session} if before is None else before
    return {
        "parentUuid": None if before is None else before["uuid"],
        **{name: common[name] for name in _COMMON if name in common},
        "type": kind,
        "message": message,
        "uuid": own,
        "timestamp": now,
        TOLD: True,
    }
