"""What the runtime keeps of a LlamaIndex workflow, and how its runs go on."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from workflows import Context, Workflow, step
from workflows.context.serializers import JsonSerializer, PickleSerializer
from workflows.errors import WorkflowCancelledByUser
from workflows.events import (
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    WorkflowFailedEvent,
)
from workflows.plugins.basic import BasicRuntime
from workflows.retry_policy import retry_policy, stop_after_attempt, wait_fixed

from holdfast import Client, SyncClient
from holdfast.adapters.llama_index import HoldfastRuntime
from holdfast.adapters.llama_index.event_classes import class_named
from holdfast.adapters.portable import conversation
from holdfast.errors import (
    AdapterError,
    InvalidArgumentError,
    RunError,
    SerializationError,
    SessionBusyError,
    SessionLostError,
    StoreError,
)


class World:
    """A store, which steps ran, and where the power is cut."""

    def __init__(self, directory: Path) -> None:
        self.url = f"sqlite:///{directory / 'store.db'}"
        self.ran: list[str] = []
        self.cut_in: str | None = None
        self.reached = asyncio.Event()

    async def enter(self, name: str) -> None:
        self.ran.append(name)
        if self.cut_in == name:
            self.cut_in = None
            self.reached.set()
            await asyncio.Event().wait()

    def runtime(self, session_id: str = "s", **options: Any) -> HoldfastRuntime:
        return HoldfastRuntime(url=self.url, session_id=session_id, **options)

    def steps(self, session_id: str = "s") -> list[str | None]:
        with SyncClient.open(self.url) as client:
            return [each.step_name for each in reversed(client.timeline("llama_index", session_id))]

    async def cut(
        self, workflow: Workflow, runtime: HoldfastRuntime, at: str, **given: Any
    ) -> None:
        """Begin a run, and end it in a step as if the process had been killed."""
        self.cut_in, self.reached = at, asyncio.Event()
        handler = workflow.run(ctx=runtime.resume(workflow), **given)
        await self.reached.wait()
        handler._external_adapter.abort()
        with pytest.raises(asyncio.CancelledError):
            await handler


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Part(Event):
    n: int


class Done(Event):
    n: int


class FanOut(Workflow):
    """Three parts of work, two at a time, then all together."""

    world: World

    @step
    async def begin(self, ctx: Context, event: StartEvent) -> Part | None:
        await self.world.enter("begin")
        await ctx.store.set("topic", event.topic)
        for n in range(3):
            ctx.send_event(Part(n=n))
        return None

    @step(num_workers=2)
    async def work(self, ctx: Context, event: Part) -> Done:
        await self.world.enter(f"work {event.n}")
        async with ctx.store.edit_state() as state:
            state["parts"] = sorted([*state.get("parts", []), event.n])
        return Done(n=event.n)

    @step
    async def join(self, ctx: Context, event: Done) -> StopEvent | None:
        done = ctx.collect_events(event, [Done] * 3)
        if done is None:
            return None
        await self.world.enter("join")
        return StopEvent(result=[await ctx.store.get("topic"), sorted(each.n for each in done)])


def fan_out(world: World, runtime: HoldfastRuntime) -> FanOut:
    workflow = FanOut(runtime=runtime)
    workflow.world = world
    return workflow


async def run(world: World, runtime: HoldfastRuntime, topic: str = "kelp") -> Any:
    workflow = fan_out(world, runtime)
    return await workflow.run(ctx=runtime.resume(workflow), topic=topic)


# What is kept


async def test_every_step_is_a_checkpoint_that_says_how_far_the_workflow_is(world: World) -> None:
    assert await run(world, world.runtime()) == ["kelp", [0, 1, 2]]

    assert world.steps()[:2] == ["StartEvent", "begin"]
    assert sorted(filter(None, world.steps()[2:])) == ["join"] * 3 + ["work"] * 3
    with SyncClient.open(world.url) as client:
        head = client.latest("llama_index", "s")
    assert head is not None
    kept = head.execution_state["context"]
    assert kept["is_running"] is False
    assert kept["state"]["state_data"]["_data"] == {"topic": "kelp", "parts": [0, 1, 2]}
    json.dumps(head.execution_state)


async def test_steps_in_parallel_that_finished_are_not_run_again(world: World) -> None:
    runtime = world.runtime()
    await world.cut(fan_out(world, runtime), runtime, "work 2", topic="kelp")
    assert await run(world, world.runtime()) == ["kelp", [0, 1, 2]]

    assert sorted(world.ran) == ["begin", "join", "work 0", "work 1", "work 2", "work 2"]


async def test_the_next_run_of_a_session_has_the_state_of_the_last(world: World) -> None:
    await run(world, world.runtime())
    runtime = world.runtime()
    ctx = runtime.resume(fan_out(world, runtime))

    assert ctx is not None
    assert not ctx.is_running
    assert await ctx.store.get("parts") == [0, 1, 2]
    assert await run(world, world.runtime(), "moss") == ["moss", [0, 1, 2]]


async def test_one_context_may_be_run_again_in_the_same_process(world: World) -> None:
    runtime = world.runtime()
    workflow = fan_out(world, runtime)
    handler = workflow.run(topic="kelp")
    await handler
    assert await workflow.run(ctx=handler.ctx, topic="moss") == ["moss", [0, 1, 2]]


async def test_a_new_session_has_nothing_to_resume(world: World) -> None:
    runtime = world.runtime()
    workflow = fan_out(world, runtime)

    assert runtime.resume(workflow) is None
    assert await runtime.aresume(workflow) is None


async def test_a_runtime_below_is_used(world: World) -> None:
    below = BasicRuntime()
    runtime = world.runtime(runtime=below)
    assert await run(world, runtime) == ["kelp", [0, 1, 2]]
    await runtime.destroy()


async def test_a_clients_store_is_used_and_left_open(world: World) -> None:
    async with Client.open(world.url) as client:
        runtime = HoldfastRuntime(client, session_id="s")
        await run(world, runtime)
        await runtime.destroy()

        assert await client.latest("llama_index", "s") is not None


# State that steps in flight have written


class TwoWriters(Workflow):
    """One step writes and goes on working; another ends meanwhile."""

    world: World

    @step
    async def begin(self, ctx: Context, event: StartEvent) -> Part | Done | None:
        ctx.send_event(Part(n=0))
        ctx.send_event(Done(n=0))
        return None

    @step
    async def slow(self, ctx: Context, event: Part) -> StopEvent:
        count = await ctx.store.get("count", default=0)
        await ctx.store.set("count", count + 1)
        self.wrote.set()
        await self.world.enter("slow")
        return StopEvent(result=await ctx.store.get("count"))

    @step
    async def fast(self, ctx: Context, event: Done) -> None:
        await self.wrote.wait()
        await self.world.enter("fast")

    wrote: asyncio.Event


async def test_what_a_step_in_flight_wrote_is_kept_with_the_end_of_another(world: World) -> None:
    """It runs again, and finds what it wrote: such a step sets values, and does not add to them."""
    runtime = world.runtime()
    workflow = TwoWriters(runtime=runtime)
    workflow.world, workflow.wrote = world, asyncio.Event()
    world.cut_in, world.reached = "slow", asyncio.Event()
    handler = workflow.run(ctx=runtime.resume(workflow))
    await world.reached.wait()
    while "fast" not in world.steps():
        await asyncio.sleep(0)
    handler._external_adapter.abort()
    with pytest.raises(asyncio.CancelledError):
        await handler
    again = world.runtime()
    workflow = TwoWriters(runtime=again)
    workflow.world, workflow.wrote = world, asyncio.Event()
    result = await workflow.run(ctx=again.resume(workflow))

    assert result == 2
    assert world.ran == ["slow", "fast", "slow"]


# People who are asked


class Asking(Workflow):
    world: World

    @step
    async def ask(self, ctx: Context, event: StartEvent) -> StopEvent:
        await self.world.enter("before")
        answer = await ctx.wait_for_event(
            HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="name?"), waiter_id="name"
        )
        return StopEvent(result=f"hello {answer.response}")


class Name(HumanResponseEvent):
    """An answer of a class that no step declares."""


class WhatName(InputRequiredEvent):
    """A question of a class that no step declares."""


class AskingForName(Asking):
    @step
    async def ask(self, ctx: Context, event: StartEvent) -> StopEvent:
        asked = WhatName(prefix="name?")
        answer = await ctx.wait_for_event(Name, waiter_event=asked, waiter_id="name")
        return StopEvent(result=f"hello {answer.response}")


class AskingByEvents(Workflow):
    world: World

    @step
    async def ask(self, ctx: Context, event: StartEvent) -> InputRequiredEvent:
        await self.world.enter("asked")
        return InputRequiredEvent(prefix="name?")

    @step
    async def greet(self, ctx: Context, event: HumanResponseEvent) -> StopEvent:
        await self.world.enter("greet")
        return StopEvent(result=f"hello {event.response}")


async def ask_and_stop(world: World, kind: type[Workflow]) -> InputRequiredEvent:
    """Run a workflow until it asks something, and end it as if the process had been killed."""
    runtime = world.runtime()
    workflow: Any = kind(runtime=runtime)
    workflow.world = world
    handler = workflow.run(ctx=runtime.resume(workflow))
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            break
    handler._external_adapter.abort()
    with pytest.raises(asyncio.CancelledError):
        await handler
    return event


@pytest.mark.parametrize("kind", [Asking, AskingForName, AskingByEvents])
async def test_a_question_is_asked_again_after_a_restart_and_waits_for_its_answer(
    world: World, kind: type[Workflow]
) -> None:
    for _ in range(3):  # however often it is killed, it is asked once by each process
        asked = await ask_and_stop(world, kind)
        assert asked.prefix == "name?"
    runtime = world.runtime()
    workflow: Any = kind(runtime=runtime)
    workflow.world = world
    handler = workflow.run(ctx=runtime.resume(workflow))
    heard = []
    async for event in handler.stream_events():
        heard.append(type(event).__name__)
        if isinstance(event, InputRequiredEvent):
            answer = Name if kind is AskingForName else HumanResponseEvent
            handler.ctx.send_event(answer(response="Ada"))

    assert await handler == "hello Ada"
    assert heard in (["InputRequiredEvent", "StopEvent"], ["WhatName", "StopEvent"])
    assert world.ran.count("asked") <= 1
    assert {"HumanResponseEvent", "Name"} & set(world.steps())


async def test_an_answer_that_was_given_is_not_asked_for_again(world: World) -> None:
    runtime = world.runtime()
    workflow = AskingByEvents(runtime=runtime)
    workflow.world = world
    handler = workflow.run(ctx=runtime.resume(workflow))
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            break
    world.cut_in = "greet"
    handler.ctx.send_event(HumanResponseEvent(response="Ada"))
    await world.reached.wait()
    handler._external_adapter.abort()
    with pytest.raises(asyncio.CancelledError):
        await handler
    again = world.runtime()
    workflow = AskingByEvents(runtime=again)
    workflow.world = world

    handler = workflow.run(ctx=again.resume(workflow))
    heard = [type(event).__name__ async for event in handler.stream_events()]

    assert await handler == "hello Ada"
    assert heard == ["StopEvent"]


# Failures


class Failing(Workflow):
    world: World

    @step(retry_policy=retry_policy(wait=wait_fixed(0), stop=stop_after_attempt(3)))
    async def work(self, ctx: Context, event: StartEvent) -> StopEvent:
        await self.world.enter("work")
        if self.world.ran.count("work") < 3:
            raise OSError("not yet")
        return StopEvent(result="done")


async def test_attempts_that_failed_are_counted_across_a_restart(world: World) -> None:
    runtime = world.runtime()
    workflow = Failing(runtime=runtime)
    workflow.world = world
    assert await workflow.run(ctx=runtime.resume(workflow)) == "done"

    assert world.steps() == ["StartEvent", "work failed", "work failed", "work"]


async def test_a_run_that_failed_has_ended(world: World) -> None:
    class Broken(Workflow):
        @step
        async def work(self, ctx: Context, event: StartEvent) -> StopEvent:
            raise OSError("broken")

    runtime = world.runtime()
    workflow = Broken(runtime=runtime)
    with pytest.raises(OSError, match="broken"):
        await workflow.run(ctx=runtime.resume(workflow))
    ctx = world.runtime().resume(workflow)

    assert ctx is not None
    assert not ctx.is_running


async def test_a_checkpoint_that_cannot_be_written_fails_who_awaits_the_run(world: World) -> None:
    client = SyncClient.open(world.url)

    class Closing(Workflow):
        @step
        async def work(self, ctx: Context, event: StartEvent) -> StopEvent:
            client.close()
            return StopEvent(result="never heard")

    runtime = HoldfastRuntime(client, session_id="s")
    workflow = Closing(runtime=runtime)
    handler = workflow.run(ctx=runtime.resume(workflow))
    *_, last = [event async for event in handler.stream_events()]
    with pytest.raises(StoreError):
        await handler

    assert isinstance(last, WorkflowFailedEvent)  # who streams events does not wait for ever
    assert isinstance(last.exception, StoreError)


async def test_a_run_that_was_cancelled_can_be_gone_on_with(world: World) -> None:
    runtime = world.runtime()
    workflow = fan_out(world, runtime)
    world.cut_in = "work 1"
    handler = workflow.run(topic="kelp")
    await world.reached.wait()
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler
    assert world.steps()[-1] == "cancelled"

    assert await run(world, world.runtime()) == ["kelp", [0, 1, 2]]
    assert world.ran.count("work 0") == 1


async def test_a_state_that_cannot_be_kept_names_its_key(world: World) -> None:
    class Unkept(Workflow):
        @step
        async def work(self, ctx: Context, event: StartEvent) -> StopEvent:
            await ctx.store.set("handle", object())
            return StopEvent(result="never heard")

    runtime = world.runtime()
    workflow = Unkept(runtime=runtime)
    with pytest.raises(SerializationError, match="handle"):
        await workflow.run(ctx=runtime.resume(workflow))


# Rollback, fork, and others who write


async def test_a_rollback_is_seen_by_the_next_resume(world: World) -> None:
    await run(world, world.runtime())
    with SyncClient.open(world.url) as client, client.session("llama_index", "s") as session:
        session.rollback(to="begin")
    world.ran.clear()
    assert await run(world, world.runtime(), "ignored") == ["kelp", [0, 1, 2]]

    assert sorted(world.ran) == ["join", "work 0", "work 1", "work 2"]


def test_the_command_line_rolls_back_and_tells_of_steps(world: World) -> None:
    asyncio.run(run(world, world.runtime()))
    environment = {**os.environ, "HOLDFAST_URL": world.url}

    def holdfast(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert "begin" in holdfast("log", "s")
    holdfast("rollback", "begin", "--session", "s", "--yes")
    world.ran.clear()
    assert asyncio.run(run(world, world.runtime(), "ignored")) == ["kelp", [0, 1, 2]]
    assert "begin" not in world.ran


async def test_a_fork_goes_its_own_way(world: World) -> None:
    await run(world, world.runtime())
    with SyncClient.open(world.url) as client:
        steps = client.timeline("llama_index", "s")
        (begun,) = [each for each in steps if each.step_name == "begin"]
        client.fork(begun.checkpoint_id, session_id="other")
        before = len(steps)
    assert await run(world, world.runtime("other"), "ignored") == ["kelp", [0, 1, 2]]

    assert len(world.steps("s")) == before
    assert "join" in world.steps("other")


async def test_two_runs_of_one_runtime_at_once_are_refused(world: World) -> None:
    runtime = world.runtime()
    workflow = fan_out(world, runtime)
    world.cut_in = "begin"
    first = workflow.run(topic="kelp")
    await world.reached.wait()
    with pytest.raises(SessionBusyError, match="has not ended"):
        workflow.run(topic="moss")
    first._external_adapter.abort()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_who_was_overtaken_overwrites_nothing(world: World) -> None:
    runtime = world.runtime()
    await world.cut(fan_out(world, runtime), runtime, "work 2", topic="kelp")
    late = world.runtime()
    workflow = fan_out(world, late)
    ctx = late.resume(workflow)
    await run(world, world.runtime())
    head = world.steps()
    with pytest.raises(SessionLostError, match="went on elsewhere"):
        await workflow.run(ctx=ctx)

    assert world.steps() == head


async def test_of_two_that_go_on_at_once_the_one_that_ends_a_step_first_goes_on(
    world: World,
) -> None:
    runtime = world.runtime()
    world.cut_in, world.reached = "work 2", asyncio.Event()
    first = fan_out(world, runtime).run(topic="kelp")
    await world.reached.wait()
    second = await run(world, world.runtime())
    head = world.steps()
    first.ctx.send_event(HumanResponseEvent(response="one more"))
    with pytest.raises(SessionLostError, match="went on elsewhere"):
        await first

    assert second is not None
    assert world.ran.count("work 2") == 2
    assert world.steps() == head


async def test_a_run_that_was_cut_is_not_begun_anew_by_mistake(world: World) -> None:
    runtime = world.runtime()
    await world.cut(fan_out(world, runtime), runtime, "work 2", topic="kelp")
    workflow = fan_out(world, world.runtime())
    with pytest.raises(RunError, match="resume"):
        await workflow.run(topic="kelp")


# What is read, and what is refused


class Memo(BaseModel):
    text: str


SCRIPT = """
import asyncio, os, sys
from pydantic import BaseModel
from workflows import Context, Workflow, step
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent
from holdfast.adapters.llama_index import HoldfastRuntime

class Job(Event):
    what: str

class Ask(InputRequiredEvent):
    pass

class Answer(HumanResponseEvent):
    pass

class Memory(BaseModel):
    count: int = 0

class Report(Workflow):
    @step
    async def begin(self, ctx: Context[Memory], event: StartEvent) -> Job:
        await ctx.store.set("count", 3)
        return Job(what="kelp")

    @step
    async def end(self, ctx: Context[Memory], event: Job) -> StopEvent:
        answer = await ctx.wait_for_event(Answer, waiter_event=Ask(), waiter_id="w")
        count = await ctx.store.get("count")
        return StopEvent(result=f"{event.what} {count} {answer.response}")

async def main():
    runtime = HoldfastRuntime(url=sys.argv[1], session_id="s")
    workflow = Report(runtime=runtime)
    handler = workflow.run(ctx=runtime.resume(workflow))
    async for event in handler.stream_events():
        if isinstance(event, Ask) and sys.argv[2] == "cut":
            os._exit(9)
        elif isinstance(event, Ask):
            handler.ctx.send_event(Answer(response="yes"))
    print(await handler)

if __name__ == "__main__":
    asyncio.run(main())
"""
AS_SCRIPT = ["job.py"]
IMPORTED = ["-c", "import asyncio, job; asyncio.run(job.main())"]


@pytest.mark.parametrize(("begun", "gone_on"), [(AS_SCRIPT, IMPORTED), (IMPORTED, AS_SCRIPT)])
def test_a_script_goes_on_when_it_is_imported_and_the_other_way_round(
    world: World, tmp_path: Path, begun: list[str], gone_on: list[str]
) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)

    def start(how: list[str], then: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *how, world.url, then]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert start(begun, "cut").returncode == 9
    done = start(gone_on, "go on")

    assert done.stdout == "kelp 3 yes\n", done.stderr


def test_a_name_of_a_script_that_two_classes_have_is_nobodys() -> None:
    one, other = (type("Found", (), {"__module__": each}) for each in ("a", "b"))

    assert class_named("__main__.Found", [one]) is one
    assert class_named("__main__.Found", [one, other]) is None
    assert class_named("c.Found", [one]) is None


async def test_no_class_that_the_workflow_does_not_declare_is_revived(world: World) -> None:
    class Memos(Workflow):
        @step
        async def work(self, ctx: Context, event: StartEvent) -> StopEvent:
            await ctx.store.set("memo", Memo(text="x"))
            return StopEvent(result="done")

    runtime = world.runtime()
    workflow = Memos(runtime=runtime)
    await workflow.run(ctx=runtime.resume(workflow))
    strict = world.runtime()
    ctx = strict.resume(Memos(runtime=strict))
    assert ctx is not None
    with pytest.raises(ValueError, match="allowed"):
        await ctx.store.get("memo")
    allowing = world.runtime(serializer=JsonSerializer(allowed_types=[Memo]))
    ctx = allowing.resume(Memos(runtime=allowing))

    assert ctx is not None
    assert await ctx.store.get("memo") == Memo(text="x")


@pytest.mark.parametrize("place", ["event", "exception", "waiter", "state"])
async def test_nothing_that_is_stored_is_imported(world: World, place: str) -> None:
    runtime = world.runtime()
    await world.cut(fan_out(world, runtime), runtime, "work 2", topic="kelp")
    evil = {"__is_pydantic": True, "value": {}, "qualified_name": "antigravity.Event"}
    with SyncClient.open(world.url) as client:
        head = client.latest("llama_index", "s")
        assert head is not None
        state = head.execution_state
        work = state["context"]["workers"]["work"]
        part = {"__is_pydantic": True, "value": {"n": 2}, "qualified_name": f"{__name__}.Part"}
        attempt: dict[str, Any] = {"event": part, "attempts": 1}
        work["queue"].append(attempt)
        if place == "event":
            attempt["event"] = evil
        elif place == "exception":
            attempt["last_exception"] = {
                "exception_type": "antigravity.Error",
                "exception_message": "x",
            }
        elif place == "state":
            state["context"]["state"]["state_data"]["_data"]["x"] = evil
        else:
            waiter = {
                "waiter_id": "w",
                "event": attempt["event"],
                "waiting_for_event": "antigravity.Event",
            }
            work["collected_waiters"].append(waiter)
        client.save(
            "llama_index",
            framework="llama_index",
            session_id="s",
            execution_state=state,
            parent_id=head.checkpoint_id,
        )
    again = world.runtime()
    workflow = fan_out(world, again)
    if place in ("event", "waiter"):
        with pytest.raises(AdapterError, match="allowed"):
            again.resume(workflow)
    else:
        ctx = again.resume(workflow)
        assert ctx is not None
        with contextlib.suppress(ValueError):
            await ctx.store.get("x")

    assert "antigravity" not in sys.modules


async def test_a_typed_state_comes_back_as_its_class(world: World) -> None:
    class Typed(Workflow):
        @step
        async def work(self, ctx: Context[Memo2], event: StartEvent) -> StopEvent:
            async with ctx.store.edit_state() as state:
                state.text += "x"
            return StopEvent(result=(await ctx.store.get_state()).text)

    for expected in ("x", "xx"):
        runtime = world.runtime()
        workflow = Typed(runtime=runtime)
        assert await workflow.run(ctx=runtime.resume(workflow)) == expected


class Memo2(BaseModel):
    text: str = ""


async def test_pickles_are_kept_and_read_only_where_they_are_asked_for(world: World) -> None:
    class Odd(Workflow):
        @step
        async def work(self, ctx: Context, event: StartEvent) -> StopEvent:
            await ctx.store.set("odd", {1, 2})
            return StopEvent(result="done")

    asked = world.runtime(serializer=PickleSerializer())
    workflow = Odd(runtime=asked)
    assert await workflow.run(ctx=asked.resume(workflow)) == "done"
    again = world.runtime(serializer=PickleSerializer())
    ctx = again.resume(Odd(runtime=again))
    assert ctx is not None
    assert await ctx.store.get("odd") == {1, 2}
    plain = world.runtime()
    ctx = plain.resume(Odd(runtime=plain))
    assert ctx is not None
    with pytest.raises(ValueError, match="odd"):
        await ctx.store.get("odd")


async def test_a_workflow_without_the_step_that_waits_is_refused(world: World) -> None:
    runtime = world.runtime()
    await world.cut(fan_out(world, runtime), runtime, "work 2", topic="kelp")
    other = world.runtime()
    workflow = Failing(runtime=other)
    workflow.world = world
    with pytest.raises(AdapterError, match="a step 'join'"):
        other.resume(workflow)


@pytest.mark.parametrize("state", [{}, {"context": 3}, [], {"context": {"workers": 4}}])
async def test_a_damaged_state_is_clearly_refused(world: World, state: Any) -> None:
    with SyncClient.open(world.url) as client:
        client.save("llama_index", framework="llama_index", session_id="s", execution_state=state)
    runtime = world.runtime()
    with pytest.raises(AdapterError, match="session 's'"):
        runtime.resume(fan_out(world, runtime))


async def test_a_session_of_another_framework_is_refused(world: World) -> None:
    with SyncClient.open(world.url) as client:
        client.save("llama_index", framework="strands", session_id="s", execution_state={})
    runtime = world.runtime()
    with pytest.raises(AdapterError, match="continue_in"):
        runtime.resume(fan_out(world, runtime))


@pytest.mark.parametrize("session_id", ["", 3, None])
def test_a_session_id_is_a_name(session_id: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="session_id"):
        HoldfastRuntime(url="memory://", session_id=session_id)


def test_a_client_and_a_url_are_one_too_many() -> None:
    with SyncClient.memory() as client, pytest.raises(InvalidArgumentError, match="not both"):
        HoldfastRuntime(client, url="memory://", session_id="s")


# What was said


async def test_the_messages_of_an_agent_are_read_from_its_state(world: World) -> None:
    from tests.frameworks import reference
    from tests.frameworks.jobs import llama_index as job

    await job.main(world.url, "s")
    with SyncClient.open(world.url) as client:
        found = conversation("s", client)

    assert found is not None
    assert [message["role"] for message in found.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    answers = {part["id"]: part["response"] for part in found.messages[2]["parts"]}
    assert answers == reference.RESULTS
    assert found.lost == []


async def test_a_workflow_without_messages_has_no_conversation(world: World) -> None:
    await run(world, world.runtime())
    with SyncClient.open(world.url) as client:
        assert conversation("s", client) is None


async def test_files_are_kept_with_each_step(world: World, tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()

    class Writing(Workflow):
        @step
        async def one(self, ctx: Context, event: StartEvent) -> Part:
            (place / "note.txt").write_text("one")
            return Part(n=1)

        @step
        async def two(self, ctx: Context, event: Part) -> StopEvent:
            (place / "note.txt").write_text("two")
            return StopEvent(result="done")

    runtime = world.runtime(workspace=place)
    workflow = Writing(runtime=runtime)
    await workflow.run(ctx=runtime.resume(workflow))
    with (
        SyncClient.open(world.url) as client,
        client.session("llama_index", "s", workspace=place) as session,
    ):
        session.rollback(to="one")

    assert (place / "note.txt").read_text() == "one"
