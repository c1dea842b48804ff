"""What the children do that test_object_packs kills: save, collect and move, in small packs."""

import random
from typing import Any

from holdfast import SyncClient
from holdfast.stores.objects import packs, removal
from holdfast.testing import crash_points
from tests.integration.fork_server import tell

AGENT = "agent"


def in_small_packs() -> None:
    """Have a state take several packs, and gc put many small ones together."""
    packs.PACK_BYTES = 20_000
    removal._SMALL, removal._ENOUGH = 5_000, 3


def state_at(session: str, step: int) -> dict[str, Any]:
    """The state of a session at a step: some of it is that of all, some that of the session."""
    return {
        "all": random.Random("all").randbytes(30_000),
        "session": random.Random(session).randbytes(9_000),
        "step": random.Random(f"{session} {step}").randbytes(3_000),
    }


def save_and_collect_until_killed(url: str, point: str, time: int) -> None:
    """Save sessions and expire parts of them, collect after each, and die at a point."""
    in_small_packs()
    with SyncClient.open(url) as client:
        begun = len(client.sessions(AGENT))
        crash_points.kill_at(point, time)
        for number in range(begun, begun + 12):
            session = f"s{number}"
            for step in range(3):
                saved = client.save(
                    AGENT,
                    execution_state=state_at(session, step),
                    session_id=session,
                    step_index=step,
                )
                tell([saved, session, step])
            if number % 2:
                for info in client.timeline(AGENT, f"s{number - 1}", limit=None)[1:]:
                    tell([info.checkpoint_id, None, 0])
                    client.expire(info.checkpoint_id)
                client.gc(grace_seconds=0)
