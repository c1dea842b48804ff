"""Two strategies from one checkpoint, compared; the better one is adopted.

An agent has collected reviews and has to summarise them. One strategy reads them all, the other
samples. Both run on the same state, in sessions of their own; a score picks the winner, and the
session goes on from there.

Run it: python explore.py [store URL]
"""

import sys
from typing import Any

from holdfast import Run, SyncClient

STARS = [5, 4, 5, 1, 2, 5, 4, 5, 3, 5, 1, 5]


def read(number: int) -> int:
    """The tool: reads one review; every call costs."""
    return STARS[number]


def thorough(run: Run) -> None:
    """Read everything."""
    stars = [run.call(read, number, effect="read") for number in run.state["reviews"]]
    run.state["mean"] = sum(stars) / len(stars)


def sample(run: Run) -> None:
    """Read every third one."""
    stars = [run.call(read, number, effect="read") for number in run.state["reviews"][::3]]
    run.state["mean"] = sum(stars) / len(stars)
    run.state["sampled"] = True


def score(run: Run) -> float:
    """Right is good, and every call costs a little."""
    error: float = abs(run.state["mean"] - sum(STARS) / len(STARS))
    return -error - 0.02 * len(run.effects)


def main(url: str) -> None:
    with SyncClient.open(url) as client:
        with client.session("critic", session_id="reviews") as run:
            run.state["reviews"] = list(range(len(STARS)))
            base = run.checkpoint("collected")

        found = client.explore(base, {"thorough": thorough, "sample": sample}, score=score)
        print(found)
        for outcome in found:
            print(f"\n{outcome.name} changed:\n{outcome.changes}")

        winner: Any = found.winner
        with client.session("critic", session_id="reviews") as run:
            run.adopt(winner.session_id)
            print(f"\nadopted {winner.name}: a mean of {run.state['mean']:.2f} stars")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "memory://")
