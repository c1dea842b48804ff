"""A store that lies in the workspace itself is never captured, overwritten or removed."""

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast import SyncClient
from holdfast.stores import capabilities
from holdfast.stores.base import Commit, NotesOnly, Store
from holdfast.stores.capabilities import files_of
from holdfast.stores.memory import MemoryStore
from holdfast.stores.objects.store import LargeBlobs
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.stores.wrapper import WrappedStore
from holdfast.workspace import Workspace
from tests.workspace.kit import put

PLACES = {
    "sqlite": "sqlite:///{root}/agent.db",
    "sqlite deep": "sqlite:///{root}/data/agent.db",
    "sqlite and blobs": "sqlite:///{root}/agent.db?blobs={blobs}&blobs_above=0",
    "blobs alone": "sqlite:///{root}/../agent.db?blobs={blobs}&blobs_above=0",
    "memory and blobs": "memory://?blobs={blobs}&blobs_above=0",
    "file": "file://{root}/store",
}


def url_of(place: str, root: Path | str) -> str:
    blobs = quote(f"file://{os.path.abspath(root)}/blobs/of/mine", safe="")
    return PLACES[place].format(root=root, blobs=blobs)


def names_in(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def check(workspace: Workspace, client: SyncClient, root: Path) -> None:
    """Snapshots hold the user's files alone, and no restore touches anything else."""
    saved = client.save("coder", execution_state={"text": os.urandom(20_000)})
    put(root / "mine", "one")
    first = workspace.snapshot()
    # What is uploaded again gets another name; whether objects are lost, verify tells.
    own = {path for path in names_in(root) - {"mine"} if not path.startswith("blobs/")}
    put(root / "mine", "two")
    second = workspace.snapshot()

    for tree in (first, second, first):
        assert [entry.path for entry in workspace.ls(tree) if entry.kind == "file"] == ["mine"]
        workspace.restore(tree)
        assert own <= names_in(root)
    assert client.restore(saved).checkpoint_id == saved
    assert client.verify().ok
    assert workspace.snapshot().tree_id == first.tree_id


@pytest.mark.parametrize("place", PLACES)
def test_a_store_in_the_workspace_is_left_alone(place: str, root: Path) -> None:
    with SyncClient.open(url_of(place, root)) as client, Workspace(root, client) as workspace:
        check(workspace, client, root)


@pytest.mark.parametrize("place", ["sqlite", "sqlite and blobs", "file"])
def test_a_store_opened_by_a_relative_path_is_left_alone(
    place: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root.parent)
    url = url_of(place, "repo").replace("file://repo", f"file://{root.parent}/repo")
    with SyncClient.open(url) as client:
        monkeypatch.chdir("/")
        with Workspace(root, client) as workspace:
            check(workspace, client, root)


@pytest.mark.parametrize("place", ["sqlite", "sqlite and blobs", "file"])
def test_a_store_reached_through_a_symlink_to_the_workspace_is_left_alone(
    place: str, root: Path
) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    with SyncClient.open(url_of(place, link)) as client, Workspace(root, client) as workspace:
        check(workspace, client, root)


def test_a_symlink_in_the_workspace_that_leads_to_the_store_is_left_alone(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    with SyncClient.memory() as other, Workspace(root, other) as workspace:
        empty = workspace.snapshot()
        assert not empty.files
    (root / "agent.db").symlink_to(tmp_path / "real" / "agent.db")

    with (
        SyncClient.open(f"sqlite:///{root}/agent.db") as client,
        Workspace(root, client) as workspace,
    ):
        before = workspace.snapshot()
        assert not before.files
        workspace.restore(before)
        check(workspace, client, root)

    assert (root / "agent.db").is_symlink()


def test_a_tree_that_holds_the_store_itself_leaves_it_as_it_is(root: Path, tmp_path: Path) -> None:
    """As trees do that 0.2 captured of a store with blobs."""
    url = f"sqlite:///{root}/agent.db?blobs={quote(f'file://{tmp_path}/blobs', safe='')}"
    with SyncClient.open(url) as client:
        put(tmp_path / "other" / "agent.db", "not a database")
        put(tmp_path / "other" / "mine", "one")
        with Workspace(tmp_path / "other", client) as other:
            tree = other.snapshot()
        put(root / "mine", "two")
        with Workspace(root, client) as workspace:
            done = workspace.restore(tree)

            assert done.written == ("mine",)
        saved = client.save("coder", execution_state={})
    with SyncClient.open(url) as client:
        assert client.restore(saved).checkpoint_id == saved


class Audited(WrappedStore):
    """A store as a user may write one: it counts what is written, and no more."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.commits = 0

    def commit(self, commit: Commit | NotesOnly) -> None:
        self.commits += 1
        super().commit(commit)


class Logged(WrappedStore):
    """One that writes to a file of its own, and says nothing of those of the store within."""

    def __init__(self, inner: Store, log: Path) -> None:
        super().__init__(inner)
        self.files = (str(log),)
        self.files_apart = ()

    def commit(self, commit: Commit | NotesOnly) -> None:
        with open(self.files[0], "a") as log:
            log.write("commit\n")
        super().commit(commit)


def blobs_in(root: Path) -> Store:
    return LargeBlobs(SqliteStore(root / "agent.db"), f"file://{root}/blobs", above=0)


WRAPPERS: dict[str, Callable[[Path], Store]] = {
    "one that counts": lambda root: Audited(SqliteStore(root / "agent.db")),
    "two": lambda root: Audited(Audited(SqliteStore(root / "agent.db"))),
    "around blobs": lambda root: Audited(blobs_in(root)),
    "one with a file of its own": lambda root: Logged(
        SqliteStore(root / "agent.db"), root / "agent.log"
    ),
    "one with a file around blobs": lambda root: Logged(blobs_in(root), root / "agent.log"),
}


@pytest.mark.parametrize("wrapped", WRAPPERS)
def test_a_store_in_a_wrapper_of_the_users_is_left_alone(wrapped: str, root: Path) -> None:
    with SyncClient(WRAPPERS[wrapped](root)) as client, Workspace(root, client) as workspace:
        check(workspace, client, root)


CAPABILITIES = [
    kind for kind in vars(capabilities).values() if getattr(kind, "_is_runtime_protocol", False)
]


@pytest.mark.parametrize("kind", CAPABILITIES)
def test_a_store_with_blobs_can_do_what_the_store_within_can(tmp_path: Path, kind: type) -> None:
    class Everything(SqliteStore):
        is_volatile, concerns = True, ("old",)
        wait = newest = lost = glance = SqliteStore.stats

    with LargeBlobs(Everything(tmp_path / "agent.db"), f"file://{tmp_path}/blobs") as store:
        assert store.inner.capability(kind) is not None
        assert (store.capability(kind) is None) == (kind in LargeBlobs.hidden)


def test_a_store_with_blobs_names_the_files_of_both(tmp_path: Path) -> None:
    inner = SqliteStore(tmp_path / "agent.db")
    with LargeBlobs(inner, f"file://{tmp_path}/blobs") as store:
        assert files_of(store) == inner.files
        assert store.files_apart == (str(tmp_path / "blobs"),)


def test_a_wrapper_forwards_every_method_of_a_store() -> None:
    given = {name for name in vars(Store) if not name.startswith("_")} - {"async_store"}

    assert given <= vars(WrappedStore).keys() | {"shares_chunks", "allow_pickle"}


def test_the_newest_checkpoint_of_a_session_comes_with_its_objects(tmp_path: Path) -> None:
    with SyncClient(LargeBlobs(MemoryStore(), f"file://{tmp_path}/blobs", above=0)) as client:
        for letter in "xy":
            client.save("coder", session_id="s", execution_state={"text": letter * 9000})
        newest = client.latest("coder", "s")

        assert newest is not None
        assert newest.execution_state == {"text": "y" * 9000}
