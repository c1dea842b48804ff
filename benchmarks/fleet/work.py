"""What one process of a fleet does: ``python -m benchmarks.fleet.work URL NUMBER``.

It says "ready" when it is, and for every line ``WORK SECONDS`` does that as often as it can in so
many seconds, and says how often, and for how long the slowest took.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter

from benchmarks.workloads.states import small
from holdfast import SyncClient
from holdfast.ids import new_id
from holdfast.session.lease import acquire
from holdfast.verbs.leases import renew

AGENT = "agent"


def publish_together(client: SyncClient, number: int) -> Iterator[None]:
    """Publish on a channel that all others publish on."""
    for step in count():
        client.publish("everybody", data={"by": number, "step": step})
        yield


def publish_apart(client: SyncClient, number: int) -> Iterator[None]:
    """Publish on a channel of its own."""
    for step in count():
        client.publish(f"of {number}", data={"step": step})
        yield


def renew_leases(client: SyncClient, number: int) -> Iterator[None]:
    """Renew the lease of a session of its own."""
    engine = client.runtime.engine
    taking = acquire(engine, AGENT, f"leased by {number} {new_id()}", 30.0, False)
    lease = client.runtime.run(taking)
    while True:
        lease = client.runtime.run(renew(engine, lease))
        yield


def save_equal(client: SyncClient, number: int) -> Iterator[None]:
    """Save a state that all sessions have first, each time in a new session."""
    _, state = next(small(seed=0))
    while True:
        client.save(AGENT, execution_state=state, session_id=new_id())
        yield


def save_apart(client: SyncClient, number: int) -> Iterator[None]:
    """Save states that nobody else has, step by step in a session of its own."""
    session = new_id()
    for _, state in small(seed=number):
        client.save(AGENT, execution_state={**state, "by": session}, session_id=session)
        yield


WORK: dict[str, Callable[[SyncClient, int], Iterator[None]]] = {
    "publish on one channel": publish_together,
    "publish, a channel each": publish_apart,
    "renew leases": renew_leases,
    "save equal first states": save_equal,
    "save, a session each": save_apart,
}


def main(url: str, number: str) -> None:
    with SyncClient.open(url) as client:
        begun = {name: work(client, int(number)) for name, work in WORK.items()}
        for work in begun.values():
            next(work)
        print("ready", flush=True)
        for line in sys.stdin:
            name, _, seconds = line.strip().rpartition(" ")
            done, longest, now = 0, 0.0, perf_counter()
            end = now + float(seconds)
            while now < end:
                before = now
                next(begun[name])
                now = perf_counter()
                done, longest = done + 1, max(longest, now - before)
            print(done, longest, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
