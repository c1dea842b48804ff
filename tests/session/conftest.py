"""Sessions to be tested: both faces, on every store."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import EVERYWHERE, FACES, Face, end, url_of
from tests.session.kit import AGENT, SESSION, Tools, plainly

Open = Callable[..., Any]


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Face:
    """Sync or async."""
    return FACES[request.param]


@pytest.fixture(params=EVERYWHERE)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind, empty."""
    return url_of(request.param, tmp_path)


@pytest.fixture
def client(face: Face, url: str) -> Iterator[Any]:
    """A client of each face on a store of each kind."""
    opened = face.open(url)
    yield plainly(opened)
    end(opened)


@pytest.fixture
def session(client: Any) -> Open:
    """Opens the session of the test, as a program that is started again does."""

    def opened(**options: Any) -> Any:
        return client.session(AGENT, session_id=SESSION, **options)

    return opened


@pytest.fixture
def tools() -> Tools:
    return Tools()
