"""expire, gc and stats: what goes, what stays, what is counted."""

import pytest

from holdfast import CheckpointNotFoundError, InvalidArgumentError, SyncClient
from holdfast.stores.base import Collected

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


def state(step: int) -> dict[str, object]:
    return {"step": step, "messages": [f"message {i} " * 20 for i in range(100 + step)]}


def test_an_expired_checkpoint_is_gone_at_once(client: SyncClient) -> None:
    saved = client.save("coder", session_id="s")

    assert client.expire(saved) is True

    with pytest.raises(CheckpointNotFoundError):
        client.restore(saved)
    assert client.find() == []
    assert client.expire(saved) is False


@pytest.mark.parametrize("unknown", [NEVER_SAVED, NEVER_SAVED[:10], "nothing"])
def test_expiring_what_is_not_there_says_so(client: SyncClient, unknown: str) -> None:
    assert client.expire(unknown) is False


def test_expiring_the_head_makes_the_one_before_it_the_head(client: SyncClient) -> None:
    saved = [client.save("coder", execution_state=state(i), session_id="s") for i in range(3)]

    client.expire(saved[-1])

    latest = client.latest("coder", "s")
    assert latest is not None
    assert latest.checkpoint_id == saved[1]
    after = client.save("coder", execution_state=state(9), session_id="s")
    assert client.restore(after).parent_id == saved[1]
    assert client.restore(after).execution_state == state(9)


def test_collecting_removes_chunks_that_nobody_needs(client: SyncClient) -> None:
    if not client.store.shares_chunks:
        return
    kept = client.save("coder", execution_state=state(0))
    before = client.stats()
    client.expire(client.save("coder", execution_state={"gone": ["x" * 50] * 500}))
    dead = client.stats().chunks - before.chunks

    assert client.gc(grace_seconds=0, dry_run=True).chunks == dead
    collected = client.gc(grace_seconds=0)

    assert collected.chunks == dead
    assert collected.bytes > 0
    assert client.stats() == before
    assert client.restore(kept).execution_state == state(0)


def test_collecting_spares_what_was_written_within_the_grace(client: SyncClient) -> None:
    client.expire(client.save("coder", execution_state=state(0)))
    before = client.stats().chunks

    assert client.gc() == Collected(0, 0)
    assert client.gc(grace_seconds=60) == Collected(0, 0)

    assert client.stats().chunks == before


def test_collecting_never_touches_what_others_share(client: SyncClient) -> None:
    saved = [client.save("coder", execution_state=state(i), session_id="s") for i in range(10)]
    fork = client.fork(saved[0])
    for checkpoint_id in saved[:9]:
        client.expire(checkpoint_id)

    client.gc(grace_seconds=0)

    assert client.restore(saved[9]).execution_state == state(9)
    assert client.restore(fork).execution_state == state(0)
    assert client.verify().ok


def test_collecting_removes_what_has_expired(client: SyncClient) -> None:
    client.save("coder", execution_state=state(0), ttl_seconds=0)
    assert client.store.match("", 10)

    client.gc(grace_seconds=0)

    assert client.store.match("", 10) == []
    assert client.stats().chunks == 0


def test_a_dry_run_removes_nothing(client: SyncClient) -> None:
    client.save("coder", execution_state=state(0), ttl_seconds=0)

    client.gc(grace_seconds=0, dry_run=True)

    assert len(client.store.match("", 10)) == 1


def test_saving_goes_on_after_everything_was_collected(client: SyncClient) -> None:
    client.expire(client.save("coder", execution_state=state(0), session_id="s"))
    client.gc(grace_seconds=0)

    saved = client.save("coder", execution_state=state(1), session_id="s")

    assert client.restore(saved).execution_state == state(1)


@pytest.mark.parametrize("grace", [-1, float("nan"), "an hour", None])
def test_a_grace_that_makes_no_sense_is_refused(client: SyncClient, grace: float) -> None:
    with pytest.raises(InvalidArgumentError, match="grace_seconds"):
        client.gc(grace_seconds=grace)


def test_stats_tell_how_much_is_held_and_how_well_it_is_shared(client: SyncClient) -> None:
    for step in range(20):
        client.save("coder", execution_state=state(step), session_id="s")
    client.save("reviewer", execution_state=state(0))

    stats = client.stats()

    assert (stats.checkpoints, stats.sessions) == (21, 2)
    assert stats.logical_bytes == sum(info.size for info in client.find(limit=None))
    if client.store.shares_chunks:
        assert stats.sharing > 10
