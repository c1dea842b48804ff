"""Explore: several strategies from one checkpoint, on equal state and files, and a comparison."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from holdfast.core.diff import Diff
from holdfast.errors import InvalidArgumentError
from holdfast.model import Checkpoint, CheckpointInfo
from holdfast.runtime import AsyncRuntime, SyncRuntime
from holdfast.session.async_run import AsyncRun
from holdfast.session.core import Options
from holdfast.session.run import Run
from holdfast.session.run_base import files_of, options_of
from holdfast.stores.shared.unfinished import Unfinished
from holdfast.system.private_files import make_directory
from holdfast.verbs import save
from holdfast.verbs.read import diff, get_info, restore

if TYPE_CHECKING:
    from holdfast.workspace import TreeDiff, Workspace

Strategy = Callable[[Any], Any]
Status = Literal["done", "failed", "timed out", "stopped"]
Progress = Callable[["Outcome"], object]
Base = str | Checkpoint | CheckpointInfo


@dataclass(frozen=True)
class Outcome:
    """What became of one strategy."""

    name: str
    session_id: str
    status: Status
    score: float | None = None
    result: Any = None
    error: str | None = None
    seconds: float = 0.0
    calls: int = 0
    """How many tool calls it made."""
    checkpoint_id: str | None = None
    """Where it stands at the end."""
    changes: Diff | None = None
    """What it changed in the state."""
    files: TreeDiff | None = None
    """What it changed in the workspace."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as ``to_json`` writes it."""
        return {
            "name": self.name,
            "session_id": self.session_id,
            "status": self.status,
            "score": self.score,
            "error": self.error,
            "seconds": round(self.seconds, 3),
            "calls": self.calls,
            "checkpoint_id": self.checkpoint_id,
            "state_changes": 0 if self.changes is None else len(self.changes),
            "file_changes": _count(self.files),
        }


def _count(files: TreeDiff | None) -> int:
    if files is None:
        return 0
    changes = (files.added, files.removed, files.modified, files.renamed, files.mode)
    return sum(map(len, changes))


@dataclass(frozen=True)
class Exploration:
    """What became of all strategies, and which was best."""

    base_id: str
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def winner(self) -> Outcome | None:
        """The strategy that was done with the highest score; the first of equal ones."""
        done = [each for each in self.outcomes if each.status == "done"]
        scored = [(each.score, each) for each in done if each.score is not None]
        comparable = [pair for pair in scored if not math.isnan(pair[0])]
        return max(comparable, key=lambda pair: pair[0], default=(0, None))[1]

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __getitem__(self, name: str) -> Outcome:
        for each in self.outcomes:
            if each.name == name:
                return each
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        winner = self.winner
        return {
            "base_id": self.base_id,
            "winner": None if winner is None else winner.name,
            "outcomes": [each.as_dict() for each in self.outcomes],
        }

    def to_json(self) -> str:
        """The comparison as JSON."""
        return json.dumps(self.as_dict(), indent=2)

    def __str__(self) -> str:
        winner = self.winner
        rows = [["", *_COLUMNS]]
        for each in self.outcomes:
            data = each.as_dict()
            rows.append(
                [
                    "*" if each is winner else "",
                    each.name,
                    each.status,
                    "" if each.score is None else f"{each.score:g}",
                    f"{each.seconds:.1f}",
                    str(each.calls),
                    str(data["state_changes"]),
                    str(data["file_changes"]),
                    (each.error or "")[:60],
                ]
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines)


_COLUMNS = ("strategy", "status", "score", "seconds", "calls", "state", "files", "error")


@dataclass(frozen=True)
class Job:
    """What another thread, process or machine needs to try one strategy."""

    name: str
    agent_id: str
    session_id: str
    strategy: Strategy
    score: Callable[..., Any] | None
    workspace: str | None
    """The directory that was made for it, if one was named."""
    files: dict[str, Any] | None
    """The files of the checkpoint."""


@dataclass(frozen=True)
class Terms:
    """How strategies are tried: see SyncClient.explore."""

    score: Callable[..., Any] | None = None
    executor: Executor | None = None
    timeout: float | None = None
    workspace: Any = None
    stop_when: Callable[[Outcome], bool] | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidArgumentError(
                f"timeout is a number of seconds above 0, not {self.timeout!r}"
            )

    def are_met_by(self, outcome: Outcome) -> bool:
        """Whether no other strategy has to be tried after this one."""
        return self.stop_when is not None and bool(self.stop_when(outcome))

    def tell(self, outcome: Outcome) -> None:
        """Say that a strategy ended."""
        if self.progress is not None:
            self.progress(outcome)


def explore(
    runtime: SyncRuntime, checkpoint: Base, strategies: Mapping[str, Strategy], terms: Terms
) -> Exploration:
    """Try strategies, each in a session forked at a checkpoint."""
    _check(strategies)
    place = runtime if terms.executor is None else _where(runtime, terms.executor)
    base, jobs = _prepare(runtime, checkpoint, strategies, terms)
    if terms.executor is None:
        ended = _one_by_one(place, jobs, terms)
    else:
        ended = _spread(terms.executor, place, jobs, terms)
    found: dict[str, Outcome] = {}
    for job, outcome in ended:
        found[job.name] = _compared(runtime, base, outcome, job)
        terms.tell(found[job.name])
    return Exploration(base, [found[job.name] for job in jobs])


Ended = Iterator[tuple[Job, Outcome]]


def _one_by_one(place: Any, jobs: list[Job], terms: Terms) -> Ended:
    """One strategy after the other; each in a thread that is left behind if it takes too long."""
    stopped = False
    for job in jobs:
        if stopped:
            yield job, Outcome(job.name, job.session_id, "stopped")
            continue
        future: Future[Outcome] = Future()
        threading.Thread(target=_settle, args=(future, place, job), daemon=True).start()
        wait([future], terms.timeout)
        outcome = _result(future, job, terms.timeout)
        stopped = terms.are_met_by(outcome)
        yield job, outcome


def _settle(future: Future[Outcome], place: Any, job: Job) -> None:
    future.set_running_or_notify_cancel()
    try:
        future.set_result(_attempt(place, job))
    except BaseException as error:
        future.set_exception(error)


def _spread(pool: Executor, place: Any, jobs: list[Job], terms: Terms) -> Ended:
    """All at once, as far as the executor has room; those that end first come first."""
    waiting = {pool.submit(_attempt, place, job): job for job in jobs}
    stopped = False
    while waiting:
        done = wait(waiting, terms.timeout, FIRST_COMPLETED).done
        # No other ended for so long: whatever is left takes too long, or waits behind what does.
        for future in sorted(done or waiting, key=lambda each: jobs.index(waiting[each])):
            job = waiting.pop(future)
            outcome = _result(future, job, terms.timeout)
            stopped = stopped or terms.are_met_by(outcome)
            yield job, outcome
        for future in [each for each in waiting if stopped and each.cancel()]:
            job = waiting.pop(future)
            yield job, Outcome(job.name, job.session_id, "stopped")


def _prepare(
    runtime: SyncRuntime, checkpoint: Base, strategies: Mapping[str, Strategy], terms: Terms
) -> tuple[str, list[Job]]:
    checkpoint_id = checkpoint if isinstance(checkpoint, str) else checkpoint.checkpoint_id
    info = runtime.run(get_info(checkpoint_id))
    files = runtime.run(restore(runtime.engine, info.checkpoint_id, True, "raw")).workspace
    workspace = None
    if terms.workspace is not None and files is not None:
        workspace = _as_workspace(runtime, terms.workspace)
    jobs = []
    for name, strategy in strategies.items():
        session_id = _session(info.session_id, name)
        runtime.run(save.fork(runtime.engine, info.checkpoint_id, session_id, None, None))
        path = None
        if workspace is not None:
            path = f"{workspace.path}.{name}"
            if os.path.lexists(path):  # of an earlier exploration
                path = f"{workspace.path}{session_id.removeprefix(info.session_id)}"
            workspace.fork_captured(files, path)
        jobs.append(Job(name, info.agent_id, session_id, strategy, terms.score, path, files))
    return info.checkpoint_id, jobs


def _check(strategies: Mapping[str, Strategy]) -> None:
    if not isinstance(strategies, Mapping) or not strategies:
        raise InvalidArgumentError("strategies are a dict of names and functions of a run")
    for name, strategy in strategies.items():
        if not isinstance(name, str) or not callable(strategy):
            raise InvalidArgumentError(
                f"strategy {name!r} is a function of a run, not {strategy!r}"
            )


def _session(base: str, name: str) -> str:
    from holdfast.ids import new_id

    return f"{base}.{name}-{new_id()[-8:]}"


def _as_workspace(runtime: Any, workspace: Any) -> Any:
    files = files_of(runtime, workspace)
    assert files is not None
    return files.workspace


def _where(runtime: Any, pool: Executor) -> Any:
    """How a worker reaches the store: by this runtime in the same process, else by its URL."""
    if isinstance(pool, ThreadPoolExecutor):
        return runtime
    url = runtime.url
    if url is None:
        raise InvalidArgumentError(
            f"{runtime.store.name} cannot be reached from another process: use a file or a "
            "server, or an executor of threads"
        )
    return url


def _result(future: Future[Outcome], job: Job, timeout: float | None) -> Outcome:
    """What became of a strategy; whatever goes wrong is its outcome."""
    if not future.done():
        future.cancel()
        outcome = Outcome(job.name, job.session_id, "timed out", seconds=timeout or 0)
        return _too_long(outcome, timeout)
    try:
        outcome = future.result()
    except Exception as error:  # a worker that died, or a strategy that cannot be sent to one
        return Outcome(job.name, job.session_id, "failed", error=f"{type(error).__name__}: {error}")
    if timeout is not None and outcome.seconds > timeout:
        return _too_long(outcome, timeout)
    return outcome


def _too_long(outcome: Outcome, timeout: float | None) -> Outcome:
    return replace(outcome, status="timed out", error=f"not done in {timeout:g} s")


def _compared(runtime: Any, base: str, outcome: Outcome, job: Job) -> Outcome:
    """An outcome with what it changed, told by the store."""
    if outcome.checkpoint_id is None:
        return outcome
    changes = runtime.run(diff(runtime.engine, base, outcome.checkpoint_id)).part("$")
    kept = runtime.run(restore(runtime.engine, outcome.checkpoint_id, True, "raw")).workspace
    files = None
    if job.files is not None and kept is not None:
        from holdfast.workspace.diff import compare_captured

        files = compare_captured(runtime.store, job.files, kept)
    return replace(outcome, changes=changes, files=files)


def _attempt(place: Any, job: Job) -> Outcome:
    """Try one strategy; whatever goes wrong in it is its outcome."""
    if not isinstance(place, str):
        return _attempt_with(place, job)
    with contextlib.closing(SyncRuntime.open(place)) as runtime:
        return _attempt_with(runtime, job)


def _attempt_with(runtime: SyncRuntime, job: Job) -> Outcome:
    start = time.monotonic()
    run: Run | None = None
    try:
        with (
            contextlib.closing(_Copy(runtime, job)) as copy,
            Run(runtime, _options(job), files_of(runtime, copy.open())) as run,
        ):
            result = job.strategy(run)
            score = _scored(job.score, run, result)
        outcome = Outcome(job.name, job.session_id, "done", score, result)
    except Exception as error:
        outcome = Outcome(
            job.name, job.session_id, "failed", error=f"{type(error).__name__}: {error}"
        )
    return _measured(outcome, run, start)


def _options(job: Job) -> Options:
    return options_of(job.agent_id, job.session_id, metadata={"strategy": job.name})


class _Copy:
    """The files that a strategy works on: its directory, or one that goes when it has ended.

    What it did to them is in its checkpoints.
    """

    def __init__(self, runtime: Any, job: Job) -> None:
        self._runtime = runtime
        self._job = job
        self._above: str | None = None
        self._unfinished: Unfinished | None = None
        self._copy: Workspace | None = None

    def open(self) -> Workspace | str | None:
        """What the run of the strategy is opened with."""
        job = self._job
        if job.workspace is not None or job.files is None:
            return job.workspace
        from holdfast.workspace import Snapshot, checkout

        self._unfinished = Unfinished(
            self._runtime.engine.files, os.fsencode(tempfile.gettempdir()), b"holdfast-explore-"
        )
        self._above = os.path.join(tempfile.gettempdir(), os.fsdecode(self._unfinished.name))
        make_directory(self._above)
        path = os.path.join(self._above, "files")
        self._copy = checkout(Snapshot.from_value(job.files), path, self._runtime)
        return self._copy

    def close(self) -> None:
        """Remove the directory, if it is of no use to anyone later."""
        try:
            if self._copy is not None:
                self._copy.discard()
        finally:
            if self._above is not None:
                shutil.rmtree(self._above, ignore_errors=True)
            if self._unfinished is not None:
                self._unfinished.close()


def _measured(outcome: Outcome, run: Any, start: float) -> Outcome:
    """An outcome with where the strategy came, and what it took."""
    took = time.monotonic() - start
    if run is None or run._core.head is None:
        return replace(outcome, seconds=took)
    made = sum(not effect.abandoned for effect in run.effects) - run._core.inherited
    return replace(outcome, seconds=took, checkpoint_id=run.head, calls=made)


def _scored(score: Callable[..., Any] | None, run: Any, result: Any) -> float | None:
    """The score of a strategy: what the function says, else its result if that is a number."""
    return _number(result) if score is None else float(_ask(score, run, result))


def _number(result: Any) -> float | None:
    is_number = isinstance(result, (int, float)) and not isinstance(result, bool)
    return float(result) if is_number else None


def _ask(score: Callable[..., Any], run: Any, result: Any) -> Any:
    return score(run, result) if _wants_result(score) else score(run)


def _wants_result(score: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(score).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) > 1


async def aexplore(
    runtime: AsyncRuntime, checkpoint: Base, strategies: Mapping[str, Strategy], terms: Terms
) -> Exploration:
    """The same for async programs: async strategies run together on the loop."""
    twin = runtime.sync()
    _check(strategies)
    is_async = any(inspect.iscoroutinefunction(strategy) for strategy in strategies.values())
    if terms.executor is not None or not is_async:
        return await asyncio.to_thread(explore, twin, checkpoint, strategies, terms)
    base, jobs = await asyncio.to_thread(_prepare, twin, checkpoint, strategies, terms)
    found: dict[str, Outcome] = {}
    tasks = {asyncio.create_task(_attempt_async(runtime, job, terms.timeout)): job for job in jobs}
    try:
        async for job, outcome in _as_they_end(tasks, terms):
            found[job.name] = await asyncio.to_thread(_compared, twin, base, outcome, job)
            terms.tell(found[job.name])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return Exploration(base, [found[job.name] for job in jobs])


async def _as_they_end(
    tasks: Mapping[asyncio.Task[Outcome], Job], terms: Terms
) -> AsyncIterator[tuple[Job, Outcome]]:
    waiting, stopped = set(tasks), False
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            outcome = task.result()
            stopped = stopped or terms.are_met_by(outcome)
            yield tasks[task], outcome
        if stopped:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for task in waiting:
                yield tasks[task], Outcome(tasks[task].name, tasks[task].session_id, "stopped")
            return


async def _attempt_async(runtime: AsyncRuntime, job: Job, timeout: float | None) -> Outcome:
    start = time.monotonic()
    run: AsyncRun | None = None
    limit = asyncio.timeout(timeout)
    outcome = Outcome(job.name, job.session_id, "done")
    copy = _Copy(runtime, job)
    opening = asyncio.create_task(asyncio.to_thread(copy.open))
    try:
        async with (
            limit,
            AsyncRun(
                runtime, _options(job), files_of(runtime, await asyncio.shield(opening))
            ) as run,
        ):
            result = await _awaited(job.strategy(run))
            score = job.score
            given = None if score is None else await _awaited(_ask(score, run, result))
            number = _number(result) if given is None else float(given)
            outcome = replace(outcome, score=number, result=result)
    except Exception as error:
        outcome = replace(outcome, status="failed", error=f"{type(error).__name__}: {error}")
        if limit.expired():
            outcome = _too_long(outcome, timeout)
    finally:
        await asyncio.wait([opening])  # a thread cannot be stopped
        await asyncio.to_thread(copy.close)
    return _measured(outcome, run, start)


async def _awaited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer
