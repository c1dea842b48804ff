"""Workflow checkpoints, stored sessions and plain history of Agent Framework."""

import asyncio
import base64
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    AgentExecutor,
    AgentSession,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    InMemoryHistoryProvider,
    Message,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)

from holdfast import AdapterError, InvalidArgumentError, StoreFullError, SyncClient
from holdfast.adapters.agent_framework import (
    HoldfastCheckpointStorage,
    HoldfastHistoryProvider,
    HoldfastSessionStore,
)
from holdfast.adapters.portable import conversation
from tests.frameworks.agent_framework_kit import asks_twice, harbour_agent, said, tide
from tests.frameworks.full_store import FullStore
from tests.frameworks.reference import ANSWER, PROMPT

pytestmark = pytest.mark.filterwarnings("ignore:.*SESSION_STORE")


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as client:
        yield client


@dataclass
class Order:
    """A class of the user's own in the state of a workflow."""

    number: int


class Count(Executor):
    """Passes a number on, one higher."""

    @handler
    async def count(self, number: int, context: WorkflowContext[int]) -> None:
        context.set_state(f"seen by {self.id}", number)
        await context.send_message(number + 1)


class Last(Executor):
    @handler
    async def end(self, number: int, context: WorkflowContext[Any, int]) -> None:
        context.set_state("order", Order(number))
        await context.yield_output(number)


def workflow(storage: Any, kind: type[Executor] = Last) -> Any:
    one, two, last = Count(id="one"), Count(id="two"), kind(id="last")
    builder = WorkflowBuilder(
        name="counting", start_executor=one, checkpoint_storage=storage, output_from=[last]
    )
    return builder.add_edge(one, two).add_edge(two, last).build()


def storage(client: Any, name: str = "w", **options: Any) -> HoldfastCheckpointStorage:
    return HoldfastCheckpointStorage(name, client, **{"allowed_types": [Order], **options})


async def latest_of(kept: Any) -> Any:
    """Return where a workflow stands."""
    return await kept.get_latest(workflow_name="counting")


# Workflows


@pytest.fixture(params=["holdfast", "memory", "file"])
def any_storage(request: Any, client: SyncClient, tmp_path: Path) -> Any:
    """Ours beside the framework's own two: what holds for those holds for ours."""
    names = [f"{Order.__module__}:{Order.__qualname__}"]
    return {
        "holdfast": lambda: storage(client),
        "memory": InMemoryCheckpointStorage,
        "file": lambda: FileCheckpointStorage(tmp_path, allowed_checkpoint_types=names),
    }[request.param]()


async def test_every_storage_keeps_loads_lists_and_deletes_alike(any_storage: Any) -> None:
    await workflow(any_storage).run(1)
    other = WorkflowCheckpoint(workflow_name="other", graph_signature_hash="x")
    assert await any_storage.save(other) == other.checkpoint_id

    every = await any_storage.list_checkpoints(workflow_name="counting")
    ids = await any_storage.list_checkpoint_ids(workflow_name="counting")
    latest = await latest_of(any_storage)

    assert sorted(each.iteration_count for each in every) == [0, 1, 2, 3]
    assert sorted(ids) == sorted(each.checkpoint_id for each in every)
    assert latest.iteration_count == 3
    assert latest.state["order"] == Order(3)
    assert await any_storage.load(latest.checkpoint_id) == latest
    assert (await any_storage.get_latest(workflow_name="other")) == other
    assert await any_storage.get_latest(workflow_name="none") is None
    assert await any_storage.list_checkpoints(workflow_name="none") == []
    assert await any_storage.delete(latest.checkpoint_id) is True
    assert await any_storage.delete(latest.checkpoint_id) is False
    with pytest.raises(WorkflowCheckpointException):
        await any_storage.load(latest.checkpoint_id)
    assert (await latest_of(any_storage)).iteration_count == 2


async def test_what_is_loaded_is_a_copy(any_storage: Any) -> None:
    given = WorkflowCheckpoint(workflow_name="w", graph_signature_hash="x", state={"a": [1]})
    await any_storage.save(given)
    given.state["a"].append(2)
    first = await any_storage.load(given.checkpoint_id)
    first.state["a"].append(3)

    assert (await any_storage.load(given.checkpoint_id)).state == {"a": [1]}


async def test_checkpoints_of_a_workflow_are_parents_of_each_other(client: SyncClient) -> None:
    await workflow(storage(client)).run(1)

    newest = client.timeline("agent_framework", "w")
    assert [each.step_name for each in newest] == [f"superstep {n}" for n in (3, 2, 1, 0)]
    parents = [each.parent_id for each in newest[:-1]]
    assert parents == [each.checkpoint_id for each in newest[1:]]


async def test_a_workflow_goes_on_from_any_checkpoint_and_the_tree_shows_it(
    client: SyncClient,
) -> None:
    kept = storage(client)
    await workflow(kept).run(1)
    every = await kept.list_checkpoints(workflow_name="counting")
    second = every[1]

    done = await workflow(kept).run(checkpoint_id=second.checkpoint_id)

    assert done.get_outputs() == [3]
    (place,) = client.find(tags={"workflow_checkpoint": second.checkpoint_id})
    children = client.find(parent_id=place.checkpoint_id)
    assert len(children) == 2


async def test_a_rolled_back_workflow_goes_on_from_there(client: SyncClient) -> None:
    kept = storage(client)
    await workflow(kept).run(1)
    with client.session("agent_framework", session_id="w") as run:
        run.rollback(to="superstep 1")

    latest = await latest_of(storage(client))
    assert latest.iteration_count == 1
    done = await workflow(storage(client)).run(checkpoint_id=latest.checkpoint_id)
    assert done.get_outputs() == [3]


async def test_a_forked_workflow_goes_on_in_its_own_session(client: SyncClient) -> None:
    await workflow(storage(client)).run(1)
    place = next(
        each for each in client.timeline("agent_framework", "w") if each.step_name == "superstep 2"
    )
    client.fork(place.checkpoint_id, session_id="fork")

    kept = storage(client, "fork")
    latest = await latest_of(kept)
    assert latest.iteration_count == 2
    assert (await kept.load(latest.previous_checkpoint_id)).iteration_count == 1
    assert (await workflow(kept).run(checkpoint_id=latest.checkpoint_id)).get_outputs() == [3]
    assert len(client.timeline("agent_framework", "w")) == 4


class Asks(Executor):
    @handler
    async def ask(self, number: int, context: WorkflowContext[Any, str]) -> None:
        await context.request_info(f"is {number} right?", str)

    @response_handler
    async def answered(
        self, question: str, answer: str, context: WorkflowContext[Any, str]
    ) -> None:
        await context.yield_output(f"{question} {answer}")


async def test_a_question_of_a_workflow_outlives_a_restart(client: SyncClient) -> None:
    first = await workflow(storage(client), Asks).run(1)
    (request,) = first.get_request_info_events()

    kept = storage(client)
    latest = await latest_of(kept)
    again = workflow(kept, Asks)
    await again.run(checkpoint_id=latest.checkpoint_id)
    done = await again.run(responses={request.request_id: "yes"})

    assert done.get_outputs() == ["is 3 right? yes"]


async def test_a_class_that_is_not_allowed_is_not_written_and_the_run_is_told(
    client: SyncClient,
) -> None:
    kept = storage(client, allowed_types=())
    await workflow(kept).run(1)  # the framework only logs it

    with pytest.raises(WorkflowCheckpointException, match="allowed_types"):
        kept.check()
    with pytest.raises(WorkflowCheckpointException, match="Order"):
        await latest_of(kept)
    assert (await latest_of(kept)).iteration_count == 2  # it was told


async def test_a_class_may_be_allowed_by_its_name_but_not_by_guesses(client: SyncClient) -> None:
    await workflow(storage(client)).run(1)
    by_name = storage(client, allowed_types=f"{Order.__module__}:Order")
    assert (await latest_of(by_name)).state["order"] == Order(3)

    stranger = storage(client, allowed_types=())
    with pytest.raises(WorkflowCheckpointException, match="does not name"):
        await latest_of(stranger)
    with pytest.raises(InvalidArgumentError, match="classes or names"):
        storage(client, allowed_types=["Order"])
    with pytest.raises(InvalidArgumentError, match="classes or names"):
        storage(client, allowed_types=7)


async def test_stored_pickle_is_not_run(client: SyncClient) -> None:
    class Attack:
        def __reduce__(self) -> Any:
            return print, ("attacked",)

    island = {
        "__pickled__": base64.b64encode(pickle.dumps(Attack())).decode(),
        "__type__": "builtins:object",
    }
    encoded = WorkflowCheckpoint(workflow_name="w", graph_signature_hash="x").to_dict()
    client.save(
        "agent_framework",
        "agent_framework",
        {"checkpoint": {**encoded, "state": {"x": island}}},
        session_id="w",
        workflow_checkpoint=encoded["checkpoint_id"],
        workflow="w",
    )

    with pytest.raises(WorkflowCheckpointException, match="blocked"):
        await storage(client).get_latest(workflow_name="w")


async def test_a_full_store_is_told_when_the_run_is_over() -> None:
    full = FullStore()

    async def program() -> Any:
        async with storage(SyncClient(full)) as kept:
            full.is_full = True
            assert (await workflow(kept).run(1)).get_outputs() == [3]

    with pytest.raises(StoreFullError):
        await program()


async def test_bad_sessions_of_workflows_are_refused(client: SyncClient) -> None:
    with pytest.raises(InvalidArgumentError, match="session_id"):
        storage(client, 7)  # type: ignore[arg-type]
    client.save("agent_framework", "agent_framework", {"messages": []}, session_id="agent")
    with pytest.raises(AdapterError, match="another session_id"):
        await storage(client, "agent").get_latest(workflow_name="w")


async def test_several_workflows_save_at_once(client: SyncClient) -> None:
    runs = [workflow(storage(client, f"w{n}")).run(n) for n in range(5)]
    done = await asyncio.gather(*runs)

    assert [each.get_outputs() for each in done] == [[n + 2] for n in range(5)]
    assert [len(client.timeline("agent_framework", f"w{n}")) for n in range(5)] == [4] * 5


# Sessions


async def test_a_session_is_stored_replaced_and_removed(client: SyncClient) -> None:
    store: Any = HoldfastSessionStore(client)
    assert await store.get("s") is None
    given = AgentSession(session_id="s")
    given.state["cart"] = ["apple"]
    await store.set("s", given)
    given.state["cart"].append("pear")
    assert (await store.get("s")).state == {"cart": ["apple"]}
    await store.set("s", given)

    assert (await store.get("s")).state == {"cart": ["apple", "pear"]}
    assert len(client.timeline("agent_framework", "s")) == 2
    await store.delete("s")
    await store.delete("s")
    assert await store.get("s") is None


async def test_a_session_with_the_frameworks_own_history_is_read_as_a_conversation(
    client: SyncClient,
) -> None:
    provider = InMemoryHistoryProvider()
    provider.middleware = []
    agent = harbour_agent(provider, middleware=[])
    given = agent.create_session(session_id="s")
    await agent.run(PROMPT, session=given)
    store = HoldfastSessionStore(client)
    await store.set("s", given)

    found = conversation("s", client)
    assert found is not None
    assert [each["role"] for each in found.messages] == ["user", "assistant", "tool", "assistant"]
    restored: Any = await store.get("s")
    await agent.run("again", session=restored)
    assert len(restored.state["in_memory"]["messages"]) == 8


async def test_a_stored_session_and_its_history_are_one_session(client: SyncClient) -> None:
    provider, store = HoldfastHistoryProvider(client), HoldfastSessionStore(client)
    agent = harbour_agent(provider)
    given = agent.create_session(session_id="s")
    given.state["cart"] = ["apple"]
    await agent.run(PROMPT, session=given)
    await store.set("s", given)

    restored: Any = await store.get("s")
    await agent.run("again", session=restored)

    assert restored.state["cart"] == ["apple"]
    assert len(await provider.get_messages("s")) == 8


@pytest.mark.parametrize("name", ["", 7, None])
async def test_bad_ids_of_sessions_are_refused(client: SyncClient, name: Any) -> None:
    store = HoldfastSessionStore(client)
    with pytest.raises(InvalidArgumentError, match="session_id"):
        await store.get(name)
    with pytest.raises(InvalidArgumentError, match="session_id"):
        await store.set(name, AgentSession())
    with pytest.raises(InvalidArgumentError, match="session_id"):
        await store.delete(name)


async def test_something_else_than_a_session_is_refused(client: SyncClient) -> None:
    store = HoldfastSessionStore(client)
    with pytest.raises(InvalidArgumentError, match="AgentSession"):
        await store.set("s", {"session_id": "s"})
    client.save("agent_framework", "agent_framework", {"session": {"x": 1}}, session_id="s")
    with pytest.raises(AdapterError, match="does not hold an AgentSession"):
        await store.get("s")


# History without the middleware


@pytest.mark.parametrize("per_call", [False, True])
async def test_history_alone_is_kept_at_the_end_of_runs_or_of_model_calls(
    client: SyncClient, per_call: bool
) -> None:
    provider = HoldfastHistoryProvider(client)
    options: Any = {"require_per_service_call_history_persistence": per_call, "middleware": []}
    for prompt in (PROMPT, "again"):
        agent = harbour_agent(provider, **options)
        await agent.run(prompt, session=AgentSession(session_id="s"))

    kept = said(await provider.get_messages("s"))
    assert [role for role, _ in kept] == ["user", "assistant", "tool", "assistant"] * 2
    assert kept[3] == ("assistant", ANSWER)


async def test_messages_that_are_there_already_are_not_kept_twice(client: SyncClient) -> None:
    provider = HoldfastHistoryProvider(client)
    hi, hello = Message("user", ["hi"]), Message("assistant", ["hello"])
    await provider.save_messages("s", [hi, hello])
    await provider.save_messages("s", [hi, hello, Message("user", ["more"])])
    await provider.save_messages("s", [Message("user", ["more"])])

    assert said(await provider.get_messages("s")) == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "more"),
        ("user", "more"),
    ]


async def test_history_of_no_session_is_refused(client: SyncClient) -> None:
    provider = HoldfastHistoryProvider(client)
    for call in (provider.get_messages(None), provider.save_messages(None, [Message("user", [])])):
        with pytest.raises(InvalidArgumentError, match="session_id"):
            await call


async def test_messages_saved_at_once_are_all_kept(client: SyncClient) -> None:
    providers = [HoldfastHistoryProvider(client) for _ in range(5)]
    await asyncio.gather(
        *(each.save_messages("s", [Message("user", [f"{n}"])]) for n, each in enumerate(providers))
    )

    kept = await providers[0].get_messages("s")
    assert sorted(each.text for each in kept) == list("01234")


# Both together


async def test_an_agent_inside_a_workflow_goes_on_where_it_was_cut_off(client: SyncClient) -> None:
    measured: list[str] = []
    provider = HoldfastHistoryProvider(client)

    @tool(approval_mode="never_require")
    async def depth(harbour: str, unit: str = "m") -> str:
        measured.append(harbour)
        return "12 m"

    def flow(fails: bool) -> Any:
        def script(messages: Any) -> Any:
            if fails and messages[-1].role == "tool":
                raise ConnectionError("the line is down")
            return asks_twice(messages)

        agent = harbour_agent(provider, script, tools=[depth, tide])
        inside = AgentExecutor(agent, id="clerk")
        builder = WorkflowBuilder(
            name="counting",
            start_executor=inside,
            checkpoint_storage=storage(client),
            output_from=[inside],
        )
        return builder.build()

    with pytest.raises(ConnectionError):
        await flow(fails=True).run(PROMPT)
    latest = await latest_of(storage(client))
    done = await flow(fails=False).run(checkpoint_id=latest.checkpoint_id)

    assert measured == ["Süd"]
    (output,) = done.get_outputs()
    assert output.text.endswith(ANSWER)
