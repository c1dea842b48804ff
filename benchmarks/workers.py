"""Worker processes that save on request: `python -m benchmarks.workers CONTENDER DIRECTORY NUMBER`.

A worker opens the store, says "ready", and for every number it reads saves that often and
says "done". Starting Python and importing the contender are thus never timed.
"""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path
from types import TracebackType

from benchmarks.contenders import SYNC
from benchmarks.workloads.states import small

_ROOT = Path(__file__).parent.parent


class Workers:
    """A crew of `count` processes for each contender."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._crews: dict[str, list[subprocess.Popen[str]]] = {}

    def start(self, contender: str, directory: Path) -> None:
        self._crews[contender] = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.workers", contender, directory, str(number)],
                cwd=_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(self._count)
        ]
        for worker in self._crews[contender]:
            _expect(worker, "ready")

    def burst(self, contender: str, saves: int) -> None:
        """Let every process of the crew save `saves` times, all at once."""
        for worker in self._crews[contender]:
            assert worker.stdin
            worker.stdin.write(f"{saves}\n")
            worker.stdin.flush()
        for worker in self._crews[contender]:
            _expect(worker, "done")

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for crew in self._crews.values():
            for worker in crew:
                worker.communicate()


def _expect(worker: subprocess.Popen[str], word: str) -> None:
    assert worker.stdout
    assert worker.stderr
    said = worker.stdout.readline().strip()
    if said != word:
        lines = worker.stderr.read().strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"a worker said {said!r}, not {word!r}")


def main(contender_name: str, directory: str, number: str) -> None:
    contender = SYNC[contender_name]()
    contender.open_now(Path(directory))
    states = small(seed=int(number))
    print("ready", flush=True)
    for line in sys.stdin:
        for step, state in islice(states, int(line)):
            contender.save_now(step, state, f"process-{number}")
        print("done", flush=True)
    contender.close_now()


if __name__ == "__main__":
    main(*sys.argv[1:])
