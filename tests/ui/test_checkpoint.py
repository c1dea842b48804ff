"""One checkpoint is told of without reading its state."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import SyncClient
from tests.ui import stories
from tests.ui.kit import Api
from tests.ui.stories import AGENT, SESSION


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "one.db") as opened:
        yield opened


def test_a_checkpoint_says_what_it_holds(api: Api, told: SyncClient) -> None:
    at = stories.named(told, AGENT, SESSION, "test: failed")

    found = api.get("checkpoint", id=at)

    assert found["checkpoint"]["step_name"] == "test: failed"
    assert found["progress"] == {"done": 2, "total": 4}
    assert found["has"] == {"files": True, "effects": True, "tasks": True, "context": False}
    assert found["workspace"]["files"] == 4
    assert found["parent"] == stories.named(told, AGENT, SESSION, "test: started")
    assert [each["step_name"] for each in found["children"]] == ["end"]


@pytest.mark.parametrize("given", ["fix-42@~2", "test: failed"])
def test_it_is_named_as_on_the_command_line(api: Api, given: str) -> None:
    assert api.get("checkpoint", id=given)["checkpoint"]["step_name"] == "test: failed"


@pytest.mark.parametrize("given", ["0123456789", "' OR 1=1 --", "../../etc/passwd", "x" * 5000])
def test_a_forged_id_is_not_found(api: Api, given: str) -> None:
    assert api.refused("checkpoint", 404, id=given)["kind"] == "not_found"


def test_new_bytes_are_what_the_parent_does_not_hold(client: SyncClient) -> None:
    text = "words that differ from one another " * 4000
    first = client.save("a", execution_state={"text": text}, session_id="s")
    same = client.save("a", execution_state={"text": text}, session_id="s", parent_id=first)
    more = client.save("a", execution_state={"text": text, "n": 1}, session_id="s", parent_id=same)
    api = Api(client)

    new = [api.get("checkpoint", id=each)["sizes"]["new"] for each in (first, same, more)]

    assert new[1] == 0
    assert 0 < new[2] < new[0]


def test_the_state_is_not_read_for_it(client: SyncClient, tmp_path: Path) -> None:
    texts = [f"{number} and words that make it long" * 200 for number in range(200)]
    with client.session("a", "s", state={"texts": texts}) as run:
        run.tasks.plan("one")
        at = run.checkpoint("kept")
    with closing(sqlite3.connect(tmp_path / "one.db")) as db, db:
        sizes = db.execute("SELECT max(length(data)) FROM chunks").fetchone()[0]
        db.execute("UPDATE chunks SET data = x'00' WHERE length(data) = ?", (sizes,))
    api = Api(SyncClient.sqlite(tmp_path / "one.db"))

    assert api.get("tasks", id=at)["tasks"][0]["name"] == "one"
    assert api.refused("messages", 422, id=at)["kind"] == "damaged"


def test_tasks_say_how_they_stand(api: Api, told: SyncClient) -> None:
    tasks = api.get("tasks", id=stories.named(told, AGENT, SESSION, "test: failed"))["tasks"]

    assert [(each["name"], each["status"]) for each in tasks] == [
        ("read", "completed"),
        ("fix", "completed"),
        ("test", "failed"),
        ("publish", "pending"),
    ]


def test_effects_are_those_since_the_parent_or_all(api: Api, told: SyncClient) -> None:
    at = stories.named(told, AGENT, SESSION, "test: started")

    since = api.get("effects", id=at)
    every = api.get("effects", id=at, all=1)

    assert [each["tool"].rpartition(":")[2] for each in since["effects"]] == ["charge", "mail"]
    assert [each["standing"] for each in since["effects"]] == [True, True]
    assert [each["tool"].rpartition(":")[2] for each in every["effects"]] == [
        "mail",
        "charge",
        "look",
    ]


def test_effects_come_in_pages(api: Api, told: SyncClient) -> None:
    at = stories.named(told, AGENT, SESSION, "test: started")
    first = api.get("effects", id=at, all=1, limit=2)

    second = api.get("effects", id=at, all=1, limit=2, cursor=first["next"])

    assert (len(first["effects"]), len(second["effects"]), second["next"]) == (2, 1, None)
    assert first["total"] == 3


def test_a_call_of_unknown_end_is_told_as_such(api: Api, told: SyncClient) -> None:
    head = told.timeline("shop", "order-7")[0].checkpoint_id
    (call,) = api.get("effects", id=head)["effects"]

    assert (call["unknown"], call["unfinished"], call["running"]) == (True, True, False)


def test_a_call_that_is_being_made_is_running(client: SyncClient) -> None:
    seen = []

    def tool() -> None:
        head = client.timeline("a", "s")[0].checkpoint_id
        seen.extend(Api(client).get("effects", id=head)["effects"])

    with client.session("a", "s") as run:
        run.call(tool, effect="irreversible")

    (call,) = seen
    assert (call["status"], call["running"], call["unknown"]) == ("started", True, False)


def test_a_large_output_is_given_as_it_begins(client: SyncClient) -> None:
    with client.session("a", "s") as run:
        run.call(_much)
        at = run.checkpoint("after")

    (call,) = Api(client).get("effects", id=at)["effects"]

    assert call["output"]["$type"] == "preview"
    assert call["output"]["size"] > 10_000_000


def _much() -> str:
    return "word " * 2_000_000


def test_what_became_of_an_offer_is_told(client: SyncClient) -> None:
    saved = client.save("writer", execution_state={}, session_id="s")
    offered = client.handoff(saved, "reviewer")
    api = Api(client)
    assert api.get("checkpoint", id=saved)["offer"] is None
    assert api.get("checkpoint", id=offered)["offer"]["open"] is True

    client.reject(offered, "no time")

    offer = api.get("checkpoint", id=offered)["offer"]
    assert (offer["outcome"], offer["reason"]) == ("rejected", "no time")
