"""An AsyncWorkspace does what a Workspace does, and never blocks the loop or leaves things half."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, SyncClient
from holdfast.errors import CheckpointNotFoundError, InvalidArgumentError, StoreClosedError
from holdfast.stores.memory import MemoryStore
from holdfast.workspace import AsyncWorkspace, Snapshot, Workspace, WorkspaceError
from tests.workspace.kit import at, left_behind, picture, put


class Blocking:
    """A Workspace that can be awaited, so that a test can be the same for both."""

    def __init__(self, workspace: Workspace) -> None:
        self.sync = workspace

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.sync, name)
        if not callable(method):
            return method

        async def call(*args: Any, **options: Any) -> Any:
            found = method(*args, **options)
            return Blocking(found) if isinstance(found, Workspace) else found

        return call


Opened = Callable[..., Any]


@asynccontextmanager
async def blocking(path: Path, store: Any, **options: Any) -> AsyncIterator[Any]:
    with Workspace(path, store, **options) as workspace:
        yield Blocking(workspace)


@asynccontextmanager
async def awaited(path: Path, store: Any, **options: Any) -> AsyncIterator[Any]:
    async with AsyncWorkspace(path, store, **options) as workspace:
        yield workspace


@pytest.fixture(params=[blocking, awaited], ids=["Workspace", "AsyncWorkspace"])
def opened(request: pytest.FixtureRequest) -> Opened:
    return request.param


async def test_what_was_captured_comes_back(opened: Opened, root: Path, client: SyncClient) -> None:
    put(root / "file", "one")
    async with opened(root, client) as workspace:
        before = picture(root)
        first = await workspace.snapshot("first")
        put(root / "file", "two")
        put(root / "new")

        done = await workspace.restore(first)

        assert picture(root) == before
        assert (done.written, done.removed) == (("file",), ("new",))
        await workspace.restore(done.undo_tree)
        assert (root / "file").read_text() == "two"


async def test_a_dry_run_and_chosen_paths(opened: Opened, root: Path, client: SyncClient) -> None:
    for name in ("a", "b"):
        put(root / name, "one")
    async with opened(root, client) as workspace:
        first = await workspace.snapshot()
        for name in ("a", "b"):
            put(root / name, "other")

        planned = await workspace.restore(first, dry_run=True)
        assert planned.written == ("a", "b")
        assert planned.dry_run
        await workspace.restore(first, paths=["a"])
        assert [(root / name).read_text() for name in ("a", "b")] == ["one", "other"]


async def test_trees_can_be_looked_into(opened: Opened, root: Path, client: SyncClient) -> None:
    put(root / "d" / "file", "one")
    async with opened(root, client) as workspace:
        first = await workspace.snapshot("first")
        put(root / "d" / "file", "more")

        assert [entry.path for entry in await workspace.ls(first)] == ["d", "d/file"]
        assert await workspace.read(first, "d/file") == b"one"
        assert (await workspace.status()).modified == ("d/file",)
        assert "-one" in str(await workspace.diff(first, text=True))
        assert [each.message for each in await workspace.snapshots()] == ["first"]


async def test_forks_are_workspaces_of_their_own(
    opened: Opened, root: Path, client: SyncClient, tmp_path: Path
) -> None:
    put(root / "file", "one")
    async with opened(root, client) as workspace:
        first = await workspace.snapshot()

        forks = await asyncio.gather(
            *(workspace.fork(first, tmp_path / f"fork-{number}") for number in range(3))
        )

        for number, fork in enumerate(forks):
            assert type(fork) is type(workspace)
            assert fork.path == str(tmp_path / f"fork-{number}")
            assert picture(tmp_path / f"fork-{number}") == picture(root)
            assert (await fork.snapshot()).tree_id == first.tree_id
            await fork.close()


async def test_progress_is_told_file_by_file(
    opened: Opened, root: Path, client: SyncClient, tmp_path: Path
) -> None:
    for number in range(20):
        put(root / f"d{number % 4}" / f"f{number}")
    told: list[tuple[int, int | None]] = []
    async with opened(root, client) as workspace:
        first = await workspace.snapshot(progress=lambda done, total: told.append((done, total)))
        assert told[-1][0] >= 20
        told.clear()

        fork = await workspace.fork(first, tmp_path / "fork", lambda d, t: told.append((d, t)))

        assert told[-1] == (20, 20)
        await fork.close()


async def test_errors_are_the_same(
    opened: Opened, root: Path, client: SyncClient, tmp_path: Path
) -> None:
    with pytest.raises(WorkspaceError, match="is no directory"):
        async with opened(tmp_path / "none", client):
            pass
    with pytest.raises(InvalidArgumentError, match="nested_git"):
        async with opened(root, client, nested_git="never"):
            pass
    with pytest.raises(InvalidArgumentError, match="a client, a store or a URL"):
        async with opened(root, 5):
            pass
    async with opened(root, client) as workspace:
        with pytest.raises(CheckpointNotFoundError):
            await workspace.restore("0" * 40)
        with pytest.raises(InvalidArgumentError, match="outside"):
            await workspace.fork(await workspace.snapshot(), root / "inside")


async def test_a_closed_one_says_so(opened: Opened, root: Path) -> None:
    async with opened(root, "memory://") as workspace:
        snapshot = await workspace.snapshot()
    await workspace.close()

    for work in (workspace.snapshot, workspace.snapshots, lambda: workspace.ls(snapshot)):
        with pytest.raises(StoreClosedError, match="repo"):
            await work()


async def test_what_is_discarded_leaves_nothing_beside_the_store(
    opened: Opened, root: Path, tmp_path: Path
) -> None:
    async with opened(root, f"sqlite:///{tmp_path}/agent.db") as workspace:
        await workspace.snapshot()
        assert len(list((tmp_path / "agent.db.workspaces").iterdir())) == 1
        await workspace.discard()

    assert not list((tmp_path / "agent.db.workspaces").iterdir())


def test_both_have_the_same_methods_and_parameters() -> None:
    def shape(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
        found = inspect.signature(function).parameters.values()
        return [(each.name, each.kind, each.default) for each in found]

    ours = {name: each for name, each in vars(AsyncWorkspace).items() if name[0] != "_"}
    theirs = {name: each for name, each in vars(Workspace).items() if callable(each)}
    of_runs = {"snapshot_for_checkpoint", "saved_with", "works_for", "sessions_known"}
    public = {name for name in theirs if name[0] != "_"} - of_runs
    public -= {f"a{name}" for name in public}

    assert public == {name for name, each in ours.items() if callable(each)} - {"open"}
    for name in (*public, "__init__"):
        assert shape(getattr(AsyncWorkspace, name)) == shape(theirs[name]), name
        assert inspect.iscoroutinefunction(getattr(AsyncWorkspace, name)) == (name[0] != "_")


@pytest.mark.parametrize("kind", ["client", "sync client", "runtime", "store", "url"])
async def test_it_takes_what_a_workspace_takes(kind: str, root: Path, tmp_path: Path) -> None:
    put(root / "file")
    async with Client.memory() as client:
        with SyncClient.memory() as sync_client:
            given: dict[str, Any] = {
                "client": client,
                "sync client": sync_client,
                "runtime": client.runtime,
                "store": MemoryStore(),
                "url": f"sqlite:///{tmp_path}/agent.db",
            }
            async with AsyncWorkspace(root, store=given[kind]) as workspace:
                assert (await workspace.snapshot()).files == 1


async def test_nothing_is_opened_before_it_is_awaited(root: Path, tmp_path: Path) -> None:
    workspace = AsyncWorkspace(root, f"sqlite:///{tmp_path}/agent.db")
    assert not (tmp_path / "agent.db").exists()
    assert repr(workspace) == f"AsyncWorkspace({str(root)!r}, not open)"
    for ask in (lambda: workspace.sync, lambda: workspace.path, lambda: workspace.recovered):
        with pytest.raises(InvalidArgumentError, match=r"await workspace\.open\(\)"):
            ask()

    assert (await workspace.snapshot()).files == 0
    assert workspace.path == str(root)
    assert workspace.name == workspace.sync.name
    assert repr(workspace) == f"Async{workspace.sync!r}"
    await workspace.close()


async def test_it_can_be_opened_without_a_block(root: Path, client: SyncClient) -> None:
    workspace = await AsyncWorkspace(root, client).open()

    assert isinstance(workspace.sync, Workspace)
    assert AsyncWorkspace.of(workspace) is workspace
    await workspace.close()


async def test_a_workspace_has_an_async_form(root: Path, client: SyncClient) -> None:
    put(root / "file")
    with Workspace(root, client) as workspace:
        same = AsyncWorkspace.of(workspace)

        assert same.sync is workspace
        assert (await same.snapshot()).tree_id == workspace.snapshot().tree_id
        await same.close()
        with pytest.raises(StoreClosedError):
            workspace.snapshot()


async def test_the_loop_goes_on_while_files_are_read(root: Path, client: SyncClient) -> None:
    """Each step waits for the loop, so a blocked one would never end."""
    put(root / "file")
    loop, turned = asyncio.get_running_loop(), threading.Event()

    def wait_for_loop(_: int) -> None:
        turned.clear()
        loop.call_soon_threadsafe(turned.set)
        assert turned.wait(60), "the loop stood still"

    workspace = AsyncWorkspace(root, client)
    with at("workspace:reading", wait_for_loop) as passed:
        await workspace.snapshot()
        put(root / "file", "more")
        assert (await workspace.status()).modified == ("file",)
    assert len(passed) == 2
    with at("workspace:staged", wait_for_loop) as passed:
        snapshot = await workspace.snapshot()
        put(root / "file", "even more")
        await workspace.restore(snapshot)
    assert passed
    await workspace.close()


async def test_what_a_callback_sees_is_what_the_caller_sees(root: Path, client: SyncClient) -> None:
    variable = contextvars.ContextVar("variable", default="")
    put(root / "file")
    seen: set[str] = set()
    async with AsyncWorkspace(root, client) as workspace:
        variable.set("mine")
        await workspace.snapshot(progress=lambda done, total: seen.add(variable.get()))

    assert seen == {"mine"}


async def cancelled_at(
    point: str, work: Callable[[], Awaitable[Any]], then: Callable[[], None] = lambda: None
) -> None:
    """Cancel an await while a thread has come to a point, and await its end."""
    loop = asyncio.get_running_loop()
    reached = asyncio.Event()
    go_on = threading.Event()

    def pause(_: int) -> None:
        loop.call_soon_threadsafe(reached.set)
        assert go_on.wait(60)
        then()

    async def working() -> None:
        await work()

    with at(point, pause):
        task = asyncio.create_task(working())
        await reached.wait()
        for _ in range(3):  # who is in a hurry cancels again
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done(), "it is still at work, and nobody waits for it"
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.fixture
async def many(root: Path, client: SyncClient) -> AsyncIterator[tuple[AsyncWorkspace, Snapshot]]:
    for number in range(30):
        put(root / f"d{number % 3}" / f"f{number}", f"{number}")
    async with AsyncWorkspace(root, client) as workspace:
        snapshot = await workspace.snapshot()
        for number in range(30):
            put(root / f"d{number % 3}" / f"f{number}", f"{number} and more")
        yield workspace, snapshot


async def test_a_restore_that_is_cancelled_early_changes_nothing(
    many: tuple[AsyncWorkspace, Snapshot], root: Path
) -> None:
    workspace, snapshot = many
    now = picture(root)

    await cancelled_at("workspace:staging", lambda: workspace.restore(snapshot))

    assert picture(root) == now
    assert not left_behind(root)
    assert (await workspace.restore(snapshot)).written


async def test_a_restore_that_is_cancelled_late_is_carried_out(
    many: tuple[AsyncWorkspace, Snapshot], root: Path
) -> None:
    workspace, snapshot = many

    await cancelled_at("workspace:moved", lambda: workspace.restore(snapshot))

    assert not left_behind(root)
    assert (await workspace.snapshot()).tree_id == snapshot.tree_id
    assert "before a restore" in [each.message for each in await workspace.snapshots()]


async def test_a_snapshot_that_is_cancelled_is_none(
    many: tuple[AsyncWorkspace, Snapshot], root: Path
) -> None:
    workspace, snapshot = many

    await cancelled_at("workspace:listing", lambda: workspace.snapshot("never"))

    assert "never" not in [each.message for each in await workspace.snapshots()]
    assert len((await workspace.status()).modified) == 30
    assert (await workspace.snapshot()).tree_id != snapshot.tree_id


async def test_a_failure_that_nobody_awaits_any_more_is_said(
    many: tuple[AsyncWorkspace, Snapshot], caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("the disk fell out")

    workspace, _ = many
    await cancelled_at("workspace:listing", workspace.status, fail)

    assert "the disk fell out" in caplog.text


async def test_a_fork_that_is_cancelled_is_none(
    many: tuple[AsyncWorkspace, Snapshot], tmp_path: Path
) -> None:
    workspace, snapshot = many

    await cancelled_at("workspace:staging", lambda: workspace.fork(snapshot, tmp_path / "fork"))

    assert not (tmp_path / "fork").exists()
    assert not left_behind(tmp_path)
    await (await workspace.fork(snapshot, tmp_path / "fork")).close()


async def test_opening_that_is_cancelled_leaves_nothing_open(root: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    with Workspace(root, url) as holder:
        workspace = AsyncWorkspace(root, url)
        with holder._local.mutex, holder._alone():  # whoever opens it has to wait
            opening = asyncio.create_task(workspace.__aenter__())
            await asyncio.sleep(0)
            opening.cancel()
            await asyncio.sleep(0)
            assert not opening.done()
        with pytest.raises(asyncio.CancelledError):
            await opening

    with pytest.raises(StoreClosedError):
        await workspace.snapshot()
    with pytest.raises(StoreClosedError):
        workspace.sync.snapshot()


async def test_closing_waits_for_what_is_under_way(root: Path) -> None:
    put(root / "file")
    workspace = await AsyncWorkspace(root, "memory://").open()
    loop, reading, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def pause(_: int) -> None:
        loop.call_soon_threadsafe(reading.set)
        assert go_on.wait(60)

    with at("workspace:reading", pause):
        taking = asyncio.create_task(workspace.snapshot())
        await reading.wait()
        closing = asyncio.create_task(workspace.close())
        await asyncio.sleep(0)
        go_on.set()
        assert (await taking).files == 1
        await closing


OLD = {
    "asnapshot": ("first",),
    "arestore": (0,),
    "afork": (0, "fork"),
    "adiff": (0,),
    "astatus": (),
    "als": (0,),
    "asnapshots": (),
    "aread": (0, "file"),
}


@pytest.mark.parametrize("name", OLD)
async def test_the_old_async_names_still_work_and_say_what_replaces_them(
    name: str, root: Path, client: SyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(root / "file", "one")
    with Workspace(root, client) as workspace:
        first = workspace.snapshot("first")
        args = [first if arg == 0 else arg for arg in OLD[name]]

        with pytest.warns(DeprecationWarning, match=rf"AsyncWorkspace and await .*\.{name[1:]}"):
            found = await getattr(workspace, name)(*args)

        assert type(found) is type(getattr(workspace, name[1:])(*args[:1], *again(args)))


def again(args: list[Any]) -> list[Any]:
    """The same arguments, but for where a fork is made."""
    return ["fork-2" if arg == "fork" else arg for arg in args[1:]]


async def test_a_workspace_entered_by_async_with_says_what_replaces_it(root: Path) -> None:
    with pytest.warns(DeprecationWarning, match="AsyncWorkspace") as said:
        async with Workspace(root, "memory://") as workspace:
            workspace.snapshot()

    assert said[0].filename == __file__
    with pytest.raises(StoreClosedError):
        workspace.snapshot()
