"""What the tests of the page need: those in a browser run where `make ui` brought the checker."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from tests.clients import url_of
from tests.ui import stories
from tests.ui.kit import Api

collect_ignore = [] if "HOLDFAST_AXE" in os.environ else ["browser"]
STORES = ("memory", "sqlite", "redis", "postgres")


@pytest.fixture(params=STORES)
def told(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SyncClient]:
    """A client of a store that holds all the stories."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with SyncClient.open(url_of(request.param, tmp_path)) as client:
        stories.tell(client, tmp_path)
        yield client


@pytest.fixture
def api(told: SyncClient) -> Api:
    """The interface over that store."""
    return Api(told)
