"""LangGraph's threads on the command line: what waits, and what changed in their values."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver
from tests.cli.kit import Holdfast
from tests.cli.test_json import check
from tests.graphs import asking, chat, fan_out, thread


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with threads of LangGraph's; never written to."""
    path = tmp_path_factory.mktemp("threads") / "holdfast.db"
    with SyncClient.sqlite(path) as client:
        client.save("coder", session_id="no-thread", execution_state={"metadata": 1, "n": 1})
        saver = HoldfastSaver(client)
        chat().compile(checkpointer=saver).invoke({"messages": [("user", "hi")]}, thread("talk"))
        questions = asking({"q": "send it?\x1b[31m" + "!" * 500}).compile(checkpointer=saver)  # type: ignore[arg-type]
        questions.invoke({"log": ["go"]}, thread("asks"))
        sent = fan_out(lambda given: {"log": [given["name"]]}).compile(checkpointer=saver)
        sent.invoke({"log": []}, thread("sends"))
    return path


@pytest.fixture
def threads(written: Path, tmp_path: Path) -> Holdfast:
    folder = tmp_path / ".holdfast"
    folder.mkdir()
    for file in written.parent.iterdir():
        shutil.copy(file, folder)
    return Holdfast(tmp_path)


def test_pending_tells_what_is_asked_by_whom_and_how_to_answer(threads: Holdfast) -> None:
    said = threads.ok("pending")
    (asked,) = threads.json("pending")["interrupts"]

    assert said.startswith("ask of asks asks: {'q': 'send it?")
    assert "\x1b" not in said
    assert len(said.splitlines()[0]) < 140
    assert f"Command(resume={{'{asked['id']}': ANSWER}})" in said
    assert "'thread_id': 'asks'" in said
    assert (asked["session_id"], asked["node"]) == ("asks", "ask")
    assert asked["value"]["q"].startswith("send it?")
    assert threads.ok("pending", "--agent", "coder") == "no call waits for approval\n"


def test_sessions_tell_which_thread_waits(threads: Holdfast) -> None:
    lines = threads.ok("sessions").splitlines()
    listed = {
        each["session_id"]: each["interrupts"] for each in threads.json("sessions")["sessions"]
    }

    assert [line.split()[0] for line in lines if "waits for an answer" in line] == ["asks"]
    assert listed == {"asks": 1, "talk": 0, "sends": 0, "no-thread": 0}


def test_show_tells_what_a_checkpoint_waits_for(threads: Holdfast) -> None:
    assert "waits for an answer\n  ask of asks asks: {'q': 'send it?" in threads.ok("show", "asks@")
    assert len(threads.json("show", "asks@")["interrupts"]) == 1
    assert "waits for an answer" not in threads.ok("show", "asks@~1")
    assert threads.json("show", "talk@")["interrupts"] == []
    assert threads.json("show", "no-thread@")["interrupts"] == []


def test_a_diff_of_a_thread_is_about_its_values(threads: Holdfast) -> None:
    said = threads.ok("diff", "talk@", COLUMNS="160")
    sent = threads.json("diff", "sends@~1")

    assert said == "+ assistant: answer 1\n"
    assert sorted(sent["added"]) == [f"$.values.log[{number}]" for number in range(1, 5)]
    assert sent["removed"] == sent["changed"] == sent["moved"] == {}


def test_with_all_it_is_about_what_langgraph_keeps_as_well(threads: Holdfast) -> None:
    def paths(*arguments: str) -> set[str]:
        found: dict[str, Any] = threads.json("diff", *arguments)
        return {path for part in ("added", "removed", "changed") for path in found[part]}

    every, values = paths("talk@", "--all"), paths("talk@")

    assert values < every
    assert {"$.checkpoint.id", "$.parent", "$.values['branch:to:reply']"} <= every
    assert paths("talk@", "--all", "--state") == every


def test_a_diff_without_a_change_in_values_says_that_there_are_others(threads: Holdfast) -> None:
    with SyncClient.sqlite(threads.directory / ".holdfast" / "holdfast.db") as client:
        graph = chat().compile(checkpointer=HoldfastSaver(client))
        graph.update_state(thread("talk"), {"messages": []}, "reply")

    said = threads.ok("diff", "talk@")

    assert said.startswith("no changes (but ")
    assert "--all" in said


def test_fields_of_other_states_are_no_plumbing(threads: Holdfast) -> None:
    with SyncClient.sqlite(threads.directory / ".holdfast" / "holdfast.db") as client:
        client.save("coder", session_id="no-thread", execution_state={"metadata": 2, "n": 1})

    assert threads.ok("diff", "no-thread@~1", "no-thread@") == "~ $.metadata: 1 -> 2\n"


def test_what_is_said_of_threads_is_as_the_schemas_say(threads: Holdfast) -> None:
    for arguments in (["pending"], ["sessions"], ["show", "asks@"], ["diff", "talk@"]):
        check(arguments[0], threads.ok(*arguments, "--json"))
