"""Measure a fleet: ``python -m benchmarks.fleet [--writers 1,2,4,8,16] [--seconds S]``.

So many processes write to a PostgreSQL server that is started for it; rates of all together.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from benchmarks.fleet.server import Watched
from benchmarks.fleet.work import WORK
from tests.servers import PostgresServer

_ROOT = Path(__file__).parent.parent.parent
_HEAD = "| work | writers | a second | slowest ms | server's CPUs | what its connections did |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--writers", default="1,2,4,8,16", help="how many (%(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run (%(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="medians of so many runs")
    parser.add_argument("--commit", default="on", help="synchronous_commit (%(default)s)")
    options = parser.parse_args(arguments)
    numbers = [int(number) for number in options.writers.split(",")]
    with PostgresServer() as server, ExitStack() as crews:
        server.execute(f"ALTER SYSTEM SET synchronous_commit = '{options.commit}'")
        server.execute("SELECT pg_reload_conf()")
        (((version,),), ((commit,),)) = (
            server.execute(f"SHOW {name}") for name in ("server_version", "synchronous_commit")
        )
        print(f"PostgreSQL {version}, fsync = on, synchronous_commit = {commit}\n")
        crew = crews.enter_context(_crew(server.dsn, max(numbers)))
        print(f"{_HEAD}\n|{'---|' * _HEAD.count(' | ')}---|")
        for work in WORK:
            for number in numbers:
                print(_row(server, crew[:number], work, options.seconds, options.repeat))


@contextmanager
def _crew(url: str, number: int) -> Iterator[list[subprocess.Popen[str]]]:
    crew = []
    for each in range(number):
        command = [sys.executable, "-m", "benchmarks.fleet.work", url, str(each)]
        worker = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        crew.append(worker)
        _told(worker)  # the first makes the tables
    try:
        yield crew
    finally:
        for worker in crew:
            worker.communicate()


def _told(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError("a writer has ended")
    return line


def _row(
    server: PostgresServer,
    crew: Sequence[subprocess.Popen[str]],
    work: str,
    seconds: float,
    repeat: int,
) -> str:
    runs = [_run(server, crew, work, seconds) for _ in range(repeat)]
    rate = median(rate for rate, _, _ in runs)
    slowest = median(slowest for _, slowest, _ in runs)
    _, _, seen = min(runs, key=lambda run: abs(run[0] - rate))
    return (
        f"| {work} | {len(crew)} | {rate:,.0f} | {slowest * 1000:,.0f} "
        f"| {seen.processors:.2f} | {seen.waits} |"
    )


def _run(
    server: PostgresServer, crew: Sequence[subprocess.Popen[str]], work: str, seconds: float
) -> tuple[float, float, Watched]:
    with Watched(server) as seen:
        for worker in crew:
            assert worker.stdin
            worker.stdin.write(f"{work} {seconds}\n")
            worker.stdin.flush()
        told = [_told(worker).split() for worker in crew]
    rate = sum(int(done) for done, _ in told) / seconds
    return rate, max(float(longest) for _, longest in told), seen


if __name__ == "__main__":
    main()
