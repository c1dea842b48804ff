"""What adapters begin with: the store of a client or of a URL, in threads and on event loops."""

from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, InvalidArgumentError, StoreClosedError, SyncClient
from holdfast.adapters.opening import AdapterStore, opened_workspace
from holdfast.model import make_payload
from holdfast.runtime import steps
from holdfast.verbs import save
from holdfast.workspace import Workspace


def keep(store: AdapterStore, state: Any) -> Any:
    """Return a plan that saves a state, as an adapter's plans do."""
    return save.save(
        store.sync.engine,
        agent_id="a",
        framework="custom",
        payload=make_payload(state, {}),
        session_id="s",
        parent_id=None,
        step_index=0,
        step_name=None,
        ttl_seconds=None,
        metadata={},
        append_only=(),
        events=False,
    )


@pytest.fixture(params=["sync client", "async client", "url"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """What an adapter is given: a client of either kind, or a URL."""
    path = tmp_path / "h.db"
    kinds = {"sync client": SyncClient.sqlite, "async client": Client.sqlite}
    return kinds[request.param](path) if request.param in kinds else f"sqlite:///{path}"


async def close(given: Any) -> None:
    if isinstance(given, Client):
        await given.close()
    elif isinstance(given, SyncClient):
        given.close()


async def test_threads_and_event_loops_work_on_one_store_with_one_memory(given: Any) -> None:
    store = AdapterStore.of(given)

    first = store.sync.run(keep(store, {"n": 1}))
    second = await store.aio.run(keep(store, {"n": 2}))

    assert store.client.restore(second).parent_id == first
    assert store.sync.engine is store.aio.engine
    assert store.sync.url == store.aio.url == store.client.url is not None
    await store.aclose()
    await close(given)


async def test_the_client_that_was_given_is_the_one_that_is_shown() -> None:
    with SyncClient.memory() as client:
        assert AdapterStore.of(client).client is client


@pytest.mark.parametrize("is_async", [False, True])
async def test_only_what_was_opened_is_closed(given: Any, is_async: bool) -> None:
    store = AdapterStore.of(given)
    store.sync.run(keep(store, {"n": 1}))
    await store.aio.run(keep(store, {"n": 2}))

    for _ in range(2):  # twice does nothing
        if is_async:
            await store.aclose()
        else:
            store.close()

    if isinstance(given, str):
        with pytest.raises(StoreClosedError):
            store.sync.run(steps.heads(None))
        with pytest.raises(StoreClosedError):
            await store.aio.run(steps.heads(None))
        with SyncClient.open(given) as again:
            assert len(again.timeline("a", "s")) == 2
    else:
        assert len(store.sync.run(steps.heads(None))) == 1
        assert len(await store.aio.run(steps.heads(None))) == 1
        await close(given)


def test_closing_lets_go_of_the_runs_that_are_open_on_the_client() -> None:
    store = AdapterStore.of("memory://")
    run = store.client.session("a", "s").__enter__()

    store.close()

    with pytest.raises(StoreClosedError):
        run.checkpoint()


def test_without_a_client_or_url_it_is_the_store_that_holdfast_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path / 'named.db'}")

    store = AdapterStore.of(None)

    assert store.is_owned
    assert (tmp_path / "named.db").exists()
    store.close()


@pytest.mark.parametrize("wrong", [7, b"memory://", object(), Path("x.db")])
def test_what_is_no_client_and_no_url_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"not {type(wrong).__name__}"):
        AdapterStore.of(wrong)


def test_a_directory_is_opened_as_a_workspace_and_a_workspace_stays_its_owners(
    tmp_path: Path,
) -> None:
    with SyncClient.memory() as client, Workspace(tmp_path, client) as mine:
        assert opened_workspace(mine, client.runtime) == (mine, False)
        opened, is_owned = opened_workspace(tmp_path, client.runtime)
        with opened:
            assert is_owned
            assert opened.path == mine.path
        with pytest.raises(InvalidArgumentError, match="path of a directory, not int"):
            opened_workspace(5, client.runtime)
