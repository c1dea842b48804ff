"""No command keeps a Redis server from others for long: each asks for a part, however much is kept.

What a command takes grows with what it is answered, which is counted here, not timed.
"""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Keep, SyncClient
from holdfast.stores.base import NotesOnly, Query
from holdfast.stores.redis.reads import BATCH
from holdfast.stores.redis.store import RedisStore
from holdfast.testing.samples import expired, make_commit, make_note
from tests.integration.redis_kit import LATER, ByHand, Weighed, keep_all, now

pytest_plugins = ["tests.integration.redis_fixtures"]

MANY = 24 * BATCH
PART = 20 * BATCH
"""The largest answer: ten times as many entries as a batch, each with its score."""

WHAT: dict[str, Callable[[SyncClient], Any]] = {
    "stats": lambda client: client.stats().checkpoints,
    "sessions": lambda client: len(client.sessions()),
    "a page of sessions": lambda client: client.sessions(limit=20),
    "all records": lambda client: len(client.store.query(Query(include_expired=True))),
    "all records of an agent": lambda client: client.find(agent_id="agent", limit=None),
    "notes": lambda client: len(client.store.notes(["/log"])),
    "verify": lambda client: client.verify().ok,
    "gc without removing": lambda client: client.gc(grace_seconds=0, dry_run=True),
    "prune": lambda client: client.prune(Keep(last=1)),
    "sweep": lambda client: client.store.sweep(now() + LATER),
    "removing notes": lambda client: client.store.delete(["/log"]),
    "gc": lambda client: client.gc(grace_seconds=0),
}
"""In the order in which they leave enough for those that follow."""


def test_nothing_asks_for_a_whole_listing_at_once(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = expired()
    alone = (make_commit({"n": n}, session_id=f"s{n}", needs_parent=False) for n in range(MANY))
    gone = (make_commit({"n": n}, session_id="gone", **over) for n in range(MANY))
    keep_all(store, alone)
    keep_all(store, gone)
    keep_all(store, (NotesOnly((make_note(key=str(n)),), {}) for n in range(MANY)))
    weighed, client = Weighed(store, monkeypatch), SyncClient(store)

    largest: dict[str, int] = {}
    found: dict[str, Any] = {}
    for name, do in WHAT.items():
        weighed.largest = 0
        found[name] = do(client)
        largest[name] = weighed.largest

    assert {name: size for name, size in largest.items() if size > PART} == {}
    assert all(largest.values())
    assert found["stats"] == found["sessions"] == MANY
    assert found["all records"] == 2 * MANY
    assert found["notes"] == MANY
    assert found["verify"] is True
    assert found["sweep"] == MANY
    assert store.notes(["/log"]) == []
    assert client.stats().checkpoints == MANY


def test_a_listing_in_pages_sees_what_was_based_on_a_record_removed_meanwhile(
    store: RedisStore,
) -> None:
    """One that comes in front of the page that was read, and its base is on a page to come."""
    many = [make_commit({"n": n}, session_id=f"s{n}") for n in range(5 * BATCH)]
    keep_all(store, many)
    listing = ByHand(store, store._plans.query(Query(include_expired=True)))
    listing.go_on()
    derived = make_commit({"n": 0}, base=many[0], session_id="derived")
    store.commit(derived)
    store.delete([many[0].info.checkpoint_id])

    found = {info.checkpoint_id for info in listing.finish()}

    assert derived.info.checkpoint_id in found
    assert {each.info.checkpoint_id for each in many[1:]} <= found
