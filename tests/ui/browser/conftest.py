"""One browser for each worker, stores on SQLite and PostgreSQL, and a server for each."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from holdfast import SyncClient
from tests.programs import program
from tests.servers import shared_postgres
from tests.ui import stories
from tests.ui.browser.kit import ARGUMENTS, Server, Viewer

STORES = ("sqlite", "postgresql")
Open = Callable[..., Viewer]


@pytest.fixture(autouse=True, scope="session")
def state_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where links and the like are kept: never in the home of who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, as Debian ships it."""
    path = program("chromium", package="chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


def _new_store(kind: str, directory: Path) -> str:
    if kind == "sqlite":
        return f"sqlite:///{directory / 'holdfast.db'}"
    postgres = shared_postgres()
    return f"{postgres.dsn}?schema={postgres.new_schema()}"


@pytest.fixture(scope="session", params=STORES)
def told(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a store with all the stories; nothing is written to it."""
    directory = tmp_path_factory.mktemp("told")
    store = _new_store(request.param, directory)
    with SyncClient.open(store) as client:
        stories.tell(client, directory)
    with Server(store) as server:
        yield server


@pytest.fixture(scope="session", params=STORES)
def crowded(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a store with very long lines and very many branches."""
    directory = tmp_path_factory.mktemp("crowded")
    store = _new_store(request.param, directory)
    with SyncClient.open(store) as client:
        stories.crowd(client, directory / "files")
    with Server(store, "--read-only") as server:
        yield server


@pytest.fixture(params=STORES)
def store(request: Any, tmp_path: Path) -> str:
    """The address of a new store."""
    return _new_store(request.param, tmp_path)


@pytest.fixture
def client(store: str) -> Iterator[SyncClient]:
    """What another process has at hand: a client of the same store."""
    with SyncClient.open(store) as client:
        yield client


@pytest.fixture
def server(store: str, client: SyncClient) -> Iterator[Server]:
    """A server of the new store."""
    with Server(store) as server:
        yield server


@pytest.fixture
def look(browser: Browser) -> Iterator[Open]:
    """Open the page of a server; nothing may have gone wrong in the browser by the end."""
    with ExitStack() as stack:

        def look(server: Server, **given: Any) -> Viewer:
            viewer = Viewer(browser, server, **given)
            stack.callback(viewer.close)
            return viewer

        yield look


@pytest.fixture
def viewer(look: Open, told: Server) -> Viewer:
    """Somebody who looks at all the stories."""
    return look(told)
