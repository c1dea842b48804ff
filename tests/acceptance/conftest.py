"""Clients to be tested: both faces, on every store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast import CheckpointManager, SyncClient
from tests.acceptance.manager_kit import BACKENDS
from tests.clients import EVERYWHERE, FACES, Face, end, url_of

OpenClient = Callable[[str], SyncClient]


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Face:
    """Sync or async."""
    return FACES[request.param]


@pytest.fixture
def open_client(face: Face) -> Iterator[OpenClient]:
    """Opens clients of a face by URL; all are closed at the end."""
    opened: list[SyncClient] = []

    def open_one(url: str) -> SyncClient:
        opened.append(face.open(url))
        return opened[-1]

    yield open_one
    for client in opened:
        end(client)


@pytest.fixture(params=EVERYWHERE)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind, empty."""
    return url_of(request.param, tmp_path)


@pytest.fixture
def client(open_client: OpenClient, url: str) -> SyncClient:
    """A client of each face on a store of each kind."""
    return open_client(url)


@pytest.fixture(params=BACKENDS)
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointManager]:
    """A manager on each backend."""
    with BACKENDS[request.param](tmp_path) as manager:
        yield manager
