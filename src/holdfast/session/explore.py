"""Explore: several strategies from one checkpoint, on equal state and files, and a comparison."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from holdfast.core.diff import Diff
from holdfast.errors import InvalidArgumentError
from holdfast.verbs import save
from holdfast.verbs.read import get_info, restore

if TYPE_CHECKING:
    from holdfast.client import Client, SyncClient
    from holdfast.session.arun import AsyncRun
    from holdfast.session.run import Run

Strategy = Callable[[Any], Any]
Status = Literal["done", "failed", "timed out", "stopped"]
Progress = Callable[["Outcome"], object]


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
    checkpoint_id: str | None = None
    """Where it stands at the end."""
    changes: Diff | None = None
    """What it changed in the state."""
    files: Any = None
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
            "checkpoint_id": self.checkpoint_id,
            "state_changes": 0 if self.changes is None else len(self.changes),
            "file_changes": 0 if self.files is None else len(self.files),
        }


@dataclass(frozen=True)
class Exploration:
    """What became of all strategies, and which was best."""

    base_id: str
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def winner(self) -> Outcome | None:
        """The strategy that was done with the highest score; the first of equal ones."""
        scored = [
            each for each in self.outcomes if each.status == "done" and each.score is not None
        ]
        return max(scored, key=lambda each: each.score or 0.0, default=None)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __getitem__(self, name: str) -> Outcome:
        return next(each for each in self.outcomes if each.name == name)

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
        rows = [["", "strategy", "status", "score", "seconds", "state", "files", "error"]]
        for each in self.outcomes:
            data = each.as_dict()
            rows.append(
                [
                    "*" if each is winner else "",
                    each.name,
                    each.status,
                    "" if each.score is None else f"{each.score:g}",
                    f"{each.seconds:.1f}",
                    str(data["state_changes"]),
                    str(data["file_changes"]),
                    (each.error or "")[:60],
                ]
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines)


@dataclass(frozen=True)
class Job:
    """What another thread, process or machine needs to try one strategy."""

    name: str
    agent_id: str
    session_id: str
    strategy: Strategy
    score: Callable[..., Any] | None
    workspace: str | None


def explore(
    client: SyncClient,
    checkpoint_id: str,
    strategies: Mapping[str, Strategy],
    *,
    score: Callable[..., Any] | None,
    executor: Executor | None,
    timeout: float | None,
    workspace: Any,
    stop_when: Callable[[Outcome], bool] | None,
    progress: Progress | None,
) -> Exploration:
    """Try strategies, each in a session forked at a checkpoint."""
    base, jobs = _prepare(client, checkpoint_id, strategies, score, workspace)
    own = executor is None
    pool = executor or ThreadPoolExecutor(1, thread_name_prefix="holdfast-explore")
    outcomes: list[Outcome] = []
    try:
        place = _where(client, pool)
        futures = {job.name: pool.submit(_attempt, place, job) for job in jobs}
        stopped = False
        for job in jobs:
            if stopped and futures[job.name].cancel():
                outcome = Outcome(job.name, job.session_id, "stopped")
            else:
                outcome = _awaited(futures[job.name], job, timeout)
            outcome = _compared(client, base, outcome, job)
            outcomes.append(outcome)
            if progress is not None:
                progress(outcome)
            stopped = stopped or (stop_when is not None and bool(stop_when(outcome)))
    finally:
        if own:
            pool.shutdown(wait=timeout is None, cancel_futures=True)
    return Exploration(base, outcomes)


def _prepare(
    client: Any,
    checkpoint_id: str,
    strategies: Mapping[str, Strategy],
    score: Callable[..., Any] | None,
    workspace: Any,
) -> tuple[str, list[Job]]:
    _check(strategies)
    info = client._run(get_info(checkpoint_id))
    captured = None
    if workspace is not None:
        workspace = _as_workspace(client, workspace)
        captured = client._run(restore(client._engine, info.checkpoint_id, True, "raw")).workspace
    jobs = []
    for name, strategy in strategies.items():
        session_id = _session(info.session_id, name)
        client._run(save.fork(client._engine, info.checkpoint_id, session_id, None, None))
        path = None
        if captured is not None:
            path = f"{workspace.path}.{name}"
            workspace.fork_captured(captured, path)
        jobs.append(Job(name, info.agent_id, session_id, strategy, score, path))
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

    return f"{base}.{name}-{new_id()[-4:]}"


def _as_workspace(client: Any, workspace: Any) -> Any:
    from holdfast.session.faces import files_of

    files = files_of(client, workspace)
    assert files is not None
    return files.workspace


def _where(client: Any, pool: Executor) -> Any:
    """How a worker reaches the store: by this client in the same process, else by its URL."""
    if isinstance(pool, ThreadPoolExecutor):
        return client
    url = client.url
    if url is None:
        raise InvalidArgumentError(
            f"{client!r} cannot be reached from another process: use a file or a server, or an "
            "executor of threads"
        )
    return url


def _awaited(future: Future[Outcome], job: Job, timeout: float | None) -> Outcome:
    start = time.monotonic()
    try:
        return future.result(timeout)
    except (FutureTimeout, TimeoutError):
        future.cancel()
        return Outcome(
            job.name,
            job.session_id,
            "timed out",
            error=f"not done in {timeout:g} s",
            seconds=time.monotonic() - start,
        )
    except Exception as error:  # a worker that died, or a strategy that cannot be sent to one
        return Outcome(job.name, job.session_id, "failed", error=f"{type(error).__name__}: {error}")


def _compared(client: Any, base: str, outcome: Outcome, job: Job) -> Outcome:
    """An outcome with what it changed, told by the store."""
    if outcome.checkpoint_id is None:
        return outcome
    changes = client.diff(base, outcome.checkpoint_id).part("$")
    files = None
    if job.workspace is not None:
        from holdfast.workspace import Workspace

        with Workspace(job.workspace, store=client) as workspace:
            files = workspace.diff(base, outcome.checkpoint_id)
    return replace(outcome, changes=changes, files=files)


def _attempt(place: Any, job: Job) -> Outcome:
    """Try one strategy; whatever goes wrong in it is its outcome."""
    if not isinstance(place, str):
        return _attempt_with(place, job)
    from holdfast.client import SyncClient

    with SyncClient.open(place) as client:
        return _attempt_with(client, job)


def _attempt_with(client: SyncClient, job: Job) -> Outcome:
    start = time.monotonic()
    run: Run | None = None
    try:
        with client.session(
            job.agent_id, session_id=job.session_id, workspace=job.workspace, strategy=job.name
        ) as run:
            result = job.strategy(run)
            score = _scored(job.score, run, result)
        outcome = Outcome(job.name, job.session_id, "done", score, result)
    except Exception as error:
        outcome = Outcome(
            job.name, job.session_id, "failed", error=f"{type(error).__name__}: {error}"
        )
    head = run.head if run is not None and run._core.head is not None else None
    return replace(outcome, seconds=time.monotonic() - start, checkpoint_id=head)


def _scored(score: Callable[..., Any] | None, run: Any, result: Any) -> float | None:
    """The score of a strategy: what the function says, else its result if that is a number."""
    if score is None:
        is_number = isinstance(result, (int, float)) and not isinstance(result, bool)
        return float(result) if is_number else None
    return float(score(run, result) if _wants_result(score) else score(run))


def _wants_result(score: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(score).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) > 1


async def aexplore(
    client: Client,
    checkpoint_id: str,
    strategies: Mapping[str, Strategy],
    *,
    score: Callable[..., Any] | None,
    executor: Executor | None,
    timeout: float | None,
    workspace: Any,
    stop_when: Callable[[Outcome], bool] | None,
    progress: Progress | None,
) -> Exploration:
    """The same for async programs: async strategies run together on the loop."""
    from holdfast.client import SyncClient

    twin = SyncClient(client.store, client._engine, url=client.url)
    is_async = any(inspect.iscoroutinefunction(strategy) for strategy in strategies.values())
    if executor is not None or not is_async:
        return await asyncio.to_thread(
            lambda: explore(
                twin,
                checkpoint_id,
                strategies,
                score=score,
                executor=executor,
                timeout=timeout,
                workspace=workspace,
                stop_when=stop_when,
                progress=progress,
            )
        )
    base, jobs = await asyncio.to_thread(
        lambda: _prepare(twin, checkpoint_id, strategies, score, workspace)
    )
    tasks = [asyncio.create_task(_attempt_async(client, job, timeout)) for job in jobs]
    outcomes: list[Outcome] = []
    stopped = False
    for job, task in zip(jobs, tasks, strict=True):
        if stopped and not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            outcome = Outcome(job.name, job.session_id, "stopped")
        else:
            outcome = await task
        outcome = await asyncio.to_thread(_compared, twin, base, outcome, job)
        outcomes.append(outcome)
        if progress is not None:
            progress(outcome)
        stopped = stopped or (stop_when is not None and bool(stop_when(outcome)))
    return Exploration(base, outcomes)


async def _attempt_async(client: Client, job: Job, timeout: float | None) -> Outcome:
    start = time.monotonic()
    run: AsyncRun | None = None
    try:
        async with asyncio.timeout(timeout):
            async with client.session(
                job.agent_id, session_id=job.session_id, workspace=job.workspace, strategy=job.name
            ) as run:
                result = job.strategy(run)
                if inspect.isawaitable(result):
                    result = await result
                score = _scored(job.score, run, result)
        outcome = Outcome(job.name, job.session_id, "done", score, result)
    except TimeoutError:
        outcome = Outcome(job.name, job.session_id, "timed out", error=f"not done in {timeout:g} s")
    except Exception as error:
        outcome = Outcome(
            job.name, job.session_id, "failed", error=f"{type(error).__name__}: {error}"
        )
    head = run.head if run is not None and run._core.head is not None else None
    return replace(outcome, seconds=time.monotonic() - start, checkpoint_id=head)
