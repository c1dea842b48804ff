"""What Codex tells its hooks: names of steps, failures, subagents."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.coding_agents.codex.program import PROGRAM
from holdfast.coding_agents.events import read
from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.naming import step_name
from holdfast.coding_agents.told import Moment, Told

THREAD = "01a1ee73-7b53-7922-afe6-b0fe6eabe6dd"
HELPER = "01a1ee76-2004-7421-ac69-3146af5ed09f"


def told(event: str = "PostToolUse", **more: Any) -> Told:
    data = {"session_id": THREAD, "hook_event_name": event, "cwd": "/project", **more}
    return read(data, PROGRAM)


def patch(*lines: str) -> dict[str, str]:
    return {"command": "\n".join(("*** Begin Patch", *lines, "*** End Patch", ""))}


def name(event: str = "PostToolUse", **more: Any) -> str:
    return step_name(told(event, **more), PROGRAM)


def test_a_patch_is_called_by_the_files_it_changes() -> None:
    one = patch("*** Add File: hello.txt", "+hi")
    three = patch(
        *("*** Update File: /project/a.txt", "@@", "-x", "+*** Add File: not-this.txt"),
        *("*** Delete File: b.txt", "*** Update File: c.txt", "*** Move to: d.txt", "@@", "-1"),
    )

    assert name(tool_name="apply_patch", tool_input=one) == "patch: hello.txt"
    assert name(tool_name="apply_patch", tool_input=three) == "patch: a.txt and 2 more"
    assert name("PreToolUse", tool_name="apply_patch", tool_input=one) == "before patch: hello.txt"


@pytest.mark.parametrize("given", [None, 7, {}, {"command": 5}, {"command": "no patch"}])
def test_a_patch_that_is_none_is_called_by_its_tool(given: Any) -> None:
    assert name(tool_name="apply_patch", tool_input=given).startswith("apply_patch")


def test_subagents_are_called_by_what_they_were_asked() -> None:
    asked = {"message": "Write the tests\nand run them"}

    assert name(tool_name="spawn_agent", tool_input=asked) == "subagent: Write the tests"
    assert name(tool_name="multi_agent_v1spawn_agent", tool_input=asked) == (
        "subagent: Write the tests"
    )
    assert name(tool_name="multi_agent_v1wait_agent", tool_input={"targets": []}) == (
        "subagents waited for"
    )
    assert name(tool_name="multi_agent_v1send_input", tool_input={}) == "send_input"
    assert name(tool_name="collaborationspawn_agent", tool_input=asked) == (
        "subagent: Write the tests"
    )
    assert name(tool_name="collaboration", tool_input={}) == "collaboration"


def test_prompts_ends_and_interruptions_are_told_apart() -> None:
    assert name("UserPromptSubmit", prompt="Make it\nbetter") == "you: Make it"
    assert name("Stop", last_assistant_message="Done.") == "agent: Done."
    assert name("Interrupt") == "interrupted"
    assert told("Interrupt").moment is Moment.END


def test_the_end_of_a_subagent_names_its_own_transcript() -> None:
    end = told(
        "SubagentStop",
        agent_id=HELPER,
        agent_type="default",
        transcript_path="/rollouts/parent.jsonl",
        agent_transcript_path="/rollouts/helper.jsonl",
    )
    call = told(agent_id=HELPER, transcript_path="/rollouts/helper.jsonl")

    assert (end.moment, end.subagent_id) == (Moment.SUBAGENT_END, HELPER)
    assert end.transcript == call.transcript == "/rollouts/helper.jsonl"


def completed(item: Any) -> dict[str, Any]:
    return {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}


def failed_call(folder: Path, *lines: Any) -> Told:
    file = folder / "rollout.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    call = told(
        tool_name="Bash",
        tool_input={"command": "npm test"},
        tool_response="bad\n",
        tool_use_id="call_3",
        transcript_path=str(file),
    )
    return PROGRAM.completed(call, JsonLines())


def test_the_exit_code_is_read_from_the_rollout(tmp_path: Path) -> None:
    other = {"type": "CommandExecution", "id": "call_2", "status": "completed", "exit_code": 0}
    mine = {**other, "id": "call_3", "status": "failed", "exit_code": 3}

    call = failed_call(tmp_path, completed(other), completed(mine), completed(other))

    assert step_name(call, PROGRAM) == "Bash npm test (failed, 3)"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"id": "call_3", "status": "failed"}, "Bash npm test (failed)"),
        ({"id": "call_3", "status": "declined", "exit_code": None}, "Bash npm test (failed)"),
        ({"id": "call_3", "status": "completed", "exit_code": 0}, "Bash npm test"),
        ({"id": "call_4", "status": "failed", "exit_code": 3}, "Bash npm test"),
        ("call_3", "Bash npm test"),
        (None, "Bash npm test"),
    ],
)
def test_a_call_failed_only_if_the_rollout_says_so(
    tmp_path: Path, item: Any, expected: str
) -> None:
    assert step_name(failed_call(tmp_path, completed(item)), PROGRAM) == expected


@pytest.mark.parametrize("line", [7, None, [], "text", {}, {"type": 5}, {"payload": {}}])
def test_lines_that_are_no_records_are_passed_over(tmp_path: Path, line: Any) -> None:
    assert step_name(failed_call(tmp_path, line), PROGRAM) == "Bash npm test"


def test_a_rollout_that_is_not_there_says_nothing() -> None:
    call = told(tool_name="Bash", tool_use_id="call_3", transcript_path="/nowhere/rollout.jsonl")

    assert PROGRAM.completed(call, JsonLines()) == call
