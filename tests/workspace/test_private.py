"""All that Holdfast makes for itself is its owner's alone, whatever the umask allows others."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Client, SyncClient
from holdfast.cli import main
from holdfast.workspace import Workspace
from tests.workspace.kit import at, put

STORES = {
    "sqlite": "sqlite:///{}/made/deep/agent.db",
    "default": "sqlite:///{}/made/.holdfast/holdfast.db",
    "file": "file://{}/made/deep/store",
    "blobs": "sqlite:///{}/made/deep/agent.db?blobs=file://{}/made/blobs/deep&blobs_above=0",
}


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(above: Path) -> dict[str, int]:
    """The modes of all that is in a directory, and of itself."""
    found = [above, *above.rglob("*")]
    return {str(path): stat.S_IMODE(path.lstat().st_mode) for path in found}


def open_to_others(above: Path) -> dict[str, str]:
    """What others could look into."""
    return {path: oct(mode) for path, mode in modes(above).items() if mode & 0o077}


@pytest.mark.parametrize("kind", STORES)
def test_everything_that_a_long_run_makes_is_its_owners_alone(
    kind: str, umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "made" / "cache"))
    url = STORES[kind].format(tmp_path, tmp_path)
    repo = tmp_path / "repo"
    put(repo / "dir" / "shared", "one", mode=0o666)
    seen: dict[str, str] = {}

    def look(_: int) -> None:
        seen.update(open_to_others(tmp_path / "made"))
        seen.update(
            (path, oct(mode))
            for top in (*repo.glob(".holdfast-*"), *tmp_path.glob(".holdfast-*"))
            for path, mode in {str(top): stat.S_IMODE(top.stat().st_mode)}.items()
            if mode & 0o077
        )

    with SyncClient.open(url) as client:
        with client.session("coder", session_id="fix", workspace=repo) as run:
            run.state["messages"] = ["x" * 20_000]
            run.checkpoint("first")
            put(repo / "dir" / "shared", "two" * 50_000)
            run.call(lambda: put(repo / "new", "new").name)
            run.checkpoint("second")
        with Workspace(repo, client) as workspace:
            first = workspace.snapshots()[-1] if workspace.snapshots() else workspace.snapshot()
            put(repo / "dir" / "shared", "three")
            with (
                at("workspace:staged", look),
                at("workspace:swapped", look),
                (repo / "dir" / "shared").open("a"),
            ):
                done = workspace.restore(first)
                look(0)
            workspace.fork(first, tmp_path / "fork").close()
        client.export(tmp_path / "made" / "backup.holdfast")
        client.gc(grace_seconds=0)
        look(0)

    async def save() -> None:
        async with Client.open(url) as client:
            await client.save("coder", execution_state={"text": os.urandom(30_000)})

    asyncio.run(save())
    look(0)
    assert not seen
    for held in done.held:
        assert modes((repo / held).parent)[str((repo / held).parent)] == 0o700
    assert stat.S_IMODE((tmp_path / "fork").stat().st_mode) == 0o777 & ~umask


def test_files_of_a_fork_have_the_modes_they_were_captured_with(umask: int, tmp_path: Path) -> None:
    for mode in (0o644, 0o666, 0o600, 0o755):
        put(tmp_path / "repo" / f"{mode:o}", mode=mode)
    with SyncClient.memory() as client, Workspace(tmp_path / "repo", client) as workspace:
        workspace.fork(workspace.snapshot(), tmp_path / "fork").close()

    found = modes(tmp_path / "fork")
    assert all(found[str(tmp_path / "fork" / f"{mode:o}")] == mode for mode in (0o644, 0o666))
    assert found == {
        path.replace("repo", "fork"): m for path, m in modes(tmp_path / "repo").items()
    }


def test_init_makes_a_folder_for_its_owner_alone(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["init"])
    main(["snapshot", "."])
    assert not open_to_others(tmp_path / ".holdfast")


def test_a_directory_that_is_there_keeps_its_mode(umask: int, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    (tmp_path / "shared").chmod(0o755)

    with SyncClient.open(f"sqlite:///{tmp_path}/shared/agent.db") as client:
        client.save("coder", execution_state={})

    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o755
    assert not open_to_others(tmp_path / "shared").keys() - {str(tmp_path / "shared")}


def test_a_store_reached_through_a_symlink_is_its_owners_alone(umask: int, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "agent.db").symlink_to(tmp_path / "real" / "agent.db")

    with SyncClient.open(f"sqlite:///{tmp_path}/agent.db") as client:
        client.save("coder", execution_state={})
        found = modes(tmp_path / "real")
        del found[str(tmp_path / "real")]

    assert set(found.values()) == {0o600}
