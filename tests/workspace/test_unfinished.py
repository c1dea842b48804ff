"""What a process leaves behind when it is killed goes with the next one that looks after it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.cli import main
from holdfast.workspace import Workspace
from tests.integration.fork_server import ForkServer
from tests.workspace.kit import at, put

JOBS = "tests.workspace.crash_jobs"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(JOBS, "holdfast.stores.sqlite.store", "concurrent.futures.thread") as server:
        yield server


def prepared(home: Path) -> str:
    """A workspace with a snapshot and a checkpoint; returns the URL of its store."""
    url = f"sqlite:///{home}/agent.db"
    put(home / "repo" / "dir" / "file", "one")
    (home / "repo" / "dir").chmod(0o555)
    with SyncClient.open(url) as client, Workspace(home / "repo", client) as workspace:
        workspace.snapshot()
        client.save("coder", execution_state={"step": 1})
    return url


def hidden(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith(".")]


@pytest.mark.parametrize("point", ["workspace:staging", "workspace:staged"])
def test_a_killed_fork_is_removed_when_the_workspace_is_opened_next(
    point: str, server: ForkServer, tmp_path: Path
) -> None:
    url = prepared(tmp_path)
    (tmp_path / "forks").mkdir()

    ended = server.killed(f"{JOBS}:fork_and_be_killed", str(tmp_path), point)

    assert ended.signal == signal.SIGKILL, ended.error
    (left,) = hidden(tmp_path / "forks")
    assert left.startswith(".holdfast-tmp-fork-")
    with Workspace(tmp_path / "repo", url):
        assert os.listdir(tmp_path / "forks") == []


def test_gc_removes_a_killed_fork_and_a_killed_export_and_names_them(
    server: ForkServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = prepared(tmp_path)
    (tmp_path / "forks").mkdir()
    (tmp_path / "backups").mkdir()
    server.killed(f"{JOBS}:fork_and_be_killed", str(tmp_path), "workspace:staged")
    server.killed(f"{JOBS}:export_and_be_killed", str(tmp_path))
    (fork,) = hidden(tmp_path / "forks")
    (part,) = hidden(tmp_path / "backups")
    assert part.startswith(".all.holdfast.holdfast-part-")

    with SyncClient.open(url) as client:
        told = client.gc(dry_run=True).unfinished
        assert {Path(path).name for path in told} == {fork, part}
    assert hidden(tmp_path / "forks") == [fork]
    main(["gc", "--store", url])

    assert fork in (said := capsys.readouterr().out)
    assert part in said
    assert not os.listdir(tmp_path / "forks")
    assert not os.listdir(tmp_path / "backups")


def test_a_fork_that_is_being_made_is_left_alone(tmp_path: Path) -> None:
    url = prepared(tmp_path)
    removed: list[tuple[str, ...]] = []

    def collect(_: int) -> None:
        with SyncClient.open(url) as client:
            removed.append(client.gc().unfinished)

    with Workspace(tmp_path / "repo", url) as workspace, at("workspace:staged", collect):
        workspace.fork(workspace.snapshots()[0], tmp_path / "fork").close()

    assert removed == [()]
    assert (tmp_path / "fork" / "dir" / "file").read_text() == "one"


def test_a_note_cannot_have_anything_else_removed(tmp_path: Path) -> None:
    url = prepared(tmp_path)
    mine = put(tmp_path / "mine", "mine")
    put(tmp_path / "agent.db.workspaces" / "unfinished" / "0123456789abcdef", os.fsencode(mine))

    with SyncClient.open(url) as client:
        assert client.gc().unfinished == ()

    assert mine.read_text() == "mine"
