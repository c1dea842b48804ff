"""Workers on one session that are stopped, woken, killed and overtaken, with clocks that jump.

What their tools do is written to a ledger that outlives them all. Started as a program this is a
small process that forks workers; it has no threads, and its clock can be set (libfaketime).
"""

import fcntl
import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.errors import SessionBusyError, SessionLostError
from tests.clients import FACES, end
from tests.session.kit import AGENT, SESSION, plainly

STEPS = 4
LEASE = 0.15
"""Seconds; whoever is stopped for longer may be overtaken."""
CLOCKS = (0, 0, 1, -1, 60, -60, 3600, -3600, 86400, -86400)
"""Seconds by which a clock is wrong."""


class Ledger:
    """What happened in the world, one line each; never forgotten, and the same for all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def lines(self) -> list[dict[str, Any]]:
        """All that was written."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def add(self, what: str, **about: Any) -> None:
        """Write a line, durably."""
        line = json.dumps({"what": what, "pid": os.getpid(), **about}) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def do(self, tool: str, step: int, key: str) -> str:
        """Carry out an order. Every attempt is written; the same order is carried out once.

        Who was stopped just before may wake up after another was told to try again: a bank knows
        the order by its key.
        """
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = [line for line in self.lines() if line.get("key") == key and "receipt" in line]
            receipt = known[0]["receipt"] if known else f"{tool} {step} by {os.getpid()}"
            self.add(tool, step=step, key=key, receipt=receipt)
        return str(receipt)


class Worker:
    """One process that works on the session to its end, or until it is gone."""

    def __init__(self, ledger: Ledger, chance: random.Random) -> None:
        self.ledger = ledger
        self.chance = chance

    def read(self, step: int, idempotency_key: str) -> str:
        return f"read {step}"

    def pay(self, step: int, idempotency_key: str) -> str:
        return self.ledger.do("pay", step, idempotency_key)

    def book(self, step: int, idempotency_key: str) -> str:
        return self.ledger.do("book", step, idempotency_key)

    def cancel(self, output: str, step: int) -> None:
        raise AssertionError("nothing is rolled back here")

    def set_clock(self) -> None:
        """The clock jumps, forward or back."""
        os.environ["FAKETIME"] = f"{self.chance.choice(CLOCKS):+d}"

    def work(self, run: Any) -> None:
        """The program; it goes on where its state says."""
        for step in range(run.state.get("step", 0), STEPS):
            run.call(self.read, step, effect="read")
            booked = run.call(self.book, step, effect="reversible", compensate=self.cancel)
            run.call(self.read, step)
            paid = run.call(self.pay, step, effect="irreversible")
            self.ledger.add("called", step=step, booked=booked, paid=paid)
            if self.chance.random() < 0.3:
                self.set_clock()
            run.state.setdefault("booked", []).append(booked)
            run.state.setdefault("paid", []).append(paid)
            run.state["step"] = step + 1
            self.ledger.add("saved", id=run.checkpoint(f"step {step}"))

    def decide(self, run: Any) -> None:
        """What an operator does about unknown ends: ask the bank, and say."""
        for effect in run.unknown_effects():
            if effect.kind in ("read", "local"):
                continue
            key = effect.idempotency_key
            known = [line for line in self.ledger.lines() if line.get("key") == key]
            receipts = [line["receipt"] for line in known if "receipt" in line]
            if receipts:
                effect.mark_done(receipts[0])
            else:
                self.ledger.add("try again", key=key)
                effect.retry()


def work(face: str, url: str, ledger: str, seed: str, takeover: bool) -> None:
    """Work on the session; what became of it is the last line that the process writes."""
    world, chance = Ledger(ledger), random.Random(seed)
    worker = Worker(world, chance)
    worker.set_clock()
    opened = FACES[face].open(url)
    how: dict[str, Any] = {"session_id": SESSION, "lease_seconds": LEASE, "takeover": takeover}
    became = "failed"
    try:
        with plainly(opened).session(AGENT, tools=[worker.cancel], **how) as run:
            world.add("opened", id=run.head)
            worker.decide(run)
            worker.work(run)
        became = "finished"
    except SessionLostError:
        became = "lost"
    except SessionBusyError:
        became = "busy"
    finally:
        world.add(became, error=repr(sys.exc_info()[1]))
    end(opened)


def main() -> None:
    """Fork a worker for each line, and answer its number."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    # A clock that is set by libfaketime makes the end of a sleep, as Python asks for it, invalid.
    time.sleep = lambda seconds: select.select([], [], [], float(seconds)) and None
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                work(*json.loads(line))
            finally:
                os._exit(0)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    import holdfast.session.async_run
    import holdfast.session.run
    import holdfast.stores.file.store
    import holdfast.stores.postgres.store
    import holdfast.stores.redis.store
    import holdfast.stores.sqlite.store  # noqa: F401  (so that children need not)

    main()
