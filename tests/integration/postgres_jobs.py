"""What the processes of test_postgres_processes do beside the jobs of all stores."""

from holdfast import SyncClient
from holdfast.testing.crash_points import kill_at
from tests.integration.concurrency_jobs import AGENT
from tests.integration.fork_server import tell


def save_until_killed(url: str, point: str | None = None, time: int = 1) -> None:
    """One session that goes on where the one before was killed."""
    if point is not None:
        kill_at(point, time)
    with SyncClient.open(url) as client:
        head = client.latest(AGENT, "main")
        step = 0 if head is None else head.step_index + 1
        while True:
            state = {"step": step, "words": [f"{step} {i} " * 40 for i in range(30)]}
            saved = client.save(AGENT, execution_state=state, session_id="main", step_index=step)
            tell([saved, "main", step])
            step += 1
