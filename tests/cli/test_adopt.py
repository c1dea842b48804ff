"""holdfast adopt: a session goes on from the head of another, with its state and files."""

from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast


@pytest.fixture
def holdfast(tmp_path: Path) -> Holdfast:
    """A session with a file, and a fork with another that has a directory of its own."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "plan.txt").write_text("careful")
    (tmp_path / ".holdfast").mkdir()
    with (
        SyncClient.sqlite(tmp_path / ".holdfast" / "holdfast.db") as client,
        client.session("coder", "main", workspace=files, state={"way": "careful"}) as run,
    ):
        run.checkpoint("start")
        (bold,) = run.fork(names=["bold"])
        with bold:
            bold.state["way"] = "bold"
            (Path(bold.workspace.path) / "plan.txt").write_text("bold")
            bold.checkpoint("done")
    return Holdfast(tmp_path)


def state_of(holdfast: Holdfast) -> Any:
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        head = client.latest("coder", "main")
        assert head is not None
        return head.execution_state


def test_a_dry_run_says_what_would_be_done_and_does_nothing(holdfast: Holdfast) -> None:
    said = holdfast.ok("adopt", "main.bold", "--dry-run")

    assert "session coder/main goes on from" in said
    assert "1 change" in said
    assert "write plan.txt" in said
    assert state_of(holdfast) == {"way": "careful"}
    planned = holdfast.json("adopt", "main.bold", "--dry-run")
    assert (planned["changes"], planned["files"]["written"]) == (1, ["plan.txt"])
    assert planned["checkpoint_id"] is None


def test_the_session_it_was_forked_from_goes_on_from_there_and_back(holdfast: Holdfast) -> None:
    plan = holdfast.directory / "files" / "plan.txt"

    said = holdfast.ok("adopt", "main.bold", "--yes")

    assert state_of(holdfast) == {"way": "bold"}
    assert plan.read_text() == "bold"
    back = said.partition("`holdfast ")[2].partition("`")[0].split()
    holdfast.ok(*back, "--yes")
    assert state_of(holdfast) == {"way": "careful"}
    assert plan.read_text() == "careful"


def test_nothing_is_done_without_a_yes(holdfast: Holdfast) -> None:
    assert holdfast("adopt", "main.bold").code != 0

    assert state_of(holdfast) == {"way": "careful"}


def test_a_session_that_was_forked_from_no_other_needs_to_be_told_who_adopts_it(
    holdfast: Holdfast,
) -> None:
    done = holdfast("adopt", "main", "--dry-run")

    assert done.code == 3
    assert "--into" in done.err
    assert "cannot adopt itself" in holdfast("adopt", "main", "--into", "main", "--dry-run").err
