"""Ctrl-C at every moment of a verb: what was interrupted raises, and all else goes on.

The next use is by another thread, as a lock that was left locked is not felt by who holds it.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.stores.capabilities import tick_of
from tests.clients import STORES, url_of
from tests.interrupts import interruptions

VERBS: dict[str, Callable[[SyncClient, str], Any]] = {
    "save": lambda client, _: client.save("a", execution_state={"step": 1}, session_id="s"),
    "restore": lambda client, first: client.restore(first),
    "find": lambda client, _: client.find(),
    "prune": lambda client, _: client.prune(last=1),
    "gc": lambda client, _: client.gc(),
    "publish": lambda client, _: client.publish("topic", step=1),
    "stats": lambda client, _: client.stats(),
    "tick": lambda client, _: tick_of(client.store),
    "close": lambda client, _: client.close(),
}


# Of a file that was being opened, which Python closes, and of what it interrupts as it cleans up.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("store", STORES)
def test_an_interrupted_verb_leaves_nothing_locked_and_nothing_stale(
    store: str, verb: str, tmp_path: Path
) -> None:
    clients: list[SyncClient] = []
    places = map(tmp_path.joinpath, map(str, count()))

    def begin() -> Callable[[], Any]:
        client = SyncClient.open(url_of(store, next(places)))
        clients.append(client)
        first = client.save("a", execution_state={"step": 0}, session_id="s")
        return lambda: VERBS[verb](client, first)

    def go_on() -> None:
        client = clients[-1]
        if verb != "close":
            saved = client.save("a", execution_state={"step": 2}, session_id="t")
            assert client.restore(saved).execution_state == {"step": 2}
            assert client.find(session_id="t")[0].checkpoint_id == saved
            assert client.verify().ok
        client.close()

    with ThreadPoolExecutor(1) as thread:
        for raised in interruptions(begin):
            assert isinstance(raised, KeyboardInterrupt)
            thread.submit(go_on).result(60)
            del raised
    for client in clients:  # also where an interrupt was lost
        client.close()
