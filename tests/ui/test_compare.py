"""Two checkpoints side by side, and the strategies of an exploration."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from tests.clients import url_of
from tests.ui.kit import Api
from tests.ui.test_files import ODD, Folder


@pytest.fixture(params=["memory", "sqlite"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.open(url_of(request.param, tmp_path)) as opened:
        yield opened


@pytest.fixture
def folder(client: SyncClient, tmp_path: Path) -> Folder:
    return Folder(client, tmp_path / "work")


def two(client: SyncClient, old: Any, new: Any) -> dict[str, str]:
    """Two checkpoints of a session, as they are asked for."""
    return {
        "a": client.save("agent", execution_state=old, session_id="s"),
        "b": client.save("agent", execution_state=new, session_id="s"),
    }


def test_values_are_compared_by_path(client: SyncClient) -> None:
    both = two(client, {"n": 1, "gone": [1], "same": 2}, {"n": 2**60, "new": (1,), "same": 2})

    found = Api(client).get("diff", **both)

    assert found["changed"] == {"$.n": {"old": 1, "new": {"$type": "int", "value": str(2**60)}}}
    assert found["added"] == {"$.new": {"$type": "tuple", "value": [1]}}
    assert found["removed"] == {"$.gone": [1]}
    assert (found["from"], found["to"]) == (both["a"], both["b"])
    assert (found["files"], found["refs"], found["cut"]) == (None, None, {})


def test_without_another_a_checkpoint_is_compared_with_its_parent(client: SyncClient) -> None:
    both = two(client, 1, 2)

    assert Api(client).get("diff", a=both["b"])["from"] == both["a"]
    assert "is the first" in Api(client).refused("diff", 404, a=both["a"])["message"]


@pytest.mark.parametrize("part", ["files", "state", "context", "tasks", "effects"])
def test_a_part_can_be_asked_for(client: SyncClient, part: str) -> None:
    found = Api(client).get("diff", **two(client, 1, 2), part=part)

    assert bool(found["changed"]) == (part == "state")


def test_of_many_changes_the_first_are_told_and_the_others_counted(client: SyncClient) -> None:
    old = {f"k{number}": number for number in range(100_000)}
    both = two(client, old, {key: value + 1 for key, value in old.items()})

    found = Api(client).get("diff", **both)

    assert len(found["changed"]) == 500
    assert found["cut"] == {"changed": 99_500}


def test_of_a_large_value_is_told_how_it_begins(client: SyncClient) -> None:
    both = two(client, {}, {"text": "x" * 10**7, "list": list(range(10**5)), "small": "y"})

    found = Api(client).get("diff", **both)["added"]

    assert {found[path]["$type"] for path in ("$.text", "$.list")} == {"preview"}
    assert len(found["$.text"]["value"]) <= 2000
    assert found["$.small"] == "y"


def test_files_are_compared_whatever_they_are_called(client: SyncClient, folder: Folder) -> None:
    folder.write("changed", b"one\n")
    folder.write("old-name", b"a thing\n")
    folder.write(ODD, b"gone\n")
    old = folder.saved()
    folder.write("changed", b"two\n")
    (folder.path / "old-name").rename(folder.path / "new-name")
    Path(folder.path, ODD.decode("utf-8", "surrogateescape")).unlink()
    new = folder.saved()
    api = Api(client)

    found = api.get("diff", a=old, b=new, part="files")

    assert found["files"]["modified"] == found["refs"]["modified"] == ["changed"]
    assert found["files"]["renamed"] == [["old-name", "new-name"]]
    assert found["files"]["removed"] == ["caf\ufffd 100%.txt"]
    assert found["refs"]["removed"] == ["caf%E9 100%25.txt"]
    lines = api.get("file-diff", a=old, b=new, ref=found["refs"]["removed"][0])["hunks"][0]["lines"]
    assert [(line["op"], line["words"][0][0]) for line in lines] == [("-", "gone")]


def test_of_many_changed_files_the_first_are_told(client: SyncClient, folder: Folder) -> None:
    folder.write("first")
    old = folder.saved()
    for number in range(600):
        folder.write(f"many/{number}", b"%d" % number)

    found = Api(client).get("diff", a=old, b=folder.saved())

    assert len(found["files"]["added"]) == len(found["refs"]["added"]) == 500
    assert found["cut"] == {"files.added": 100}


def test_lines_of_a_file_are_compared_with_their_words(client: SyncClient, folder: Folder) -> None:
    folder.write("a", b"same\nthe old word\n")
    old = folder.saved()
    folder.write("a", b"same\nthe new word\n")

    found = Api(client).get("file-diff", a=old, b=folder.saved(), path="a")

    assert (found["binary"], found["cut"]) == (False, False)
    assert [line["op"] for line in found["hunks"][0]["lines"]] == [" ", "-", "+"]
    assert found["hunks"][0]["lines"][2]["words"] == [
        ["the ", False],
        ["new", True],
        [" word", False],
    ]


def test_a_renamed_file_is_compared_with_what_it_was(client: SyncClient, folder: Folder) -> None:
    folder.write("old", b"1\n2\n")
    old = folder.saved()
    (folder.path / "old").unlink()
    folder.write("new", b"1\n3\n")

    found = Api(client).get("file-diff", a=old, b=folder.saved(), path="new", old_path="old")

    assert [line["op"] for line in found["hunks"][0]["lines"]] == [" ", "-", "+"]


def test_binary_files_are_not_compared_by_lines(client: SyncClient, folder: Folder) -> None:
    folder.write("a", b"\0\1")
    old = folder.saved()
    folder.write("a", b"\0\2")

    assert Api(client).get("file-diff", a=old, b=folder.saved(), path="a")["binary"]


def test_large_files_with_nothing_in_common_are_cut(client: SyncClient, folder: Folder) -> None:
    folder.write("a", b"".join(b"%d is the old line of this\n" % at for at in range(40_000)))
    old = folder.saved()
    folder.write("a", b"".join(b"%d is the new line of this\n" % at for at in range(40_000, 0, -1)))

    found = Api(client).get("file-diff", a=old, b=folder.saved(), path="a")

    assert found["cut"]
    assert sum(len(hunk["lines"]) for hunk in found["hunks"]) <= 5000


def test_what_cannot_be_compared_is_refused(client: SyncClient, folder: Folder) -> None:
    folder.write("d/a")
    both = {"a": folder.saved(), "b": folder.saved()}
    api = Api(client)

    api.refused("file-diff", 404, **both, path="nothing")
    api.refused("file-diff", 400, **both, path="d")
    api.refused("file-diff", 400, **both, path="../a")
    api.refused("file-diff", 400, **both)
    api.refused("diff", 404, a="nothing", b=both["b"])
    api.refused("diff", 400, **both, part="other")
    api.refused("diff", 400)


def careful(run: Any) -> float:
    run.state["way"] = "careful"
    run.call(sum, [1, 2])
    return 2.0


def quick(run: Any) -> float:
    run.state["way"] = "quick"
    return 1.0


def failing(run: Any) -> float:
    raise OSError("no luck")


def explored(client: SyncClient) -> str:
    """The checkpoint that three strategies were tried from."""
    base = client.save("agent", execution_state={"n": 1}, session_id="s")
    client.explore(base, {"careful": careful, "quick": quick, "failing": failing})
    return base


def test_strategies_are_told_with_their_scores(client: SyncClient) -> None:
    base = explored(client)

    found = Api(client).get("exploration", agent="agent", session="s")

    told = {each["strategy"]: each for each in found["outcomes"]}
    assert (found["checkpoint_id"], found["winner"]) == (base, "careful")
    assert {name: (each["status"], each["score"]) for name, each in told.items()} == {
        "careful": ("done", 2.0),
        "quick": ("done", 1.0),
        "failing": ("failed", None),
    }
    assert told["careful"]["calls"] == 1
    assert told["careful"]["state_changes"] == 1
    assert "no luck" in told["failing"]["error"]
    assert told["careful"]["seconds"] >= 0


def test_the_session_of_a_strategy_leads_to_all_of_them(client: SyncClient) -> None:
    explored(client)
    api = Api(client)
    found = api.get("exploration", agent="agent", session="s")
    one = found["outcomes"][0]

    assert api.get("exploration", agent="agent", session=one["session_id"]) == found
    assert api.get("diff", a=found["checkpoint_id"], b=one["head"])["added"]


def test_strategies_of_which_nothing_was_noted_are_told_by_their_heads(client: SyncClient) -> None:
    base = client.save("agent", execution_state={}, session_id="s")
    client.fork(base, session_id="s.tried-1")
    client.save("agent", execution_state={}, session_id="s.tried-1", strategy="tried", cost=1.5)

    (one,) = Api(client).get("exploration", agent="agent", session="s")["outcomes"]

    assert (one["strategy"], one["status"], one["cost"]) == ("tried", "not told", 1.5)
    assert (one["score"], one["seconds"]) == (None, None)


def test_a_session_that_was_not_explored_says_so(client: SyncClient) -> None:
    client.save("agent", session_id="s")

    error = Api(client).refused("exploration", 404, agent="agent", session="s")

    assert "no strategies" in error["message"]
