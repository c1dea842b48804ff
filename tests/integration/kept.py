"""What jobs saved, looked at again."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from holdfast import SyncClient
from tests.integration.concurrency_jobs import AGENT, state_at

StateOf = Callable[[str, int], Any]


def assert_all_kept(url: str, *told: Iterable[Any], state_of: StateOf = state_at) -> None:
    """Every save that was told of is whole, and each session an unbroken chain of its steps."""
    sessions: dict[str, list[str]] = {}
    with SyncClient.open(url) as client:
        assert client.verify().ok
        for checkpoint_id, name, step in chain.from_iterable(told):
            checkpoint = client.restore(checkpoint_id)
            assert checkpoint.execution_state == state_of(name, step)
            sessions.setdefault(name, []).append(checkpoint_id)
        for name, ids in sessions.items():
            listed = client.timeline(AGENT, name, limit=None)
            assert [info.checkpoint_id for info in listed] == ids[::-1]
            if "-fork-" not in name:
                assert [info.parent_id for info in listed] == [*ids[-2::-1], None]
