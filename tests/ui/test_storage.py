"""What is kept, how it grew, what shares it and what pruning would free."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.testing.samples import keep, make_commit
from holdfast.ui import storage
from tests.ui import stories
from tests.ui.kit import Api


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "holdfast.db") as client:
        yield client


@pytest.fixture
def api(client: SyncClient) -> Api:
    return Api(client)


def test_an_empty_store_has_nothing(api: Api) -> None:
    found = api.get("storage")

    assert (found["checkpoints"], found["growth"], found["largest"], found["shares"]) == (
        *(0, [], [], []),
    )
    assert api.get("sharing") == {"sessions": []}
    assert api.get("prune-preview", last=1)["removed_total"] == 0


def test_what_is_large_comes_first(api: Api, client: SyncClient) -> None:
    stories.steps(client, "walker", "long", 20)
    stories.steps(client, "walker", "short", 2)
    stories.steps(client, "other", "middle", 9)

    found = api.get("storage")

    assert [each["session_id"] for each in found["largest"]] == ["long", "middle", "short"]
    assert [each["checkpoints"] for each in found["largest"]] == [20, 9, 2]
    assert [each["agent_id"] for each in found["shares"]] == ["walker", "other"]
    total = sum(each["logical_bytes"] for each in found["shares"])
    assert total == found["logical_bytes"] == client.stats().logical_bytes
    assert found["stored_bytes"] < total


@pytest.mark.parametrize("hours", [1, 24, 24 * 365, 24 * 365 * 50])
def test_growth_is_told_at_a_few_moments_whatever_the_time_between(
    api: Api, client: SyncClient, hours: int
) -> None:
    first = datetime(2024, 1, 1, tzinfo=UTC)
    times = [first + timedelta(hours=hours * number / 49) for number in range(50)]
    keep(client.store, *(make_commit(session_id=str(at), created_at=at) for at in times))

    growth = api.get("storage")["growth"]

    assert 1 <= len(growth) <= storage.MOST_POINTS
    assert [each["at"] for each in growth] == sorted(each["at"] for each in growth)
    assert [each["checkpoints"] for each in growth] == sorted(
        each["checkpoints"] for each in growth
    )
    assert growth[-1]["checkpoints"] == 50


def test_of_very_many_the_newest_are_looked_at(
    api: Api, client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MOST_LOOKED_AT", 10)
    monkeypatch.setattr(storage, "_PAGE", 5)
    stories.steps(client, "walker", "old", 20)
    stories.steps(client, "walker", "new", 10)

    found = api.get("storage")

    assert (found["checkpoints"], found["looked_at"]) == (30, 10)
    assert [each["session_id"] for each in found["largest"]] == ["new"]
    assert found["growth"][-1]["checkpoints"] == 30
    assert found["growth"][-1]["logical_bytes"] == found["logical_bytes"]


def test_what_sessions_share_is_told(api: Api, client: SyncClient) -> None:
    state = {"text": "".join(f"line {n}\n" for n in range(20_000))}
    first = client.save("agent", execution_state=state, session_id="first")
    client.fork(first, session_id="fork")
    client.save("agent", execution_state={"other": "words " * 10}, session_id="alone")

    found = {each["session_id"]: each for each in api.get("sharing")["sessions"]}

    assert set(found) == {"first", "fork", "alone"}
    assert found["alone"]["shared"] == []
    assert found["alone"]["alone_bytes"] == found["alone"]["stored_bytes"] > 0
    (shared,) = found["first"]["shared"]
    assert shared["session_id"] == "fork"
    assert shared["bytes"] > 0.9 * found["first"]["stored_bytes"]
    assert found["first"]["alone_bytes"] + shared["bytes"] == found["first"]["stored_bytes"]


def test_a_store_that_shares_nothing_says_that_it_is_not_known(tmp_path: Path) -> None:
    with SyncClient.file(tmp_path / "files") as client:
        client.save("agent", execution_state={}, session_id="s")

        (found,) = Api(client).get("sharing")["sessions"]

    assert (found["stored_bytes"], found["alone_bytes"], found["shared"]) == (None, None, [])


def test_what_a_prune_would_remove_is_told_and_kept(api: Api, client: SyncClient) -> None:
    stories.steps(client, "walker", "walk", 5)

    found = api.get("prune-preview", last=2)

    assert (found["removed_total"], found["kept"], found["dry_run"]) == (3, 2, True)
    assert [each["step_name"] for each in found["removed"]] == ["step 2", "step 1", "step 0"]
    assert found["freed_logical_bytes"] == sum(each["size"] for each in found["removed"])
    assert client.stats().checkpoints == 5


def test_of_very_many_that_would_be_removed_the_first_are_listed(
    api: Api, client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MOST_REMOVED", 2)
    stories.steps(client, "walker", "walk", 5)

    found = api.get("prune-preview", last=1)

    assert (len(found["removed"]), found["removed_total"]) == (2, 4)


def test_a_prune_removes_and_gc_frees_what_nothing_needs(api: Api, client: SyncClient) -> None:
    stories.steps(client, "walker", "walk", 5)
    assert api.post("prune", last=1, dry_run=True)["removed_total"] == 4
    assert client.stats().checkpoints == 5

    assert api.post("prune", last=1)["removed_total"] == 4
    planned = api.post("gc", grace="0s", dry_run=True)
    done = api.post("gc", grace="0s")

    assert client.stats().checkpoints == 1
    assert planned["chunks"] == done["chunks"] > 0
    assert client.verify().ok


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"last": "-1"},
        {"last": "many"},
        {"within": "soon"},
        {"within": "-7d"},
        {"last": 1, "tag": "no-sign"},
        {"last": 1, "named": "maybe"},
    ],
)
def test_a_policy_that_is_none_is_refused(
    api: Api, client: SyncClient, given: dict[str, Any]
) -> None:
    stories.steps(client, "walker", "walk", 2)

    api.refused("prune-preview", 400, **given)
    api.refused("prune", 400, "POST", **given)

    assert client.stats().checkpoints == 2


def test_a_policy_for_a_session_that_is_not_there_is_refused(api: Api, client: SyncClient) -> None:
    stories.steps(client, "walker", "walk", 2)

    api.refused("prune", 404, "POST", last=1, session="nobody")
