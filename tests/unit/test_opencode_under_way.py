"""Which call of opencode runs, found in its conversation."""

from typing import Any

from holdfast.coding_agents.opencode.entries import Conversation
from holdfast.coding_agents.opencode.under_way import call_under_way


def call(number: int, status: str, name: str, tool: str = "holdfast_checkpoint") -> dict[str, Any]:
    state = {"status": status, "input": {"name": name}}
    part = {"type": "tool", "tool": tool, "callID": f"call_{number}", "state": state}
    return {**part, "id": f"prt_{number}", "messageID": "msg_1", "sessionID": "ses_1"}


def under_way(*parts: dict[str, Any]) -> str | None:
    info = {"id": "msg_1", "role": "assistant", "sessionID": "ses_1"}
    entries = Conversation({"id": "ses_1"}, [{"info": info, "parts": list(parts)}]).entries
    return call_under_way(entries, "holdfast_checkpoint", {"name": "it works"})


def test_the_newest_call_that_runs_with_these_arguments_is_the_one() -> None:
    assert under_way(call(1, "running", "it works"), call(2, "pending", "it works")) == "call_2"


def test_a_call_that_ended_or_asks_for_another_thing_is_not() -> None:
    ended = [call(1, "completed", "it works"), call(2, "error", "it works")]
    others = [call(3, "running", "another"), call(4, "running", "it works", "bash")]

    assert under_way(*ended, *others) is None
    assert under_way({**call(5, "running", "it works"), "state": "running"}) is None
    assert under_way({**call(6, "running", "it works"), "callID": 6}) is None
    assert under_way() is None
