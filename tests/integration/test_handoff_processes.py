"""Handoffs between real processes: one winner, and nothing lost when a worker is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SyncClient
from tests.clients import PERSISTENT, SERVERS, url_of

SUPERVISOR = Path(__file__).parents[2] / "examples" / "handoff" / "supervisor.py"

ACCEPT = """
import sys
from holdfast import HandoffError, SyncClient
url, offer = sys.argv[1:]
with SyncClient.open(url) as client:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print(client.accept(offer).checkpoint_id)
    except HandoffError as error:
        print("lost:", error)
"""


@pytest.fixture(params=(*PERSISTENT, *SERVERS))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


def test_of_six_processes_one_wins(url: str) -> None:
    with SyncClient.open(url) as client:
        offered = client.handoff(client.save("clerk", session_id="s"), "approver")
        command = [sys.executable, "-c", ACCEPT, url, offered]
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(6)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()

        said = [worker.communicate()[0].strip() for worker in workers]

        (winner,) = [line for line in said if not line.startswith("lost:")]
        assert client.restore(winner).agent_id == "approver"
        assert len(client.sessions("approver")) == 1


def test_a_killed_workers_job_is_taken_over_and_nothing_is_lost_or_done_twice(url: str) -> None:
    done = subprocess.run([sys.executable, SUPERVISOR, url], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 jobs completed, 12 steps, none twice" in done.stdout
