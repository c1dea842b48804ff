"""Files are covered by gc, verify, export and import as states are, in every store."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.errors import CheckpointIntegrityError, CheckpointNotFoundError
from holdfast.model import CheckpointBuilder
from holdfast.stores.base import NotesOnly
from holdfast.workspace import Snapshot, Workspace, WorkspaceError
from tests.clients import EVERYWHERE, STORES, url_of
from tests.workspace.kit import at, picture, put


@pytest.fixture(params=EVERYWHERE)
def client(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SyncClient]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with SyncClient.open(url_of(request.param, tmp_path)) as client:
        yield client


def save(client: SyncClient, workspace: Workspace, state: Any = None) -> str:
    """A checkpoint that holds the files too."""
    snapshot = workspace.snapshot_for_checkpoint()
    built = CheckpointBuilder("coder").execution_state(state or {"step": 1})
    saved = client.put(built.workspace(snapshot.as_value()).build())
    workspace.saved_with(snapshot, saved)
    return saved


def fill(root: Path, text: str = "one") -> None:
    for number in range(30):
        put(root / f"d{number % 4}" / f"f{number}", f"{text} {number}\n" * 50)
    put(root / "large", os.urandom(1_000_000))


def test_a_snapshot_survives_gc(workspace: Workspace, client: SyncClient, root: Path) -> None:
    fill(root)
    snapshot, was = workspace.snapshot("keep me"), picture(root)
    fill(root, "two")

    client.gc(grace_seconds=0)
    workspace.restore(snapshot)

    assert picture(root) == was
    assert client.verify().ok


def test_the_files_of_a_checkpoint_survive_gc_and_go_with_it(
    workspace: Workspace, client: SyncClient, root: Path, tmp_path: Path
) -> None:
    fill(root)
    saved, was = save(client, workspace), picture(root)
    client.store.delete([workspace._pins.scope])  # as when the note has expired
    client.gc(grace_seconds=0)
    workspace.fork(saved, tmp_path / "fork").close()
    assert picture(tmp_path / "fork") == was
    assert client.gc(grace_seconds=0).chunks == 0

    client.expire(saved)
    client.store.delete([workspace._pins.scope])

    assert client.gc(grace_seconds=0).bytes > 1_000_000
    with pytest.raises(CheckpointNotFoundError):
        workspace.fork(saved, tmp_path / "again")


def test_a_snapshot_after_the_last_one_was_collected_is_whole(
    workspace: Workspace, client: SyncClient, root: Path
) -> None:
    fill(root)
    workspace.snapshot()
    client.store.delete([workspace._pins.scope])
    client.gc(grace_seconds=0)

    snapshot, was = workspace.snapshot(), picture(root)

    for path in root.rglob("f*"):
        path.unlink()
    workspace.restore(snapshot)
    assert picture(root) == was
    assert client.verify().ok


def test_a_snapshot_that_builds_on_one_collected_meanwhile_is_made_anew(
    workspace: Workspace, client: SyncClient, root: Path
) -> None:
    fill(root)
    workspace.snapshot()
    put(root / "new", "new")

    def collect(time: int) -> None:
        if time == 1:
            client.store.delete([workspace._pins.scope])
            client.gc(grace_seconds=0)

    with at("workspace:scanned", collect) as passed:
        snapshot = workspace.snapshot()

    assert len(passed) == 2
    assert workspace.read(snapshot, "d1/f1") == b"one 1\n" * 50


def test_a_snapshot_that_builds_on_one_collected_by_another_client_is_made_anew(
    workspace: Workspace,
    client: SyncClient,
    root: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    fill(root)
    workspace.snapshot()
    put(root / "new", "new")
    workspace.snapshot()  # from here on the store is only asked whether anything was removed

    url = url_of(request.node.callspec.params["client"], tmp_path)
    with nullcontext(client) if url == "memory://" else SyncClient.open(url) as other:
        other.store.delete([workspace._pins.scope])
        other.gc(grace_seconds=0)
    put(root / "newer", "newer")
    snapshot = workspace.snapshot()

    assert workspace.read(snapshot, "d1/f1") == b"one 1\n" * 50
    assert client.verify().ok


def test_snapshots_share_what_they_have_in_common(
    workspace: Workspace, client: SyncClient, root: Path
) -> None:
    fill(root)
    first = save(client, workspace)
    put(root / "d1" / "f1", "another")
    second = save(client, workspace)

    client.expire(first)
    client.store.delete([workspace._pins.scope])
    client.gc(grace_seconds=0)

    assert workspace.read(second, "d2/f2") == b"one 2\n" * 50
    assert client.verify().ok


def test_verify_names_the_checkpoint_whose_files_are_damaged(
    workspace: Workspace, client: SyncClient, root: Path
) -> None:
    fill(root)
    saved = save(client, workspace)
    workspace.close()
    snapshot = Snapshot.from_value(client.restore(saved).workspace)
    file = workspace._reader.find(snapshot.root.name, b"d1/f1")
    assert file is not None
    leaf = file.location.block

    client.store.commit(NotesOnly((), {leaf: b"\x00damaged"}))

    assert saved in [damage.checkpoint_id for damage in client.verify().damaged]


@pytest.mark.parametrize("other", STORES)
def test_a_bundle_carries_the_files_to_any_store(
    other: str, workspace: Workspace, client: SyncClient, root: Path, tmp_path: Path
) -> None:
    fill(root)
    first, was = save(client, workspace), picture(root)
    put(root / "d1" / "f1", "another")
    second = save(client, workspace)

    client.export(tmp_path / "bundle")
    (tmp_path / "other").mkdir()
    with SyncClient.open(url_of(other, tmp_path / "other")) as target:
        target.import_(tmp_path / "bundle")
        target.gc(grace_seconds=0)
        assert target.verify().ok
        place = tmp_path / "there"
        place.mkdir()
        with Workspace(place, target) as there:
            there.restore(first)
            assert picture(place) == was
            assert there.read(second, "d1/f1") == b"another"


def test_a_bundle_that_lacks_files_is_refused(
    workspace: Workspace, client: SyncClient, root: Path, tmp_path: Path
) -> None:
    fill(root)
    saved = save(client, workspace)
    snapshot = Snapshot.from_value(client.restore(saved).workspace)
    file = workspace._reader.find(snapshot.root.name, b"d1/f1")
    assert file is not None
    leaf = file.location.block
    client.store.commit(NotesOnly((), {leaf: b"\x00damaged"}))

    with pytest.raises(CheckpointIntegrityError):
        client.export(tmp_path / "bundle")


def test_a_tree_is_found_by_its_id_a_prefix_and_its_checkpoint(
    workspace: Workspace, client: SyncClient, root: Path
) -> None:
    put(root / "file", "one")
    snapshot = workspace.snapshot()
    saved = save(client, workspace)
    workspace.close()

    with Workspace(root, client) as again:
        for tree in (snapshot, snapshot.tree_id, snapshot.tree_id[:8], saved, saved[:14]):
            assert again.read(tree, "file") == b"one"
        assert again.read(client.restore(saved), "file") == b"one"
        for tree in ("abcdef123456", "no such thing"):
            with pytest.raises(CheckpointNotFoundError, match="no snapshot and no checkpoint"):
                again.read(tree, "file")
        without = client.save("coder", execution_state={})
        with pytest.raises(WorkspaceError, match="without a workspace"):
            again.read(without, "file")


def test_restoring_a_state_does_not_read_the_files(
    workspace: Workspace, client: SyncClient, root: Path
) -> None:
    fill(root)
    saved = save(client, workspace, {"messages": ["hello"]})

    record = client.store.load(saved)

    assert client.restore(saved).execution_state == {"messages": ["hello"]}
    assert record is not None
    assert sum(map(len, record.chunks.values())) < 5000


def test_snapshots_are_listed_newest_first(workspace: Workspace, root: Path) -> None:
    for number in range(3):
        put(root / "file", str(number))
        workspace.snapshot(f"number {number}")

    assert [s.message for s in workspace.snapshots()] == ["number 2", "number 1", "number 0"]
    assert all(s.created_at is not None for s in workspace.snapshots())
