"""timeline, find, sessions, ancestors and tree: what is listed, in which order, at what cost."""

import re
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import CheckpointNotFoundError, InvalidArgumentError, SyncClient
from tests.acceptance.conftest import OpenClient

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


def save_steps(client: SyncClient, count: int, session_id: str = "s", **fields: Any) -> list[str]:
    return [
        client.save(
            "coder", execution_state={"i": i}, session_id=session_id, step_index=i, **fields
        )
        for i in range(count)
    ]


def ids(infos: list[Any]) -> list[str]:
    return [info.checkpoint_id for info in infos]


def test_a_timeline_is_newest_first(client: SyncClient) -> None:
    saved = save_steps(client, 4)
    save_steps(client, 2, "other")

    timeline = client.timeline("coder", "s")

    assert ids(timeline) == saved[::-1]
    assert [info.step_index for info in timeline] == [3, 2, 1, 0]


def test_a_timeline_shows_fifty_unless_told_otherwise(client: SyncClient) -> None:
    saved = save_steps(client, 55)

    assert ids(client.timeline("coder", "s")) == saved[:4:-1]
    assert ids(client.timeline("coder", "s", limit=2)) == saved[:-3:-1]
    assert ids(client.timeline("coder", "s", limit=None)) == saved[::-1]


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_a_timeline_is_read_page_by_page(client: SyncClient, limit: int) -> None:
    saved = save_steps(client, 7)

    pages = ids(client.timeline("coder", "s", limit=limit))
    while page := client.timeline("coder", "s", limit=limit, before=pages[-1]):
        pages += ids(page)

    assert pages == saved[::-1]


def test_a_page_after_a_checkpoint_that_is_gone_is_an_error_not_an_end(client: SyncClient) -> None:
    saved = save_steps(client, 3)
    client.expire(saved[1])

    with pytest.raises(CheckpointNotFoundError, match="list from the newest again"):
        client.timeline("coder", "s", before=saved[1])


def test_a_timeline_brings_states_where_they_are_asked_for(client: SyncClient) -> None:
    save_steps(client, 3)

    timeline = client.timeline("coder", "s", with_state=True)

    assert [checkpoint.execution_state for checkpoint in timeline] == [{"i": i} for i in (2, 1, 0)]


def test_listings_read_no_payload(client: SyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = save_steps(client, 3)

    def refuse(*_: Any) -> None:
        raise AssertionError("a payload was read")

    monkeypatch.setattr(client.store, "load", refuse)
    monkeypatch.setattr(client.store, "fetch", refuse)

    assert ids(client.timeline("coder", "s")) == saved[::-1]
    assert ids(client.find()) == saved[::-1]
    assert client.sessions()[0].head.checkpoint_id == saved[-1]
    assert ids(client.ancestors(saved[-1])) == saved[-2::-1]
    assert len(client.tree("coder", "s")) == 3


def test_listings_of_sqlite_do_without_any_payload(open_client: OpenClient, tmp_path: Path) -> None:
    client = open_client(f"sqlite:///{tmp_path}/holdfast.db")
    saved = save_steps(client, 3)
    client.close()
    db = sqlite3.connect(tmp_path / "holdfast.db")
    db.execute("DELETE FROM chunks")
    db.commit()
    db.close()

    again = open_client(f"sqlite:///{tmp_path}/holdfast.db")

    assert ids(again.timeline("coder", "s")) == saved[::-1]
    assert ids(again.ancestors(saved[-1])) == saved[-2::-1]
    assert again.sessions()[0].checkpoints == 3


def test_checkpoints_are_found_by_what_is_known_of_them(client: SyncClient) -> None:
    first = client.save("coder", session_id="s", branch="main", tries=1)
    second = client.save("coder", session_id="t", branch="main", tries=True)
    offered = client.handoff(second, "reviewer")
    third = client.save("tester", session_id="s", branch="dev")

    assert ids(client.find()) == [third, offered, second, first]
    assert ids(client.find(agent_id="coder")) == [offered, second, first]
    assert ids(client.find(session_id="s")) == [third, first]
    assert ids(client.find(parent_id=second)) == [offered]
    assert ids(client.find(handoff_target="reviewer")) == [offered]
    assert ids(client.find(tags={"branch": "main"})) == [offered, second, first]
    assert ids(client.find(tags={"branch": "main", "tries": 1})) == [first]
    assert ids(client.find(limit=2)) == [third, offered]
    assert ids(client.find(before=offered)) == [second, first]
    assert client.find(agent_id="nobody") == []


def test_checkpoints_are_found_by_time(client: SyncClient) -> None:
    first, second = (client.restore(i) for i in save_steps(client, 2))

    assert ids(client.find(since=second.created_at)) == [second.checkpoint_id]
    assert ids(client.find(until=second.created_at)) == [first.checkpoint_id]
    assert client.find(since=datetime.now(UTC) + timedelta(days=1)) == []
    assert len(client.find(since=datetime.min.replace(tzinfo=UTC))) == 2
    assert len(client.find(until=datetime.max.replace(tzinfo=UTC))) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"limit": 0}, "limit is a number from 1"),
        ({"limit": True}, "limit is a number from 1"),
        ({"limit": "3"}, "limit is a number from 1"),
        ({"since": datetime(2024, 1, 1)}, "time zone"),
        ({"until": "yesterday"}, "time zone"),
        ({"tags": {1: 2}}, "names of tags are strings"),
        ({"tags": 5}, "tags"),
        ({"tags": ["a"]}, "tags"),
        ({"agent_id": 5}, "agent_id is a string"),
        ({"session_id": ""}, "session_id is empty"),
        ({"handoff_target": b"x"}, "handoff_target is a string"),
        ({"parent_id": 7}, "checkpoint_id is a string"),
    ],
    ids=str,
)
def test_a_question_that_makes_no_sense_is_refused(
    client: SyncClient, arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint):
        client.find(**arguments)


def test_what_a_listing_is_to_begin_after_has_to_be_there(client: SyncClient) -> None:
    with pytest.raises(CheckpointNotFoundError):
        client.find(before=NEVER_SAVED)
    with pytest.raises(CheckpointNotFoundError):
        client.timeline("coder", "s", before="nothing")


def test_sessions_are_shown_with_their_heads_the_last_touched_first(client: SyncClient) -> None:
    save_steps(client, 2, "one")
    save_steps(client, 1, "two")
    (head,) = save_steps(client, 1, "one")
    client.save("reviewer", session_id="one")

    sessions = client.sessions()

    assert [(s.agent_id, s.session_id, s.checkpoints) for s in sessions] == [
        ("reviewer", "one", 1),
        ("coder", "one", 3),
        ("coder", "two", 1),
    ]
    assert sessions[1].head.checkpoint_id == head
    assert [s.session_id for s in client.sessions("coder")] == ["one", "two"]


def test_sessions_are_read_page_by_page(client: SyncClient) -> None:
    for number in range(7):
        client.save("a" if number % 2 else "b", execution_state={}, session_id=f"s{number}")

    first = client.sessions(limit=3)
    second = client.sessions(limit=3, before=first[-1])
    third = client.sessions(limit=3, before=second[-1].head.checkpoint_id)

    assert [*first, *second, *third] == client.sessions()
    assert client.sessions("a", limit=2) == client.sessions("a")[:2]
    assert client.sessions("a", limit=2, before=client.sessions("a")[1]) == client.sessions("a")[2:]


def test_a_page_of_sessions_has_to_begin_after_what_is_there(client: SyncClient) -> None:
    client.save("a", execution_state={}, session_id="s")
    (only,) = client.sessions()
    client.expire(only.head.checkpoint_id)

    with pytest.raises(CheckpointNotFoundError):
        client.sessions(before=only)
    with pytest.raises(InvalidArgumentError):
        client.sessions(limit=0)


def test_ancestors_lead_back_to_the_root_through_forks(client: SyncClient) -> None:
    saved = save_steps(client, 3)
    fork = client.fork(saved[1], session_id="fork")
    last = client.save("coder", session_id="fork")

    assert ids(client.ancestors(last)) == [fork, saved[1], saved[0]]
    assert client.ancestors(saved[0]) == []


def test_only_the_nearest_ancestors_are_given_where_that_is_enough(client: SyncClient) -> None:
    saved = save_steps(client, 3)
    fork = client.fork(saved[1], session_id="fork")
    last = client.save("coder", session_id="fork")

    assert ids(client.ancestors(last, 1)) == [fork]
    assert ids(client.ancestors(last, 2)) == [fork, saved[1]]
    assert ids(client.ancestors(last, limit=100)) == [fork, saved[1], saved[0]]
    with pytest.raises(InvalidArgumentError, match="limit is a number from 1, not 0"):
        client.ancestors(last, 0)


def test_ancestors_end_where_history_was_removed(client: SyncClient) -> None:
    saved = save_steps(client, 4)
    client.expire(saved[1])

    assert ids(client.ancestors(saved[3])) == [saved[2]]


def test_ancestors_of_what_is_not_there_are_not_found(client: SyncClient) -> None:
    with pytest.raises(CheckpointNotFoundError):
        client.ancestors(NEVER_SAVED)


def test_a_tree_shows_a_session_and_what_was_forked_from_it(client: SyncClient) -> None:
    saved = save_steps(client, 3)
    fork = client.fork(saved[1], session_id="fork")
    deeper = client.fork(fork, session_id="deeper")
    save_steps(client, 2, "unrelated")

    tree = client.tree("coder", "s")

    (root,) = tree.roots
    assert root.info.checkpoint_id == saved[0]
    (middle,) = root.children
    assert ids([child.info for child in middle.children]) == [saved[2], fork]
    assert ids([node.info for node in tree]) == [saved[0], saved[1], saved[2], fork, deeper]
    assert len(tree) == 5


def test_a_tree_reads_as_one(client: SyncClient) -> None:
    saved = save_steps(client, 3)
    fork = client.fork(saved[0], session_id="fork")

    lines = str(client.tree("coder", "s")).splitlines()

    shown = [re.search(r"\* (\S+)", line)[1] for line in lines]  # type: ignore[index]
    assert [client.restore(each).checkpoint_id for each in shown] == [saved[0], fork, *saved[1:]]
    assert [line.replace(f"* {each}", "*") for line, each in zip(lines, shown, strict=True)] == [
        "* s#0",
        "  * fork#0",
        "* s#1",
        "* s#2",
    ]


def test_a_session_that_comes_back_to_itself_is_in_its_tree_once(client: SyncClient) -> None:
    first = client.save("coder", session_id="s")
    fork = client.fork(first, session_id="fork")
    back = client.save("coder", session_id="s", parent_id=fork)

    assert ids([node.info for node in client.tree("coder", "s")]) == [first, fork, back]


def test_the_tree_of_a_session_that_is_not_there_is_empty(client: SyncClient) -> None:
    tree = client.tree("coder", "nothing")

    assert len(tree) == 0
    assert str(tree) == ""
