"""The log of a session is drawn as a tree, a page at a time, at the cost of what is shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.ui.log import MOST_FORKS, NEWEST
from tests.ui import stories
from tests.ui.kit import Api
from tests.ui.stories import AGENT, SESSION


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "log.db") as opened:
        yield opened


def rows_of(api: Api, session: str, **asked: Any) -> list[dict[str, Any]]:
    """All rows of a session, page by page."""
    rows: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = api.get("log", session=session, cursor=cursor, **asked)
        rows += page["checkpoints"]
        cursor = page["next"]
        if cursor is None:
            return rows


def drawn(row: dict[str, Any]) -> tuple[str | None, str | None]:
    return row["step_name"], row["branch"] and row["branch"]["session_id"]


def test_what_was_forked_stands_above_where_it_was_forked(api: Api) -> None:
    rows = [drawn(each) for each in rows_of(api, SESSION, agent=AGENT)]

    at = rows.index(("rewrite", "bolder"))
    assert rows[at : at + 3] == [
        ("rewrite", "bolder"),
        ("fix: completed", "bolder"),
        ("fix: completed", None),
    ]


def test_every_row_says_where_its_line_goes(api: Api) -> None:
    rows = rows_of(api, SESSION, agent=AGENT)
    known = {each["checkpoint_id"] for each in rows}

    assert all(each["lane_parent"] in known for each in rows[:-1])
    assert rows[-1]["lane_parent"] is None


def test_markers_tell_of_heads_failures_handoffs_and_rollbacks(api: Api) -> None:
    found: dict[str, set[str]] = {}
    for row in rows_of(api, SESSION, agent=AGENT):
        if row["branch"] is None:
            found.setdefault(row["step_name"], set()).update(row["markers"])

    assert found["handoff_to_reviewer"] == {"head", "handed off"}
    assert found["test: failed"] == {"failed"}
    assert found["rolled back to read: completed"] == {"rollback"}
    assert found["before rollback"] == {"rolled back"}
    assert found["read: completed"] == set()


def test_strategies_are_branches_of_an_exploration(api: Api) -> None:
    kinds = {
        row["branch"]["kind"] for row in rows_of(api, "trip", agent="traveller") if row["branch"]
    }

    assert kinds == {"exploration"}


def test_files_that_a_step_changed_are_counted(api: Api) -> None:
    own = [each for each in rows_of(api, SESSION, agent=AGENT) if each["branch"] is None]
    changed = {each["step_name"]: each["files"] for each in reversed(own)}

    assert changed["fix: completed"] == {"files": 2, "added": 2, "removed": 1}


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_pages_say_together_what_one_page_says(client: SyncClient, limit: int) -> None:
    with client.session("agent", "s") as run:
        for name in "abc":
            run.checkpoint(name)
        run.rollback(to="a")
        run.checkpoint("d")
        run.rollback(to="d")
        run.checkpoint("e")
    client.fork(stories.named(client, "agent", "s", "b"), session_id="side")
    api = Api(client)
    whole = {each["checkpoint_id"]: each for each in rows_of(api, "s", limit=500)}

    paged = rows_of(api, "s", limit=limit)

    assert [each["checkpoint_id"] for each in paged] == list(whole)
    for row in paged:
        assert row["markers"] == whole[row["checkpoint_id"]]["markers"]
        assert row["lane_parent"] == whole[row["checkpoint_id"]]["lane_parent"]


def test_of_a_long_fork_the_newest_are_shown_and_the_rest_counted(client: SyncClient) -> None:
    first = stories.steps(client, "agent", "s", 2)[0]
    client.fork(first, session_id="side")
    stories.steps(client, "agent", "side", 20)

    shown = [row for row in rows_of(Api(client), "s") if row["branch"]]

    assert len(shown) == NEWEST
    assert shown[0]["branch"]["more"] == 21 - NEWEST


def test_of_very_many_forks_some_are_shown_and_the_rest_counted(client: SyncClient) -> None:
    first = stories.steps(client, "agent", "s", 1)[0]
    for number in range(MOST_FORKS + 30):
        client.fork(first, session_id=f"side-{number}")

    rows = rows_of(Api(client), "s")

    assert len(rows) == MOST_FORKS + 1
    assert rows[-1]["forks_hidden"] == 30


def test_a_parent_that_was_pruned_ends_the_line(client: SyncClient) -> None:
    ids = stories.steps(client, "agent", "s", 3)
    client.expire(ids[0])

    rows = rows_of(Api(client), "s")

    assert [each["checkpoint_id"] for each in rows] == ids[:0:-1]
    assert rows[-1]["lane_parent"] is None


def test_a_cursor_whose_checkpoint_is_gone_gives_an_end(client: SyncClient) -> None:
    ids = stories.steps(client, "agent", "s", 5)
    api = Api(client)
    page = api.get("log", session="s", limit=2)
    client.expire(ids[3])

    assert api.get("log", session="s", limit=2, cursor=page["next"])["checkpoints"] == []


def test_below_a_checkpoint_that_was_removed_nothing_counts_as_rolled_back(
    client: SyncClient,
) -> None:
    ids = stories.steps(client, "agent", "s", 5)
    client.expire(ids[2])

    rows = rows_of(Api(client), "s")

    assert [each["checkpoint_id"] for each in rows] == [ids[4], ids[3], ids[1], ids[0]]
    assert not any("rolled back" in each["markers"] for each in rows)
