"""holdfast show, diff, replay, tasks and effects: what happened, without the program's classes."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.core.conversation.said import messages_in
from tests.cli.kit import Holdfast, golden, normal

MESSAGES = """
import sys
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from holdfast import SyncClient
with SyncClient.sqlite(sys.argv[1]) as client:
    call = {"name": "search", "args": {"q": "kelp"}, "id": "1"}
    answer = ToolMessage("ok", tool_call_id="1")
    said = [HumanMessage("find it"), AIMessage("", tool_calls=[call]), answer]
    client.save("chat", execution_state={"messages": said}, session_id="chat")
"""


def test_a_checkpoint_is_shown_whole(project: Holdfast) -> None:
    golden("show", normal(project.ok("show", "test: failed", "--session", "fix-42")))


def test_a_class_that_is_not_here_is_shown_by_its_fields(project: Holdfast) -> None:
    shown = project.json("show", "fix-42@")

    assert shown["state"]["ticket"]["value"][0] == "tests.cli.story:Ticket"
    assert project.ok("show", "fix-42@", "--state", "ticket.number") == "42\n"


@pytest.mark.parametrize(
    "path", ["messages[0].content", "$.messages[0].content", "messages[-3]['content']"]
)
def test_a_part_of_the_state_is_found_by_its_path(project: Holdfast, path: str) -> None:
    assert project.ok("show", "fix-42@", "--state", path) == '"The tests fail."\n'
    assert project.json("show", "fix-42@", "--state", path)["value"] == "The tests fail."


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("mesages", 3, "did you mean messages?"),
        ("messages[9]", 3, "has 3 items and no 9"),
        ("fixed.x", 3, "$.fixed is bool and has no 'x'"),
        ("[a]", 2, "is no path"),
    ],
)
def test_a_path_that_leads_nowhere_says_so(
    project: Holdfast, path: str, code: int, message: str
) -> None:
    done = project("show", "fix-42@", "--state", path)

    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_the_messages_of_langchain_read_well_without_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", MESSAGES, str(tmp_path / "chat.db")], check=True)

    shown = Holdfast(tmp_path).ok("show", "--messages", "--store", "chat.db")

    assert shown == 'user: find it\nassistant:\n  -> search({"q": "kelp"})\ntool: ok\n'


USE = {"type": "tool_use", "name": "t", "input": {}}
CALL = {"function": {"name": "t", "arguments": "{}"}}
SHAPES = {
    "openai": ([{"role": "user", "content": "hi"}], ["user: hi"]),
    "langgraph": (
        {"channel_values": {"messages": [{"type": "human", "content": "hi"}]}},
        ["user: hi"],
    ),
    "anthropic": (
        {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a"}, USE]}]},
        ["assistant: a t({})"],
    ),
    "openai calls": (
        {"messages": [{"role": "assistant", "content": None, "tool_calls": [CALL]}]},
        ["assistant:  t({})"],
    ),
    "pydantic ai": (
        {"x": [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}]},
        ["user: hi"],
    ),
    "google": (
        [{"role": "model", "parts": [{"text": "a"}, {"function_call": {"name": "t"}}]}],
        ["assistant: a t({})"],
    ),
    "responses": (
        [
            {"type": "function_call", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "output": "o"},
        ],
        ["assistant:  t({})", "tool: o"],
    ),
    "none": ({"numbers": [1, 2], "name": "x"}, []),
}


@pytest.mark.parametrize(("state", "lines"), SHAPES.values(), ids=SHAPES)
def test_messages_are_recognised_by_their_shape(state: object, lines: list[str]) -> None:
    shown = [
        f"{m.role}: {m.text}" + "".join(f" {c.name}({c.arguments})" for c in m.calls)
        for m in messages_in("custom", state)
    ]

    assert shown == lines


def test_a_diff_of_two_checkpoints(project: Holdfast) -> None:
    golden("diff", normal(project.ok("diff", "fix-42@", "bolder@", COLUMNS="100")))


def test_a_diff_of_one_is_with_the_checkpoint_before(project: Holdfast) -> None:
    shown = project.json("diff", "fix: completed", "--session", "fix-42", "--state")

    assert shown["added"] == {"$.fixed": True}
    assert (shown["removed"], shown["changed"], shown["moved"]) == ({}, {}, {})
    assert (
        project.ok("diff", "fix: completed", "--session", "fix-42", "--state")
        == "+ $.fixed: True\n"
    )


def test_a_diff_shows_the_part_that_is_asked_for(project: Holdfast) -> None:
    shown = project.json("diff", "fix: completed", "--session", "fix-42", "--tasks")

    assert "tasks[1].status" in shown["changed"]
    assert "$.fixed" not in shown["added"]


def test_the_first_checkpoint_has_nothing_before_it(project: Holdfast) -> None:
    done = project("diff", "start", "--session", "fix-42")

    assert done.code == 3
    assert "is the first" in done.err


def test_values_that_json_has_no_word_for_say_what_they_are(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        client.save(
            "a", execution_state={"pair": (1, b"\xff"), "odd": float("nan")}, session_id="s"
        )

    shown = holdfast.json("show", "--state")["value"]

    assert shown["pair"]["$type"] == "tuple"
    assert shown["odd"] == {"$type": "float", "value": "nan"}


def test_a_replay_tells_calls_and_changes(project: Holdfast) -> None:
    golden("replay", normal(project.ok("replay", "fix-42", "--color", "never")))


def test_the_plan_is_shown_with_what_went_wrong(project: Holdfast) -> None:
    assert project.ok("tasks", "fix-42@") == (
        "[################........] 2/3 fix-42\n"
        "[x] read\n[x] fix\n[!] test  ValueError: 2 tests fail\n"
    )


def test_calls_are_shown_with_what_they_returned(project: Holdfast) -> None:
    assert "done     read          look('main.py') -> 'the text of main.py'" in project.ok(
        "effects", "fix-42"
    )
    assert project.json("effects", "fix-42", "--standing")["effects"] == []
