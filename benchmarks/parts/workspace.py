"""W: keeping the files of a directory, against git in a shadow repository."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from benchmarks.contenders import TREES
from benchmarks.contenders.trees import TreeContender
from benchmarks.measure import BYTES, Field, Results, quiet_collector, scratch
from benchmarks.settings import Settings
from benchmarks.workloads.trees import edit, edit_in_place, make_large, make_tree

FIRST, NONE, ONE, HUNDRED = "first", "none", "one", "hundred"
RESTORE_ONE, RESTORE_ALL, FORK, KEPT = "restore one", "restore all", "fork", "bytes kept"
LARGE_EDIT, LARGE_BYTES = "one edit", "bytes of an edit"
_SETTLED = 0.1
"""Seconds after which a file is no longer too fresh to be known by its times, for anyone."""


async def w1(settings: Settings, results: Results) -> None:
    """2,000 files, 30 MB."""
    for _ in range(settings.repeat):
        await _small_files("W-1", 2_000, 30_000_000, settings, results)


async def w2(settings: Settings, results: Results) -> None:
    """20,000 files, 300 MB, most of it a node_modules."""
    files = settings.pick(quick=5_000, full=20_000)
    await _small_files("W-2", files, files * 15_000, settings, results)


async def w3(settings: Settings, results: Results) -> None:
    """100,000 small files."""
    files = settings.pick(quick=10_000, full=100_000)
    await _small_files("W-3", files, files * 300, settings, results)


async def w4(settings: Settings, results: Results) -> None:
    """One file of 2 GB of which a few bytes change in place."""
    size = settings.pick(quick=100, full=2_048) * 2**20
    with scratch(settings.directory) as home, quiet_collector():
        field = _field("W-4", results, home)
        for contender in field.standing:
            make_large(_tree(home, contender) / "model.bin", size)
        await field.open()
        results.add_turn("W-4", FIRST, await field.turn(_snapshot))
        await field.close()
        before = {contender.name: contender.bytes() for contender in field.standing}
        for contender in field.standing:
            contender.open_now()
            contender.snapshot()
        for number in range(settings.pick(quick=1, full=2)):
            for contender in field.standing:
                edit_in_place(contender.tree / "model.bin", size // 3 * (number + 1), number)
            await asyncio.sleep(_SETTLED)
            results.add_turn("W-4", LARGE_EDIT, await field.turn(_snapshot))
        results.add_turn("W-4", NONE, await field.turn(_snapshot))
        await field.close()
        for contender in field.standing:
            each = (contender.bytes() - before[contender.name]) / settings.pick(quick=1, full=2)
            results.add("W-4", LARGE_BYTES, contender.name, each, BYTES)


def _field(part: str, results: Results, home: Path) -> Field[TreeContender]:
    return Field(part, (make() for make in TREES.values()), results, home)


def _tree(home: Path, contender: TreeContender) -> Path:
    return home / contender.name.replace(" ", "-").replace(",", "") / "tree"


def _wipe(contender: TreeContender) -> None:
    """Leave nothing in a tree; what was there is moved, as deleting it would slow down the next."""
    gone = contender.tree.with_name("gone")
    gone.mkdir()
    for path in list(contender.tree.iterdir()):
        path.rename(gone / path.name)


async def _snapshot(contender: TreeContender) -> str:
    return contender.snapshot()


async def _small_files(
    part: str, files: int, size: int, settings: Settings, results: Results
) -> None:
    with scratch(settings.directory, until_exit=True) as home, quiet_collector():
        field = _field(part, results, home)
        made: list[str] = []
        for contender in field.standing:
            tree = _tree(home, contender)
            made = [str(path.relative_to(tree)) for path in make_tree(tree, files, size)]
        await field.open()
        await asyncio.sleep(_SETTLED)
        await _Course(part, field, results, made).run(settings.pick(quick=2, full=5))


class _Course:
    """The operations on one directory, each by every contender in turn."""

    def __init__(
        self, part: str, field: Field[TreeContender], results: Results, files: list[str]
    ) -> None:
        self._part = part
        self._field = field
        self._results = results
        self._files = files
        self._chance = random.Random(part)
        self._edits = 0
        self._last: dict[str, str] = {}

    async def run(self, times: int) -> None:
        await self._take(FIRST)
        first = dict(self._last)
        await asyncio.sleep(_SETTLED)
        await self._take(None)
        for _ in range(times):
            await self._take(NONE)
        for _ in range(times):
            self._edit(1)
            await self._take(ONE)
        for _ in range(times):
            self._edit(100)
            await self._take(HUNDRED)
        await asyncio.sleep(_SETTLED)
        await self._take(None)
        for _ in range(times):
            before = dict(self._last)
            self._edit(1)
            await self._restore(RESTORE_ONE, before)
        await self._field.close()
        self._field.measure_bytes(KEPT)
        for contender in self._field.standing:
            contender.open_now()
        for number in range(2):

            async def fork(contender: TreeContender, number: int = number) -> None:
                contender.fork(first[contender.name], number)

            self._results.add_turn(self._part, FORK, await self._field.turn(fork))
        for contender in self._field.standing:
            _wipe(contender)
        await self._restore(RESTORE_ALL, first)
        await self._field.close()

    async def _take(self, quantity: str | None) -> None:
        async def take(contender: TreeContender) -> None:
            self._last[contender.name] = contender.snapshot()

        took = await self._field.turn(take)
        if quantity is not None:
            self._results.add_turn(self._part, quantity, took)

    async def _restore(self, quantity: str, snapshots: dict[str, str]) -> None:
        async def restore(contender: TreeContender) -> None:
            contender.restore(snapshots[contender.name])

        self._results.add_turn(self._part, quantity, await self._field.turn(restore))

    def _edit(self, files: int) -> None:
        self._edits += 1
        chosen = self._chance.sample(self._files, files)
        for contender in self._field.standing:
            for file in chosen:
                edit(contender.tree / file, self._edits)
        time.sleep(_SETTLED)
