"""A supervisor and two workers, in three processes, pass work through checkpoints.

One worker is killed after it has claimed a job and done half of it. When its lease ends the job is
back in the inbox, and the other worker goes on from what was saved: nothing is lost or done twice.

Run it: python supervisor.py [store URL]
"""

import multiprocessing
import os
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass

from holdfast import SyncClient

JOBS = 6
LEASE = 1.0


@dataclass
class Job:
    """What supervisor and workers agreed on."""

    number: int
    steps_done: int


def work(url: str, name: str, dies: bool) -> None:
    """Take jobs until there are none for a while; each has two steps."""
    with SyncClient.open(url) as client:
        while job := client.take(
            "worker", Job, worker=name, lease_seconds=LEASE, timeout=3 * LEASE
        ):
            state = dict(job.execution_state)
            while state["steps_done"] < 2:
                state["steps_done"] += 1
                client.save(
                    "worker",
                    execution_state=state,
                    session_id=job.session_id,
                    step_name=f"step {state['steps_done']} by {name}",
                )
                if dies:
                    os.kill(os.getpid(), signal.SIGKILL)
            client.complete(job.checkpoint_id)


def supervise(url: str) -> None:
    with SyncClient.open(url) as client:
        offers = []
        for number in range(JOBS):
            saved = client.save("supervisor", execution_state={"number": number, "steps_done": 0})
            offers.append(client.handoff(saved, "worker", contract=Job))
        print(f"{len(client.inbox('worker'))} jobs offered")

        start = multiprocessing.get_context("spawn").Process
        doomed = start(target=work, args=(url, "worker-1", True))
        doomed.start()
        doomed.join()
        print("worker-1 was killed in the middle of a job")
        other = start(target=work, args=(url, "worker-2", False))
        other.start()

        settled = 0
        for event in client.subscribe("settled:supervisor", timeout=60):
            settled += event.data["kind"] == "completed"
            if settled == JOBS:
                break
        other.join()

        steps = Counter()
        for session in client.sessions("worker"):
            for info in client.timeline("worker", session.session_id):
                if info.step_name and info.step_name.startswith("step"):
                    steps[session.session_id, info.step_name.split(" by ")[0]] += 1
        assert len(steps) == 2 * JOBS, "every step of every job was done"
        assert set(steps.values()) == {1}, "and none of them twice"
        print(f"{settled} jobs completed, {sum(steps.values())} steps, none twice")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        supervise(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as directory:
            supervise(f"sqlite:///{directory}/work.db")
