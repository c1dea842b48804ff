"""What waits for a person is listed, whatever else is damaged."""

import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast import SyncClient
from tests.ui import stories
from tests.ui.kit import Api


def test_all_that_waits_is_listed(api: Api) -> None:
    found = api.get("inbox")

    assert [each["args"] for each in found["approvals"]] == [["everybody"]]
    assert [each["session_id"] for each in found["unknown"]] == ["order-7"]
    assert [each["to_agent"] for each in found["offers"]] == ["reviewer"]
    assert (found["interrupts"], found["total"], found["damaged"]) == ([], 3, [])


def test_what_was_decided_is_not_listed_any_more(api: Api) -> None:
    found = api.get("inbox")
    api.post("approve", id=found["approvals"][0]["id"])
    api.post("resolve", id=found["unknown"][0]["id"], outcome="failed", reason="it was cut off")
    api.post("accept-offer", id=found["offers"][0]["checkpoint_id"])

    assert api.get("inbox")["total"] == 0


def test_a_graph_that_asks_is_listed_with_how_to_answer(tmp_path: Path) -> None:
    from langgraph.types import interrupt

    from holdfast.adapters.langgraph import HoldfastSaver
    from tests.graphs import Log, new_graph, thread

    def ask(state: Log) -> Log:
        return {"log": [interrupt("which one?")]}

    graph = new_graph(Log).add_node(ask).set_entry_point("ask")
    with SyncClient.sqlite(tmp_path / "graph.db") as client:
        graph.compile(checkpointer=HoldfastSaver(client)).invoke({}, thread("1"))
        api = Api(client)
        (asked,) = api.get("inbox")["interrupts"]
        (session,) = api.get("sessions", condition="waiting")["sessions"]

    assert (asked["value"], asked["node"]) == ("which one?", "ask")
    assert session["interrupts"] == 1


def test_arguments_to_decide_of_are_given_whole(tmp_path: Path) -> None:
    to = "somebody, " * 10_000
    with SyncClient.sqlite(tmp_path / "ask.db") as client:
        stories.ask(client, "news", to)

        (question,) = Api(client).get("inbox")["approvals"]

    assert question["args"] == [to]


def test_damage_is_told_and_hides_nothing_of_another_kind(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "hurt.db") as client:
        stories.ask(client, "news")
        stories.lose(client, "order-7")
    with closing(sqlite3.connect(tmp_path / "hurt.db")) as db, db:
        db.execute("UPDATE notes SET body = x'c1' WHERE scope = '/approvals'")
    with SyncClient.sqlite(tmp_path / "hurt.db") as client:
        found = Api(client).get("inbox")

    assert [each["session_id"] for each in found["unknown"]] == ["order-7"]
    assert found["approvals"] == []
    assert len(found["damaged"]) == 1
