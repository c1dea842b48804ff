"""Trying one strategy, in a run of its own, in a thread, another process or on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.runtime import AsyncRuntime, SyncRuntime
from holdfast.session.async_run import AsyncRun
from holdfast.session.exploration import Outcome
from holdfast.session.files import files_of
from holdfast.session.options import SessionOptions, options_of
from holdfast.session.run import Run
from holdfast.session.run_base import RunBase
from holdfast.system.private_files import make_directory
from holdfast.system.unfinished import Unfinished

if TYPE_CHECKING:
    from holdfast.workspace import Workspace

Strategy = Callable[[Any], Any]


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


def attempt(place: Any, job: Job) -> Outcome:
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


def _options(job: Job) -> SessionOptions:
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
        """Return what the run of the strategy is opened with."""
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


def _measured(outcome: Outcome, run: RunBase | None, start: float) -> Outcome:
    """Return an outcome with where the strategy came, and what it took."""
    took = time.monotonic() - start
    if run is None or not run._session.checkpointer.has_head:
        return replace(outcome, seconds=took)
    made = run._session.history.made_since_opening()
    return replace(outcome, seconds=took, checkpoint_id=run.head, calls=made)


def _scored(score: Callable[..., Any] | None, run: Any, result: Any) -> float | None:
    """Return the score of a strategy: what the function says, else a result that is a number."""
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


async def attempt_async(runtime: AsyncRuntime, job: Job, timeout: float | None) -> Outcome:
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
            outcome = too_long(outcome, timeout)
    finally:
        await asyncio.wait([opening])  # a thread cannot be stopped
        await asyncio.to_thread(copy.close)
    return _measured(outcome, run, start)


async def _awaited(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def too_long(outcome: Outcome, timeout: float | None) -> Outcome:
    return replace(outcome, status="timed out", error=f"not done in {timeout:g} s")
