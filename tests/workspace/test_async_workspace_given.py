"""Wherever a Workspace is taken, an AsyncWorkspace does too, opened before or not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, LangGraphAdapter
from holdfast.errors import InvalidArgumentError
from holdfast.workspace import AsyncWorkspace, Workspace
from tests.workspace.kit import put


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Client]:
    async with Client.sqlite(tmp_path / "store" / "agent.db", durability="normal") as client:
        yield client


@pytest.fixture(params=["opened", "not opened yet"])
async def given(
    request: pytest.FixtureRequest, root: Path, store: Client
) -> AsyncIterator[AsyncWorkspace]:
    put(root / "file", "one")
    workspace = AsyncWorkspace(root, store)
    if request.param == "opened":
        await workspace.open()
    yield workspace
    await workspace.close()


async def test_a_checkpoint_holds_its_files(
    store: Client, given: AsyncWorkspace, root: Path, tmp_path: Path
) -> None:
    saved = await store.save("coder", session_id="s", execution_state={}, workspace=given)
    put(root / "file", "two")

    await given.restore(saved)

    assert (root / "file").read_text() == "one"
    elsewhere = await store.restore_workspace(saved, tmp_path / "elsewhere")
    async with AsyncWorkspace.of(elsewhere) as copy:
        assert await copy.read(saved, "file") == b"one"


def test_a_sync_client_takes_it_too(root: Path, tmp_path: Path) -> None:
    put(root / "file", "one")
    with SyncClient.memory() as client:
        saved = client.save("coder", workspace=AsyncWorkspace(root, client))

        client.restore_workspace(saved, tmp_path / "elsewhere").close()

    assert (tmp_path / "elsewhere" / "file").read_text() == "one"


async def test_what_is_no_workspace_is_refused(store: Client, root: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"not PosixPath: .* or AsyncWorkspace\("):
        await store.save("coder", workspace=root)  # type: ignore[arg-type]


def edit_file(root: str) -> None:
    put(Path(root) / "file", "two")


async def test_a_run_captures_it_and_shows_it(
    store: Client, given: AsyncWorkspace, root: Path
) -> None:
    async with store.session("coder", session_id="s", workspace=given) as run:
        assert run.workspace is given
        first = run.head
        await run.call(edit_file, str(root))
        await run.checkpoint("edited")

        await run.rollback(to=first)

        assert (root / "file").read_text() == "one"
        assert not await run.workspace.status()


async def test_forks_of_a_run_have_async_workspaces_of_their_own(
    store: Client, given: AsyncWorkspace, root: Path
) -> None:
    async with store.session("coder", session_id="s", workspace=given) as run:
        (fork,) = await run.fork()

        assert isinstance(fork.workspace, AsyncWorkspace)
        assert fork.workspace.path != str(root)
        put(Path(fork.workspace.path) / "file", "of the fork")
        await fork.checkpoint("edited")
        await run.adopt(fork)

        assert (root / "file").read_text() == "of the fork"


async def test_a_run_of_a_path_has_a_workspace_with_an_async_form(
    store: Client, root: Path
) -> None:
    put(root / "file", "one")
    async with store.session("coder", session_id="s", workspace=root) as run:
        assert isinstance(run.workspace, Workspace)
        put(root / "file", "two")
        assert (await AsyncWorkspace.of(run.workspace).diff(run.head)).modified == ("file",)


def edit(run: Any) -> int:
    return len(put(Path(run.workspace.path) / "file", "a longer text").read_text())


async def test_strategies_work_on_copies_of_it(
    store: Client, given: AsyncWorkspace, root: Path
) -> None:
    async with store.session("coder", session_id="s", workspace=given) as run:
        base = run.head

    found = await store.explore(base, {"edit": edit}, workspace=given)

    assert [str(each.files) for each in found] == ["M file"]
    assert (root / "file").read_text() == "one"


async def test_a_saver_of_langgraph_takes_it(
    store: Client, given: AsyncWorkspace, root: Path
) -> None:
    from langgraph.graph import END, START

    from tests.graphs import Log, new_graph, thread

    def write(state: Log) -> Log:
        put(root / "file", "two")
        return {"log": ["written"]}

    builder = new_graph(Log)
    builder.add_node("write", write)
    builder.add_edge(START, "write")
    builder.add_edge("write", END)
    saver = HoldfastSaver(store, workspace=given)
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, thread("1"), durability="sync")
    put(root / "file", "three")

    assert await saver.arestore_workspace(thread("1")) is given.sync
    assert (root / "file").read_text() == "two"

    state = await graph.aget_state(thread("1"))
    kept = LangGraphAdapter.extract(state, workspace=given)
    assert kept.workspace is not None
