"""One saver for many threads, tasks and event loops at once: every thread of talk stays whole."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import STORES, url_of
from tests.graphs import fan_out, looping, thread

MANY = 50
STEPS = 3
WANTED = ["0", *map(str, range(1, STEPS))]


@pytest.fixture(params=STORES)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HoldfastSaver]:
    with HoldfastSaver.open(url_of(request.param, tmp_path)) as saver:
        yield saver


def check(saver: HoldfastSaver, names: list[str]) -> None:
    """Each thread has every step once, each the child of the one before."""
    for name in names:
        found = [*saver.list(thread(name))]
        assert [f.metadata["step"] for f in found] == [*range(STEPS, -2, -1)][-len(found) :]
        assert found[0].checkpoint["channel_values"]["log"] == [name, *WANTED[1:]]
        parents = [f.parent_config for f in found[:-1]]
        assert parents == [f.config for f in found[1:]]
    assert saver.client.verify().ok


def test_fifty_threads_invoke_on_one_saver(saver: HoldfastSaver) -> None:
    graph = looping(STEPS).compile(checkpointer=saver)
    names = [f"t{i}" for i in range(MANY)]
    gate = threading.Barrier(MANY)

    def run(name: str) -> list[str]:
        gate.wait(60)
        return graph.invoke({"log": [name]}, thread(name))["log"]

    with ThreadPoolExecutor(MANY) as pool:
        logs = [*pool.map(run, names)]

    assert logs == [[name, *WANTED[1:]] for name in names]
    check(saver, names)


async def test_fifty_tasks_ainvoke_on_one_saver(saver: HoldfastSaver) -> None:
    graph = looping(STEPS).compile(checkpointer=saver)
    names = [f"t{i}" for i in range(MANY)]

    results = await asyncio.gather(
        *(graph.ainvoke({"log": [name]}, thread(name)) for name in names)
    )

    assert [r["log"] for r in results] == [[name, *WANTED[1:]] for name in names]
    check(saver, names)


def test_two_event_loops_and_plain_threads_use_one_saver_at_once(saver: HoldfastSaver) -> None:
    graph = looping(STEPS).compile(checkpointer=saver)
    gate = threading.Barrier(4)

    def in_a_loop(prefix: str) -> list[str]:
        async def main() -> list[str]:
            names = [f"{prefix}{i}" for i in range(8)]
            await asyncio.gather(*(graph.ainvoke({"log": [n]}, thread(n)) for n in names))
            return names

        gate.wait(60)
        return asyncio.run(main())

    def plainly(prefix: str) -> list[str]:
        gate.wait(60)
        names = [f"{prefix}{i}" for i in range(8)]
        for name in names:
            graph.invoke({"log": [name]}, thread(name))
        return names

    jobs: list[tuple[Any, str]] = [
        (in_a_loop, "x"),
        (in_a_loop, "y"),
        (plainly, "p"),
        (plainly, "q"),
    ]
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(job, prefix) for job, prefix in jobs]
        names = [name for future in futures for name in future.result()]

    check(saver, names)


async def test_one_thread_is_continued_by_invoke_and_ainvoke_in_turn(saver: HoldfastSaver) -> None:
    graph = looping(STEPS).compile(checkpointer=saver, interrupt_after=["step"])
    config = thread("1")

    graph.invoke({"log": ["1"]}, config)
    for _ in range(STEPS):
        await graph.ainvoke(None, config)
        graph.invoke(None, config)

    assert (await graph.aget_state(config)).values == graph.get_state(config).values
    assert graph.get_state(config).values["log"] == ["1", *WANTED[1:]]


async def test_tasks_of_one_step_write_at_once_from_a_loop(saver: HoldfastSaver) -> None:
    names = [f"w{i:02}" for i in range(40)]

    async def work(sent: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"log": [sent["name"]]}

    graph = fan_out(work, names).compile(checkpointer=saver)  # type: ignore[arg-type]
    result = await graph.ainvoke({"log": []}, thread("1"), durability="sync")

    assert result["log"] == ["plan", *names, "joined 41"]
    plan = [f async for f in saver.alist(thread("1"), filter={"step": 1})]
    assert (
        len({task for task, channel, _ in plan[0].pending_writes or () if channel == "log"}) == 40
    )


async def test_a_cancelled_run_goes_on_with_what_its_tasks_had_finished(
    saver: HoldfastSaver,
) -> None:
    runs: list[str] = []
    blocked = asyncio.Event()
    waits = True

    async def finished() -> bool:
        found = await saver.aget_tuple(thread("1"))
        wrote = [w for w in (found.pending_writes if found else None) or () if w[1] == "log"]
        return len(wrote) == 3

    async def work(sent: dict[str, Any]) -> dict[str, Any]:
        runs.append(sent["name"])
        if sent["name"] == "d" and waits:
            while not await finished():
                await asyncio.sleep(0)
            blocked.set()
            await asyncio.Event().wait()
        return {"log": [sent["name"]]}

    graph = fan_out(work).compile(checkpointer=saver)  # type: ignore[arg-type]
    run = asyncio.create_task(graph.ainvoke({"log": []}, thread("1"), durability="sync"))
    await blocked.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    waits = False

    result = await graph.ainvoke(None, thread("1"))

    assert result["log"] == ["plan", "a", "b", "c", "d", "joined 5"]
    assert sorted(runs) == ["a", "b", "c", "d", "d"]


async def test_runs_cancelled_at_any_await_leave_a_thread_that_goes_on(
    saver: HoldfastSaver,
) -> None:
    graph = looping(STEPS).compile(checkpointer=saver)
    names = [f"t{i}" for i in range(30)]
    for turns, name in enumerate(names):
        run = asyncio.create_task(graph.ainvoke({"log": [name]}, thread(name)))
        for _ in range(turns * 3):
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)

        begun = (await graph.aget_state(thread(name))).values
        await graph.ainvoke(None if begun else {"log": [name]}, thread(name))

    # A put that was cancelled may be kept all the same, beside the path: so follow the parents.
    for name in names:
        found = await saver.aget_tuple(thread(name))
        assert found is not None
        assert found.checkpoint["channel_values"]["log"] == [name, *WANTED[1:]]
        steps = []
        while found is not None:
            steps.append(found.metadata["step"])
            parent = found.parent_config
            found = None if parent is None else await saver.aget_tuple(parent)
        assert steps == [*range(steps[0], -2, -1)]
    assert saver.client.verify().ok
