"""Checkpoints that hold files: state and workspace are kept together and come back together."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import CheckpointNotFoundError, InvalidArgumentError, SyncClient
from holdfast.workspace import Workspace
from tests.acceptance.conftest import OpenClient
from tests.clients import url_of


@pytest.fixture
def workspace(client: SyncClient, repo: Path) -> Iterator[Workspace]:
    with Workspace(repo, client.store) as workspace:
        yield workspace


def test_files_are_kept_with_the_state(
    client: SyncClient, workspace: Workspace, repo: Path, tmp_path: Path
) -> None:
    first = client.save("coder", execution_state={"step": 1}, session_id="s", workspace=workspace)
    (repo / "main.py").write_text("print('two')")
    (repo / "new.py").write_text("pass")
    second = client.save("coder", execution_state={"step": 2}, session_id="s", workspace=workspace)

    client.restore_workspace(first, to=tmp_path / "first").close()
    client.restore_workspace(second, to=tmp_path / "second").close()

    assert (tmp_path / "first/main.py").read_text() == "print('one')"
    assert not (tmp_path / "first/new.py").exists()
    assert (tmp_path / "second/main.py").read_text() == "print('two')"
    assert client.restore(first).verify_integrity()
    assert client.restore(first).execution_state == {"step": 1}


def test_a_directory_that_has_files_is_put_back_and_that_can_be_undone(
    client: SyncClient, workspace: Workspace, repo: Path
) -> None:
    saved = client.save("coder", workspace=workspace)
    (repo / "main.py").write_text("not saved anywhere")

    done = workspace.restore(saved)

    assert (repo / "main.py").read_text() == "print('one')"
    assert done.undo_tree is not None
    workspace.restore(done.undo_tree)
    assert (repo / "main.py").read_text() == "not saved anywhere"


def test_garbage_collection_spares_files_that_a_checkpoint_holds(
    client: SyncClient, workspace: Workspace, tmp_path: Path
) -> None:
    saved = client.save("coder", workspace=workspace)

    client.gc(grace_seconds=0)

    assert client.verify().ok
    client.restore_workspace(saved, to=tmp_path / "again").close()
    assert (tmp_path / "again/main.py").read_text() == "print('one')"


def test_a_bundle_takes_the_files_along(
    client: SyncClient, workspace: Workspace, open_client: OpenClient, tmp_path: Path
) -> None:
    saved = client.save("coder", execution_state={"step": 1}, workspace=workspace)
    client.export(tmp_path / "bundle")
    other = open_client(url_of("sqlite", tmp_path / "other"))

    other.import_(tmp_path / "bundle")

    other.restore_workspace(saved, to=tmp_path / "there").close()
    assert (tmp_path / "there/main.py").read_text() == "print('one')"


def test_a_fork_of_a_checkpoint_has_its_files(
    client: SyncClient, workspace: Workspace, tmp_path: Path
) -> None:
    fork = client.fork(client.save("coder", execution_state={"step": 1}, workspace=workspace))

    client.restore_workspace(fork, to=tmp_path / "fork").close()

    assert (tmp_path / "fork/main.py").read_text() == "print('one')"


def test_a_checkpoint_without_files_has_none_to_restore(client: SyncClient, tmp_path: Path) -> None:
    saved = client.save("coder")

    with pytest.raises(Exception, match=r"workspace|files|tree"):
        client.restore_workspace(saved, to=tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(CheckpointNotFoundError):
        client.restore_workspace("01900000-0000-7000-8000-000000000000", to=tmp_path / "nothing")


def test_files_in_another_store_are_refused(client: SyncClient, repo: Path) -> None:
    with (
        Workspace(repo, "memory://") as elsewhere,
        pytest.raises(InvalidArgumentError, match="open the workspace on the client"),
    ):
        client.save("coder", execution_state={"step": 1}, workspace=elsewhere)
    with pytest.raises(InvalidArgumentError, match="a Workspace, not PosixPath"):
        client.save("coder", workspace=repo)  # type: ignore[arg-type]
    assert client.find() == []


def test_the_same_store_may_be_opened_twice(repo: Path, tmp_path: Path) -> None:
    url = url_of("sqlite", tmp_path)
    with SyncClient.open(url) as client, Workspace(repo, url) as workspace:
        saved = client.save("coder", workspace=workspace)

        client.restore_workspace(saved, to=tmp_path / "there").close()
    assert (tmp_path / "there/main.py").read_text() == "print('one')"
