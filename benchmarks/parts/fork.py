"""An unedited fork, which should not feel the size of the state, and a diff of neighbours."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.contenders import HOLDFAST, HOLDFAST_NORMAL
from benchmarks.contenders.holdfast import Holdfast
from benchmarks.measure import BYTES, RATIO, SECONDS, Results, quiet_collector, scratch
from benchmarks.settings import Settings
from benchmarks.workloads.conversation import growing

PART = "fork"
SIZES = (10, 500, 5_000)
_NEIGHBOURS = 20


async def run(settings: Settings, results: Results) -> None:
    if Holdfast(HOLDFAST).missing():
        results.note(f"{HOLDFAST}: `holdfast` is not installed")
        return
    try:
        results.durability |= {HOLDFAST: "full", HOLDFAST_NORMAL: "normal"}
        with scratch(settings.directory) as home, quiet_collector():
            _forks(settings, results, home)
            _diffs(settings, results, home)
    except Exception as error:
        results.note(f"{HOLDFAST} retired from {PART}: {type(error).__name__}: {error}")


def _forks(settings: Settings, results: Results, home: Path) -> None:
    """Without waiting for the disk, so that work in proportion to the state would show."""
    forks = settings.pick(quick=50, full=200)
    stores = {size: Holdfast(HOLDFAST_NORMAL, durability="normal") for size in SIZES}
    heads, before = {}, {}
    for size, store in stores.items():
        directory = home / str(size)
        directory.mkdir()
        store.open_now(directory)
        (_, state), *_ = islice(growing(start=size), 1)
        heads[size] = store.client.save("agent", execution_state=state, session_id="main")
        store.close_now()
        before[size] = store.bytes()
        store.open_now(directory)
        store.client.fork(heads[size], session_id="warm-up")
    for number in range(forks):
        for size, store in stores.items():
            start = perf_counter()
            store.client.fork(heads[size], session_id=f"fork-{number}")
            took = perf_counter() - start
            results.add(PART, f"fork at {size:,}", HOLDFAST_NORMAL, took, SECONDS)
    for size, store in stores.items():
        store.close_now()
        each = (store.bytes() - before[size]) / (forks + 1)
        results.add(PART, f"bytes of a fork at {size:,}", HOLDFAST_NORMAL, each, BYTES)
    _compare(results, SIZES[0], SIZES[-1])


def _compare(results: Results, small: int, large: int) -> None:
    slow = results.figures[PART, f"fork at {large:,}", HOLDFAST_NORMAL].value
    fast = results.figures[PART, f"fork at {small:,}", HOLDFAST_NORMAL].value
    name = f"fork at {large:,} ÷ at {small:,}"
    results.add(PART, name, HOLDFAST_NORMAL, slow / fast, RATIO)


def _diffs(settings: Settings, results: Results, home: Path) -> None:
    directory = home / "diff"
    directory.mkdir()
    store = Holdfast(HOLDFAST, durability="full")
    store.open_now(directory)
    ids = [
        store.client.save("agent", execution_state=state, session_id="main", step_index=step)
        for step, state in islice(growing(start=500 - _NEIGHBOURS), _NEIGHBOURS + 1)
    ]
    store.close_now()
    for _ in range(settings.pick(quick=2, full=5)):
        store.open_now(directory)
        store.client.diff(ids[0], ids[1])
        for older, newer in pairwise(ids[1:]):
            start = perf_counter()
            _read_whole(store.client.diff(older, newer))
            results.add(PART, "diff of neighbours", HOLDFAST, perf_counter() - start, SECONDS)
        store.close_now()


def _read_whole(diff: Any) -> None:
    """A diff may be lazy; ask for all of it."""
    _ = diff.added, diff.removed, diff.changed
