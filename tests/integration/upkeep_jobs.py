"""What the children do that test_upkeep_parts kills: prune and collect, in very small parts."""

from holdfast import SyncClient
from holdfast.stores.file import writes as file_writes
from holdfast.stores.sqlite import writes as sqlite_writes
from holdfast.testing import crash_points

AGENT = "agent"
SESSIONS, STEPS = 3, 12


def in_small_parts() -> None:
    """Have every store go on to the next part as soon as it can."""
    sqlite_writes.PART_SECONDS = 0.0
    file_writes._PART = 2


def fill(client: SyncClient) -> None:
    """Save sessions of which a prune keeps the last steps."""
    for session in range(SESSIONS):
        for step in range(STEPS):
            client.save(
                AGENT,
                execution_state={"of": session, "step": step, "large": f"{session} {step} " * 2000},
                session_id=f"s{session}",
                step_index=step,
            )


def look_after(client: SyncClient) -> None:
    """Prune and collect."""
    client.prune(last=2)
    client.gc(grace_seconds=0)


def look_after_until_killed(url: str, point: str, time: int) -> None:
    """Prune and collect, and die at a point."""
    in_small_parts()
    with SyncClient.open(url) as client:
        crash_points.kill_at(point, time)
        look_after(client)
