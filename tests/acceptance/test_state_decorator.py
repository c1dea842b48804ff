"""@checkpoint: an agent is saved after every n-th call."""

import asyncio
import functools
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import Checkpointable, CheckpointManager, InvalidArgumentError, checkpoint


class Agent(Checkpointable):
    def __init__(self, name: str = "agent") -> None:
        self.name = name
        self.steps: list[int] = []


@pytest.fixture(params=["memory", "file-json", "file-pickle", "sqlite"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointManager]:
    backend, _, fmt = request.param.partition("-")
    path = None if backend == "memory" else tmp_path / "kept"
    with CheckpointManager(backend, path, fmt or "json") as manager:
        yield manager


def saved_steps(manager: CheckpointManager, key: str) -> list[list[int]]:
    """The steps of every checkpoint of a key, oldest first."""
    ids = [saved["id"] for saved in manager.history(key)][::-1]
    return [manager.load(key, Agent(), saved).steps for saved in ids]


def test_every_call_of_a_function_saves_its_agent(manager: CheckpointManager) -> None:
    @checkpoint(manager, key="k")
    def work(scale: int, agent: Agent, step: int) -> int:
        agent.steps.append(step)
        return step * scale

    agent = Agent()

    assert [work(2, agent, step=1), work(2, agent=agent, step=2)] == [2, 4]
    assert saved_steps(manager, "k") == [[1], [1, 2]]


def test_every_nth_call_of_a_method_saves_self(manager: CheckpointManager) -> None:
    class Worker(Agent):
        @checkpoint(manager, key="k", every=3)
        def work(self, step: int) -> "Worker":
            self.steps.append(step)
            return self

    worker = Worker()
    for step in range(7):
        assert worker.work(step) is worker

    assert len(manager.history("k")) == 2
    assert manager.load("k", Worker()).steps == [0, 1, 2, 3, 4, 5]


async def test_async_functions_are_saved_as_well(manager: CheckpointManager) -> None:
    @checkpoint(manager, key="k", every=2)
    async def work(agent: Agent, step: int) -> int:
        await asyncio.sleep(0)
        agent.steps.append(step)
        return step

    agent = Agent()
    results = [await work(agent, step) for step in range(4)]

    assert results == [0, 1, 2, 3]
    assert saved_steps(manager, "k") == [[0, 1], [0, 1, 2, 3]]


async def test_tasks_at_once_are_saved_in_the_order_of_their_states(
    manager: CheckpointManager,
) -> None:
    @checkpoint(manager, key="k")
    async def work(agent: Agent, step: int) -> None:
        await asyncio.sleep(0)
        agent.steps.append(step)

    agent = Agent()
    await asyncio.gather(*(work(agent, step) for step in range(20)))

    assert saved_steps(manager, "k") == [agent.steps[: at + 1] for at in range(20)]


async def test_the_state_is_taken_before_the_loop_goes_on(tmp_path: Path) -> None:
    agent = Agent()
    writing, go_on = threading.Event(), threading.Event()

    with CheckpointManager("sqlite", tmp_path / "a.db") as manager:
        save = manager.client.save

        def slow_save(*args: Any, **kwargs: Any) -> str:
            writing.set()
            assert go_on.wait(10)
            return save(*args, **kwargs)

        manager.client.save = slow_save  # type: ignore[method-assign]

        @checkpoint(manager, key="k", agent=agent)
        async def work() -> None:
            agent.steps.append(1)

        task = asyncio.create_task(work())
        while not writing.is_set():
            await asyncio.sleep(0)  # the loop runs while the save waits
        agent.steps.append(2)
        go_on.set()
        await task

        assert manager.load("k", Agent()).steps == [1]


def test_a_call_that_raises_is_neither_counted_nor_saved(manager: CheckpointManager) -> None:
    @checkpoint(manager, key="k", every=2)
    def work(agent: Agent, step: int) -> None:
        agent.steps.append(step)
        if step < 0:
            raise ValueError("negative")

    agent = Agent()
    work(agent, 1)
    with pytest.raises(ValueError, match="negative"):
        work(agent, -1)
    assert manager.list_keys() == []
    work(agent, 2)

    assert saved_steps(manager, "k") == [[1, -1, 2]]


async def test_an_async_call_that_raises_is_not_saved(manager: CheckpointManager) -> None:
    @checkpoint(manager, key="k")
    async def work(agent: Agent) -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        await work(Agent())

    assert manager.list_keys() == []


def test_the_key_is_the_class_name_by_default(manager: CheckpointManager) -> None:
    @checkpoint(manager)
    def work(agent: Agent) -> None:
        pass

    work(Agent())

    assert manager.list_keys() == ["Agent"]


def test_the_key_may_be_a_function_of_the_agent(manager: CheckpointManager) -> None:
    @checkpoint(manager, key=lambda agent: f"agent-{agent.name}", every=2)
    def work(agent: Agent, step: int) -> None:
        agent.steps.append(step)

    a, b = Agent("a"), Agent("b")
    for agent, step in ((a, 1), (b, 2), (a, 3)):
        work(agent, step)

    assert manager.list_keys() == ["agent-a"]  # calls are counted for each key
    assert saved_steps(manager, "agent-a") == [[1, 3]]


def test_the_agent_may_be_given_to_the_decorator(manager: CheckpointManager) -> None:
    agent = Agent()

    @checkpoint(manager, key="k", agent=agent)
    def work(step: int) -> None:
        agent.steps.append(step)

    work(1)

    assert saved_steps(manager, "k") == [[1]]


def test_without_an_agent_the_function_is_not_called(manager: CheckpointManager) -> None:
    @checkpoint(manager)
    def work(step: int) -> None:
        pytest.fail("it ran")

    @checkpoint(manager)
    async def work_async(step: int) -> None:
        pytest.fail("it ran")

    with pytest.raises(InvalidArgumentError, match="no Checkpointable among the arguments"):
        work(1)
    with pytest.raises(InvalidArgumentError, match="no Checkpointable among the arguments"):
        asyncio.run(work_async(1))


def test_threads_are_counted_together(manager: CheckpointManager) -> None:
    lock = threading.Lock()

    @checkpoint(manager, key="k", every=5)
    def work(agent: Agent, step: int) -> None:
        with lock:
            agent.steps = [*agent.steps, step]

    agent = Agent()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda step: work(agent, step), range(50)))

    assert len(manager.history("k")) == 10
    assert len(manager.load("k", Agent()).steps) >= 46  # the newest is from the end


def test_name_signature_and_kind_are_preserved() -> None:
    with CheckpointManager() as manager:

        @checkpoint(manager)
        def work(agent: Agent, step: int = 3) -> str:
            """Does the work."""
            return agent.name * step

        @checkpoint(manager)
        async def work_async(agent: Agent) -> None:
            pass

        assert (work.__name__, work.__doc__) == ("work", "Does the work.")
        assert list(inspect.signature(work).parameters) == ["agent", "step"]
        assert inspect.iscoroutinefunction(work_async)
        assert not inspect.iscoroutinefunction(work)


async def test_a_coroutine_function_in_disguise_is_saved_when_it_ends() -> None:
    with CheckpointManager() as manager:

        async def work(step: int, agent: Agent) -> int:
            await asyncio.sleep(0)
            agent.steps.append(step)
            return step

        disguised = checkpoint(manager, key="k")(lambda agent: work(7, agent))

        assert await disguised(Agent()) == 7
        assert await checkpoint(manager, key="k")(functools.partial(work, 8))(Agent()) == 8
        assert saved_steps(manager, "k") == [[7], [8]]


@pytest.mark.parametrize("every", [0, -1, 1.0, True, "2", None])
def test_every_is_a_number_from_one(every: Any) -> None:
    with CheckpointManager() as manager, pytest.raises(InvalidArgumentError, match="every"):
        checkpoint(manager, every=every)


def test_wrong_arguments_are_refused() -> None:
    def generator(agent: Any, /) -> Iterator[int]:
        yield 1

    async def async_generator(agent: Agent) -> Any:
        yield 1

    with CheckpointManager() as manager:
        others: list[Any] = [Agent, 3, staticmethod(generator), classmethod(generator)]
        for wrong in (generator, async_generator, *others):
            with pytest.raises(InvalidArgumentError, match="@checkpoint"):
                checkpoint(manager)(wrong)
        with pytest.raises(InvalidArgumentError, match="with parentheses"):
            checkpoint(lambda agent: None)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="key is"):
            checkpoint(manager, key=3)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="no Checkpointable"):
            checkpoint(manager, agent="agent")  # type: ignore[arg-type]
