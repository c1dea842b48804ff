"""Sessions of frameworks on the command line: going on in another, and what is said in them."""

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast

STATE = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}


@pytest.fixture
def begun(holdfast: Holdfast) -> Holdfast:
    """A store with one session."""
    holdfast.ok("init")
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        client.save("mine", execution_state=STATE, session_id="s")
    return holdfast


def test_a_session_goes_on_in_another_framework(begun: Holdfast) -> None:
    said = begun.ok("continue", "strands", "s@", "--as", "there", "--agent", "you")
    told = begun.json("continue", "langgraph", "s@", "--as", "graph")

    assert said.startswith("session you/there goes on from ")
    assert (told["framework"], told["lost"], told["session_id"]) == ("langgraph", [], "graph")
    assert begun.ok("show", "there@", "--messages") == "user: hi\nassistant: ho\n"
    assert "goes on from s@" in begun.ok("log", "there", COLUMNS="120")


def test_what_is_lost_is_said(begun: Holdfast) -> None:
    with SyncClient.sqlite(begun.directory / ".holdfast" / "holdfast.db") as client:
        prompt = {"role": "system", "content": "be brief\x1b[31m"}
        client.save(
            "mine", execution_state={"messages": [prompt, *STATE["messages"]]}, session_id="p"
        )

    assert "  lost: $.system_instructions: " in begun.ok("continue", "langgraph", "p@")


def test_mistakes_are_told(begun: Holdfast) -> None:
    assert "framework is one of langgraph" in begun("continue", "cobol", "s@").err
    assert "--tool is OLD=NEW" in begun("continue", "strands", "s@", "--tool", "x").err
    assert (
        "has checkpoints already"
        in begun("continue", "strands", "s@", "--as", "s", "--agent", "mine").err
    )


def test_a_diff_tells_messages_and_no_plumbing(begun: Holdfast) -> None:
    with SyncClient.sqlite(begun.directory / ".holdfast" / "holdfast.db") as client:
        first = client.continue_in(client.latest("mine", "s").checkpoint_id, "openai_agents")  # type: ignore[union-attr]
        kept = client.restore(first.checkpoint_id)
        more = {"role": "user", "content": "and \x1b[31mthen?"}
        state = {**kept.execution_state, "turn": 7}
        state["items"] = [*kept.execution_state["items"], more]
        client.save(first.agent_id, "openai_agents", state, session_id=first.session_id)
    where = f"{first.session_id}@"

    assert "and " in begun.ok("diff", where)
    assert "turn" not in begun.ok("diff", where)
    assert "\x1b" not in begun.ok("diff", where)
    assert "$.turn" in begun.ok("diff", where, "--all")
    told = begun.json("diff", where)
    assert [message["role"] for message in told["messages"]["added"]] == ["user"]
    assert begun.json("log", first.session_id, "--messages")["checkpoints"][0]["messages"]["added"]
    assert "user: and " in begun.ok("log", first.session_id, "--messages")
