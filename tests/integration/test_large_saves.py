"""A large save that is killed leaves nothing that is seen, and nothing that gc does not take."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.system.crash_points import POINTS
from tests.clients import url_of
from tests.integration.fork_server import ForkServer
from tests.integration.large_jobs import AGENT, state_at

pytestmark = pytest.mark.crash

JOBS = "tests.integration.large_jobs"
STORES = ("sqlite", "file", "redis", "cluster", "postgres")
STEPS = {"redis": "redis+cluster", "cluster": "redis+cluster"}
KILLED = [(store, point) for store in STORES for point in POINTS[STEPS.get(store, store)]]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(JOBS) as server:
        yield server


@pytest.mark.parametrize(("store", "point"), KILLED)
def test_a_large_save_killed_at_a_named_point_is_whole_or_absent(
    store: str, point: str, server: ForkServer, tmp_path: Path
) -> None:
    check(server, tmp_path, store, "save_until_killed", point)


@pytest.mark.parametrize("store", ["sqlite", "redis", "cluster", "postgres"])
@pytest.mark.parametrize("reads", [1, 100, 400])
def test_a_large_save_killed_while_its_chunks_are_sent_is_absent(
    store: str, reads: int, server: ForkServer, tmp_path: Path
) -> None:
    assert not check(server, tmp_path, store, "save_until_the_disk_was_read", reads)


def check(server: ForkServer, directory: Path, store: str, job: str, when: object) -> bool:
    """Kill a save, and return whether it is there: then whole, else without a trace."""
    url, scratch = url_of(store, directory), directory / "scratch"
    scratch.mkdir()

    ended = server.killed(f"{JOBS}:{job}", url, str(scratch), when)

    assert ended.signal == signal.SIGKILL, ended.error
    saved, names = ended.told
    assert names == list(scratch.iterdir()) == []  # what is on disk has no name
    with SyncClient.open(url) as client:
        client.gc(grace_seconds=0)
        chunks = client.stats().chunks
        second = [info for info in client.find(agent_id=AGENT) if info.checkpoint_id != saved]
        assert client.restore(saved).execution_state == state_at(1)
        for info in second:
            assert client.restore(info.checkpoint_id).execution_state == state_at(2)
            client.expire(info.checkpoint_id)
        assert client.verify().ok
        client.gc(grace_seconds=0)
        if not second:
            assert client.stats().chunks == chunks
        alone = client.stats()
        assert alone.checkpoints == 1
        client.expire(saved)
        client.gc(grace_seconds=0)
        assert client.stats().chunks == 0
    return bool(second)
