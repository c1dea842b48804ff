"""Calls of many tasks and threads at once, and of tools that are awaited."""

# ruff: noqa: PT012, SIM117  (a run is a block, and some raise as it ends)

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, SyncClient
from holdfast.errors import InvalidArgumentError, RunError
from tests.clients import url_of
from tests.session.kit import AGENT, SESSION, PowerCut, Tools


def test_a_sync_run_says_that_a_tool_is_async(tmp_path: Path) -> None:
    async def tool() -> None: ...

    with SyncClient.memory() as client, client.session(AGENT) as run:
        with pytest.raises(InvalidArgumentError, match="async with"):
            run.call(tool)


async def test_async_tools_are_awaited_and_others_block_nobody() -> None:
    ended = threading.Event()

    async def end() -> str:
        ended.set()
        return "async"

    def wait() -> str:
        assert ended.wait(30)
        return "sync"

    async with Client.memory() as client, client.session(AGENT) as run:
        # More of them than the client has threads of its own.
        waits = [run.call(wait) for _ in range(8)]
        assert await asyncio.gather(*waits, run.call(end)) == ["sync"] * 8 + ["async"]
        assert await run.call(lambda: end()) == "async"


async def test_calls_made_at_once_come_back_in_any_order(tools: Tools) -> None:
    async def fetch(number: int) -> list[Any]:
        await asyncio.sleep(0)
        return tools.read(number)

    async with Client.memory() as client:
        with pytest.raises(PowerCut):
            async with client.session(AGENT, session_id=SESSION) as run:
                first = await asyncio.gather(*(run.call(fetch, n) for n in range(20)))
                raise PowerCut
        async with client.session(AGENT, session_id=SESSION) as run:
            again = await asyncio.gather(*(run.call(fetch, n) for n in reversed(range(20))))
    assert again == first[::-1]
    assert len(tools.ran) == 20


def test_calls_of_threads_come_back_in_any_order(tools: Tools, tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "h.db", durability="normal") as client:
        for numbers in (range(40), reversed(range(40))):
            with pytest.raises(PowerCut), client.session(AGENT, session_id=SESSION) as run:
                for task in run.tasks.plan("all").remaining():
                    with task, ThreadPoolExecutor(8) as pool:
                        found = pool.map(lambda n: (n, run.call(tools.read, n)), numbers)
                        outputs = dict(found)
                        assert {out[1]: n for n, out in outputs.items()} == {
                            n: n for n in range(40)
                        }
                        assert {effect.task for effect in run.effects} == {"all"}
                        raise PowerCut
    assert len(tools.ran) == 40


async def test_a_cancelled_call_is_made_again_only_if_it_may() -> None:
    started = asyncio.Event()
    ran = []

    async def slow(name: str) -> str:
        ran.append(name)
        if len(ran) <= 2:
            started.set()
            await asyncio.Event().wait()
        return name

    async with Client.memory() as client, client.session(AGENT) as run:
        for effect in ("read", "irreversible"):
            started.clear()
            call = asyncio.create_task(run.call(slow, effect, effect=effect))
            await started.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert await run.call(slow, "read", effect="read") == "read"
        with pytest.raises(RunError, match=r"run\.unknown_effects"):
            await run.call(slow, "irreversible", effect="irreversible")
        with pytest.raises(RunError, match=r"run\.unknown_effects"):
            await run.checkpoint()
        await run.unknown_effects()[0].mark_done("by hand")
        assert await run.call(slow, "irreversible", effect="irreversible") == "by hand"
    assert ran == ["read", "irreversible", "read"]


async def test_a_checkpoint_made_while_a_call_is_under_way_carries_it_over() -> None:
    started, go = asyncio.Event(), asyncio.Event()
    ran = []

    async def slow(name: str) -> str:
        ran.append(name)
        started.set()
        await go.wait()
        return name

    async def program(run: Any) -> None:
        async def one(task: Any) -> None:
            async with task:
                await run.call(slow, task.name, effect="irreversible")
                if not run.resumed:
                    raise PowerCut

        async def other(task: Any) -> None:
            async with task:
                await started.wait()
                run.state["other"] = await run.call(str, "quick")
            go.set()

        works = {"one": one, "other": other}
        plan = run.tasks.plan("one", "other").remaining()
        await asyncio.gather(*(works[task.name](task) for task in plan))

    async with Client.memory() as client:
        with pytest.raises(PowerCut):
            async with client.session(AGENT, session_id=SESSION) as run:
                await program(run)
        async with client.session(AGENT, session_id=SESSION) as run:
            assert run.state == {"other": "quick"}
            assert [task.status for task in run.tasks] == ["in_progress", "completed"]
            await program(run)
            assert [(str(each), each.status) for each in run.effects] == [
                ("slow('one')", "done"),
                ("str('quick')", "done"),
            ]
    assert ran == ["one"]


async def at_once(run: Any, tools: Tools, cut: bool) -> None:
    """Tasks done together, each with parts, calls and checkpoints of its own."""

    async def work(task: Any) -> None:
        async with task:
            first = await run.call(tools.read, task.name, "first")
            for part in task.plan("x", "y").remaining():
                async with part:
                    run.state[part.id] = await run.call(tools.send, part.id, effect="irreversible")
            run.state[task.name] = first
        if cut and task.name == "5":
            raise PowerCut

    plan = run.tasks.plan(*map(str, range(10))).remaining()
    await asyncio.gather(*[work(task) for task in plan])


@pytest.mark.parametrize("store", ["memory", "sqlite", "file"])
async def test_tasks_done_at_once_are_resumed_and_nothing_runs_twice(
    store: str, tools: Tools, tmp_path: Path
) -> None:
    async with Client.open(url_of(store, tmp_path)) as client:
        with pytest.raises(PowerCut):
            async with client.session(AGENT, session_id=SESSION) as run:
                await at_once(run, tools, cut=True)
        async with client.session(AGENT, session_id=SESSION) as run:
            for effect in run.unknown_effects():
                if effect.kind == "irreversible":
                    await effect.mark_done("by hand")
            await at_once(run, tools, cut=False)
            assert {task.status for task in run.tasks} == {"completed"}
            assert len(run.state) == 30
            await run.rollback(to="start", accept_irreversible=True)
        sent = [call for call in tools.ran if call[0] == "send"]
        assert len(sent) == len(set(sent)) == 20
        chain = await client.timeline(AGENT, SESSION, limit=None)
        assert len({info.step_index for info in chain}) == len(chain)


def test_tasks_done_by_threads_keep_their_calls(tools: Tools, tmp_path: Path) -> None:
    with (
        SyncClient.sqlite(tmp_path / "h.db", durability="normal") as client,
        client.session(AGENT, session_id=SESSION) as run,
    ):

        def work(task: Any) -> None:
            with task:
                for number in range(5):
                    run.call(tools.read, task.name, number)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, list(run.tasks.plan(*"abcdefgh").remaining())))
        found = [(effect.task, effect.args[0]) for effect in run.effects]
        assert len(found) == len(tools.ran) == 40
        assert all(task == name for task, name in found)
        assert len({effect.id for effect in run.effects}) == 40
