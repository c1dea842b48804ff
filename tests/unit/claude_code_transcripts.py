"""Transcripts of Claude Code, recorded and made up, and what is true of every good one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from holdfast.core.conversation.frameworks.claude_entries import calls_in, results_in

Entry = dict[str, Any]

_RECORDED = Path(__file__).parent / "transcripts" / "claude_code"


def recorded(name: str) -> list[Entry]:
    """Return the lines of a session that the real program wrote, shortened."""
    return [json.loads(line) for line in (_RECORDED / f"{name}.jsonl").read_text().splitlines()]


def calls_of(entries: Sequence[Any]) -> list[str]:
    """Return the calls of a transcript in the order in which they ended."""
    return [call for entry in entries if entry.get("uuid") for call in results_in(entry)]


def assert_whole(entries: Sequence[Any]) -> None:
    """Prove that the model can be sent it: one way to all, no call alone, no result alone."""
    placed = [entry for entry in entries if "uuid" in entry]
    uuids = [entry["uuid"] for entry in placed]
    compactions = [i for i, e in enumerate(placed) if e.get("subtype") == "compact_boundary"]
    placed = placed[compactions[-1] if compactions else 0 :]
    roots = [entry for entry in placed if entry.get("parentUuid") is None]
    assert len(roots) == (1 if placed else 0)
    seen = set(uuids[: uuids.index(placed[0]["uuid"])]) if placed else set()
    asked: list[str] = []
    answered: list[str] = []
    for entry in placed:
        assert entry.get("parentUuid") is None or entry["parentUuid"] in seen
        seen.add(entry["uuid"])
        for call in results_in(entry):
            assert call in asked
            answered.append(call)
        asked += calls_in(entry)
    assert sorted(asked) == sorted(answered)
    assert len(set(asked)) == len(asked)


# Made up


class _Writer:
    """Writes lines as the program does: each follows the one that was written before."""

    def __init__(self) -> None:
        self.lines: list[Entry] = []
        self.last: str | None = None

    def add(self, kind: str, parent: str | None = "", **more: Any) -> str:
        own = f"uuid-{len(self.lines)}"
        follows = self.last if parent == "" else parent
        self.lines.append({"parentUuid": follows, "type": kind, "uuid": own, "sessionId": "s"})
        self.lines[-1] |= {"isSidechain": False, "cwd": "/home/ada/page", **more}
        self.last = own
        return own

    def beside(self, kind: str, **more: Any) -> None:
        self.lines.append({"type": kind, "sessionId": "s", **more})


@st.composite
def transcripts(draw: st.DrawFn) -> list[Entry]:
    """Give sessions of prompts, answers and calls side by side that end in any order."""
    writer = _Writer()
    number = 0
    for turn in range(draw(st.integers(1, 3))):
        prompt_id = f"prompt-{turn}"
        writer.beside("queue-operation", operation="enqueue")
        said = {"role": "user", "content": f"prompt {turn}"}
        writer.add("user", message=said, promptId=prompt_id)
        for _ in range(draw(st.integers(0, 3))):
            if draw(st.booleans()):
                writer.add("attachment", attachment={"type": "task_reminder"})
            answer = f"msg-{number}"
            calls = [f"call-{number}-{i}" for i in range(draw(st.integers(1, 4)))]
            number += 1
            asked = [_answer(writer, answer, {"type": "text", "text": "Now."})]
            asked += [_answer(writer, answer, _call(each)) for each in calls]
            for i in draw(st.permutations(range(len(calls)))):
                block = {"type": "tool_result", "tool_use_id": calls[i], "content": "done"}
                result = {"role": "user", "content": [block]}
                writer.add("user", asked[i + 1], message=result, promptId=prompt_id)
        _answer(writer, f"end-{turn}", {"type": "text", "text": f"Done {turn}."})
        writer.beside("last-prompt", leafUuid=writer.last)
        if draw(st.integers(0, 5)) == 0:
            compacted = {"subtype": "compact_boundary", "logicalParentUuid": writer.last}
            writer.add("system", None, **compacted)
            summary = {"role": "user", "content": "What was said, in short."}
            writer.add("user", message=summary, isCompactSummary=True)
    return writer.lines


def _call(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "ls"}}


def _answer(writer: _Writer, answer: str, block: dict[str, Any]) -> str:
    message = {"id": answer, "role": "assistant", "model": "m", "content": [block]}
    return writer.add("assistant", message=message)
