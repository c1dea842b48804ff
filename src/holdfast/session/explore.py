"""Explore: several strategies from one checkpoint, on equal state and files, and a comparison."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import InvalidArgumentError
from holdfast.ids import new_id
from holdfast.model import Checkpoint, CheckpointInfo
from holdfast.runtime import AsyncRuntime, SyncRuntime
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session.exploration import Exploration, Outcome
from holdfast.session.files import files_of
from holdfast.session.strategy_runs import Job, Strategy, attempt, attempt_async, too_long
from holdfast.verbs import notes, save
from holdfast.verbs.notes import NoteBatch
from holdfast.verbs.read import diff, get_info, restore

Progress = Callable[[Outcome], object]
Base = str | Checkpoint | CheckpointInfo


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
        """Return whether no other strategy has to be tried after this one."""
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
        found[job.name] = _settled(runtime, base, outcome, job)
        terms.tell(found[job.name])
    return Exploration(base, [found[job.name] for job in jobs])


Ended = Iterator[tuple[Job, Outcome]]


def _one_by_one(place: Any, jobs: list[Job], terms: Terms) -> Ended:
    """Try one strategy after the other; one that takes too long is left behind in its thread."""
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
        future.set_result(attempt(place, job))
    except BaseException as error:
        future.set_exception(error)


def _spread(pool: Executor, place: Any, jobs: list[Job], terms: Terms) -> Ended:
    """Try all at once, as far as the executor has room; those that end first come first."""
    waiting = {pool.submit(attempt, place, job): job for job in jobs}
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
    return f"{base}.{name}-{new_id()[-8:]}"


def _as_workspace(runtime: Any, workspace: Any) -> Any:
    files = files_of(runtime, workspace)
    assert files is not None
    return files.workspace


def _where(runtime: Any, pool: Executor) -> Any:
    """Return how a worker reaches the store: by this runtime, or by its URL elsewhere."""
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
    """Return what became of a strategy; whatever goes wrong is its outcome."""
    if not future.done():
        future.cancel()
        outcome = Outcome(job.name, job.session_id, "timed out", seconds=timeout or 0)
        return too_long(outcome, timeout)
    try:
        outcome = future.result()
    except Exception as error:  # a worker that died, or a strategy that cannot be sent to one
        return Outcome(job.name, job.session_id, "failed", error=f"{type(error).__name__}: {error}")
    if timeout is not None and outcome.seconds > timeout:
        return too_long(outcome, timeout)
    return outcome


def _settled(runtime: Any, base: str, outcome: Outcome, job: Job) -> Outcome:
    """Return an outcome with what it changed; it is noted, for whoever looks at it later."""
    found = _compared(runtime, base, outcome, job)
    batch = NoteBatch()
    batch.add(runtime.engine, _explored(base), found.session_id, found.as_dict())
    runtime.run(batch.write())
    return found


def _explored(base: str) -> str:
    return f"/explored/{base}"[:1000]  # ids of others may be as long as a name can be


def explored(engine: Engine, base: str) -> Plan[list[dict[str, Any]]]:
    """Return what was noted of strategies that were tried from a checkpoint, as they ended."""
    noted = yield from notes.read(engine, [_explored(base)], on_unknown="raw")
    return [value for _, value in noted if type(value) is dict]


def _compared(runtime: Any, base: str, outcome: Outcome, job: Job) -> Outcome:
    """Return an outcome with what it changed, told by the store."""
    if outcome.checkpoint_id is None:
        return outcome
    changes = runtime.run(diff(runtime.engine, base, outcome.checkpoint_id)).part("$")
    kept = runtime.run(restore(runtime.engine, outcome.checkpoint_id, True, "raw")).workspace
    files = None
    if job.files is not None and kept is not None:
        from holdfast.workspace.diff import compare_captured

        files = compare_captured(runtime.store, job.files, kept)
    return replace(outcome, changes=changes, files=files)


async def aexplore(
    runtime: AsyncRuntime, checkpoint: Base, strategies: Mapping[str, Strategy], terms: Terms
) -> Exploration:
    """Do the same for async programs: async strategies run together on the loop."""
    twin = runtime.sync()
    _check(strategies)
    is_async = any(inspect.iscoroutinefunction(strategy) for strategy in strategies.values())
    if terms.executor is not None or not is_async:
        return await asyncio.to_thread(explore, twin, checkpoint, strategies, terms)
    base, jobs = await asyncio.to_thread(_prepare, twin, checkpoint, strategies, terms)
    found: dict[str, Outcome] = {}
    tasks = {asyncio.create_task(attempt_async(runtime, job, terms.timeout)): job for job in jobs}
    try:
        async for job, outcome in _as_they_end(tasks, terms):
            found[job.name] = await asyncio.to_thread(_settled, twin, base, outcome, job)
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
