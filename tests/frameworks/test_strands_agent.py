"""Strands' agents on the storage: resume, tools one by one, effects, snapshots, fork, rollback."""

import asyncio
import json
from collections.abc import AsyncIterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.models import Model
from strands.multiagent import GraphBuilder
from strands.session import SnapshotSessionManager
from strands.types.tools import ToolContext

from holdfast import SyncClient
from holdfast.adapters.journal import ToolEffect
from holdfast.adapters.portable import conversation
from holdfast.adapters.strands import HoldfastStorage, HoldfastStorageError, prompt_once
from holdfast.errors import InvalidArgumentError, RollbackRefusedError, UnknownEffectError
from holdfast.session.approval import Decision
from tests.frameworks.commands import command
from tests.frameworks.full_store import FullStore

PROMPT = "hello"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'h.db'}"


@pytest.fixture
def storage(url: str) -> Iterator[HoldfastStorage]:
    opened = HoldfastStorage(url=url)
    yield opened
    asyncio.run(opened.close())


class Scripted(Model):
    """A model that says, after so many answers of its own, what the script has there."""

    def __init__(self, script: list[list[Any]]) -> None:
        self.script = script
        self.asked = 0

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterable[Any]:
        self.asked += 1
        says = self.script[sum(message["role"] == "assistant" for message in messages)]
        yield {"messageStart": {"role": "assistant"}}
        for number, each in enumerate(says):
            if isinstance(each, str):
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": each}}}
            else:
                use = {"name": each[0], "toolUseId": f"call_{each[0]}_{number}"}
                yield {"contentBlockStart": {"start": {"toolUse": use}}}
                given = json.dumps(each[1])
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
            yield {"contentBlockStop": {}}
        calls = any(not isinstance(each, str) for each in says)
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def agent(
    storage: HoldfastStorage,
    model: Model,
    *tools: Any,
    session_id: str = "s1",
    journaled: bool = True,
    **options: Any,
) -> Agent:
    return Agent(
        model=model,
        tools=list(tools),
        session_manager=SnapshotSessionManager(
            session_id, storage=storage, save_latest_on="message"
        ),
        plugins=[storage.plugin(**options)] if journaled else [],
        callback_handler=None,
    )


def cut(working: Agent, begun: asyncio.Event) -> None:
    """Run until a tool is in the middle of its work, and cancel all."""

    async def run() -> None:
        task = asyncio.create_task(working.invoke_async(prompt_once(working, PROMPT)))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def once_cut(calls: list[str], storage: HoldfastStorage, begun: asyncio.Event) -> Any:
    """Return a tool that is cut off the first time, when the one beside it is recorded."""

    def recorded() -> bool:
        opened = storage.runs.of("s1")
        done = [] if opened is None else [c for c in opened.run.effects if c.status == "done"]
        return opened is None or bool(done) or "first" not in calls

    @tool
    async def second(x: int) -> str:
        """Do the second thing."""
        calls.append("second")
        if calls.count("second") == 1:
            while not recorded():
                await asyncio.sleep(0)
            begun.set()
            await asyncio.Event().wait()
        return "done"

    return second


def results(messages: Any) -> list[Any]:
    return [
        block["toolResult"]["content"]
        for message in messages
        for block in message["content"]
        if "toolResult" in block
    ]


def texts(messages: Any) -> list[str]:
    return [block["text"] for m in messages for block in m["content"] if "text" in block]


def test_of_tools_at_once_only_the_unfinished_run_again(storage: HoldfastStorage) -> None:
    calls: list[str] = []

    @tool
    def first(x: int) -> dict[str, Any]:
        """Do the first thing."""
        calls.append("first")
        image = {"format": "png", "source": {"bytes": b"\xff\xfe"}}
        content: list[Any] = [{"json": {"x": x}}, {"text": "ü"}, {"image": image}]
        return {"status": "error", "content": content}

    model = Scripted([[("first", {"x": 1}), ("second", {"x": 1})], ["over"]])
    begun = asyncio.Event()
    second = once_cut(calls, storage, begun)
    cut(agent(storage, model, first, second), begun)

    working = agent(storage, model, first, second)
    assert str(working(prompt_once(working, PROMPT))).strip() == "over"

    assert (calls.count("first"), calls.count("second")) == (1, 2)
    image = {"format": "png", "source": {"bytes": b"\xff\xfe"}}
    assert results(working.messages)[0] == [{"json": {"x": 1}}, {"text": "ü"}, {"image": image}]
    assert texts(working.messages) == [PROMPT, "over"]
    assert model.asked == 2


def test_without_the_plugin_all_tools_of_the_message_run_again(storage: HoldfastStorage) -> None:
    calls: list[str] = []

    @tool
    def first(x: int) -> str:
        """Do the first thing."""
        calls.append("first")
        return "one"

    model = Scripted([[("first", {"x": 1}), ("second", {"x": 1})], ["over"]])
    begun = asyncio.Event()
    second = once_cut(calls, storage, begun)
    cut(agent(storage, model, first, second, journaled=False), begun)

    working = agent(storage, model, first, second, journaled=False)
    working(prompt_once(working, PROMPT))

    assert (calls.count("first"), calls.count("second")) == (2, 2)
    assert texts(working.messages) == [PROMPT, "over"]


def test_the_prompt_is_there_once_and_another_begins_a_new_turn(storage: HoldfastStorage) -> None:
    model = Scripted([["one"], ["two"], ["three"]])
    working = agent(storage, model)
    assert prompt_once(working, PROMPT) == PROMPT
    working(PROMPT)
    assert prompt_once(working, PROMPT) == PROMPT

    working.messages.append({"role": "user", "content": [{"text": "again"}]})
    assert prompt_once(working, "again") is None
    assert prompt_once(working, [{"text": "again"}]) is None
    assert prompt_once(working, [{"role": "user", "content": [{"text": "again"}]}]) is None
    assert prompt_once(working, "other") == "other"
    assert prompt_once(working, [{"text": "again"}, {"text": "and"}]) != None  # noqa: E711


def test_an_orphan_call_is_answered_before_another_prompt(storage: HoldfastStorage) -> None:
    calls: list[str] = []
    model = Scripted([[("second", {"x": 1})], ["over"]])
    begun = asyncio.Event()
    second = once_cut(calls, storage, begun)
    cut(agent(storage, model, second), begun)

    working = agent(storage, model, second)
    working(prompt_once(working, "something else"))

    assert calls == ["second"]
    assert texts(working.messages) == [PROMPT, "something else", "over"]
    found = conversation("s1", storage.client)
    assert found is not None
    assert found.problems() == []


def test_the_same_id_again_is_another_call(storage: HoldfastStorage) -> None:
    calls: list[int] = []

    @tool
    def count(x: int) -> str:
        """Count."""
        calls.append(x)
        return str(len(calls))

    model = Scripted(
        [[("count", {"x": 1})], [("count", {"x": 1})], [("count", {"x": 1})], ["over"]]
    )
    agent(storage, model, count)(PROMPT)

    assert calls == [1, 1, 1]


def test_every_message_is_a_checkpoint_that_says_what_it_is(storage: HoldfastStorage) -> None:
    @tool
    def count(x: int) -> str:
        """Count."""
        return "counted"

    agent(storage, Scripted([[("count", {"x": 1})], ["over"]]), count, journaled=False)(PROMPT)

    steps = storage.client.timeline("strands", "s1")
    names = [step.step_name for step in steps]
    assert names == ["state", "model", "tools", "model", "user prompt"]
    assert steps[0].metadata["native_session_id"] == "s1"
    changes = str(storage.client.diff(steps[3].checkpoint_id, steps[2].checkpoint_id))
    assert "messages[2]" in changes
    found = conversation("s1", storage.client)
    assert found is not None
    assert [m["role"] for m in found.messages] == ["user", "assistant", "tool", "assistant"]


def test_a_session_that_was_rolled_back_goes_on_from_there(storage: HoldfastStorage) -> None:
    model = Scripted([["one"], ["two"], ["three"]])
    agent(storage, model)("first")
    kept = storage.client.timeline("strands", "s1")[0].checkpoint_id
    agent(storage, model)("second")
    with storage.client.session("strands", "s1") as run:
        run.rollback(kept)

    again = agent(storage, model)
    again("other")

    assert texts(again.messages) == ["first", "one", "other", "two"]


def test_the_command_line_rolls_a_session_back(storage: HoldfastStorage, url: str) -> None:
    model = Scripted([["one"], ["two"]])
    agent(storage, model, journaled=False)("first")
    agent(storage, model, journaled=False)("second")

    command("rollback", "@-----", "--store", url, "--session", "s1", "--yes")

    assert "first" in texts(agent(storage, model).messages)
    assert "second" not in texts(agent(storage, model).messages)


def test_a_fork_is_a_session_of_its_own(storage: HoldfastStorage) -> None:
    model = Scripted([["one"], ["two"]])
    agent(storage, model)("first")
    head = storage.client.timeline("strands", "s1")[0].checkpoint_id
    storage.client.fork(head, session_id="try-2")

    fork = agent(storage, model, session_id="try-2")
    fork("other")

    assert texts(fork.messages) == ["first", "one", "other", "two"]
    assert texts(agent(storage, model).messages) == ["first", "one"]
    keys = asyncio.run(storage.list("session/try-2/"))
    assert keys == ["session/try-2/scopes/agent/default/snapshots/snapshot_latest.json"]


def test_strands_own_snapshots_work_too(storage: HoldfastStorage) -> None:
    manager = SnapshotSessionManager(
        "s1", storage=storage, snapshot_trigger=lambda agent_data, **_: True
    )
    model = Scripted([["one"], ["two"]])
    working = Agent(model=model, session_manager=manager, callback_handler=None)
    working("first")
    working("second")

    first, second = asyncio.run(manager.list_snapshot_ids(working))
    assert asyncio.run(manager.restore_snapshot(working, snapshot_id=first))
    assert texts(working.messages) == ["first", "one"]
    assert "snapshot" in [s.step_name for s in storage.client.timeline("strands", "s1")]
    asyncio.run(manager.delete_session())
    assert storage.client.sessions() == []
    assert second


def test_a_graph_of_agents_is_kept(storage: HoldfastStorage) -> None:
    builder = GraphBuilder()
    for name in ("one", "two"):
        builder.add_node(
            Agent(name=name, model=Scripted([[f"{name} said"]]), callback_handler=None), name
        )
    builder.add_edge("one", "two")
    builder.set_max_node_executions(9)
    builder.set_session_manager(SnapshotSessionManager("g1", storage=storage))
    graph = builder.build()

    assert str(graph("go").status) == "Status.COMPLETED"

    (key,) = asyncio.run(storage.list(""))
    assert key.startswith("session/g1/scopes/multiAgent/")
    assert conversation("g1", storage.client) is None


def test_files_go_with_messages(url: str, tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()
    storage = HoldfastStorage(url=url, workspace=place)

    @tool
    def note(text: str) -> str:
        """Write a note."""
        (place / "notes.txt").write_text(text)
        return "noted"

    model = Scripted([[("note", {"text": "one"})], ["ok"], [("note", {"text": "two"})], ["ok"]])
    agent(storage, model, note)("first")
    kept = storage.client.timeline("strands", "s1")[0].checkpoint_id
    agent(storage, model, note)("second")
    asyncio.run(storage.close())
    assert (place / "notes.txt").read_text() == "two"

    with SyncClient.open(url) as client, client.session("strands", "s1", workspace=place) as run:
        run.rollback(kept)

    assert (place / "notes.txt").read_text() == "one"


# Effects


def test_an_irreversible_call_of_unknown_end_is_not_made_again(storage: HoldfastStorage) -> None:
    calls: list[str] = []
    model = Scripted([[("second", {"x": 1})], ["over"]])
    begun = asyncio.Event()
    second = once_cut(calls, storage, begun)
    effects: Any = {"second": "irreversible"}
    cut(agent(storage, model, second, effects=effects), begun)

    working = agent(storage, model, second, effects=effects)
    with pytest.raises(HoldfastStorageError, match=r"^second\(") as caught:
        working(prompt_once(working, PROMPT))
    assert isinstance(caught.value.__cause__, UnknownEffectError)

    with storage.client.session("strands", "s1") as run:
        (unknown,) = run.unknown_effects()
        unknown.mark_done({"type": "tool_call_response", "response": "sent already"})
    working = agent(storage, model, second, effects=effects)
    working(prompt_once(working, PROMPT))
    assert results(working.messages) == [[{"text": "sent already"}]]
    assert calls == ["second"]


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("was rising", "was rising"),
        ({"mail": "ü"}, '{"mail": "ü"}'),
        ({"type": "tool_call_response"}, '{"type": "tool_call_response"}'),
        ([1, None], "[1, null]"),
        (None, "null"),
        ("", ""),
    ],
)
def test_what_a_person_says_a_call_gave_is_its_result(
    storage: HoldfastStorage, said: Any, given: str
) -> None:
    calls: list[str] = []
    model = Scripted([[("second", {"x": 1})], ["over"]])
    begun = asyncio.Event()
    second = once_cut(calls, storage, begun)
    effects: Any = {"second": "irreversible"}
    cut(agent(storage, model, second, effects=effects), begun)
    with storage.client.session("strands", "s1") as run:
        run.unknown_effects()[0].mark_done(said)

    working = agent(storage, model, second, effects=effects)
    working(prompt_once(working, PROMPT))

    (result,) = [b["toolResult"] for b in working.messages[2]["content"]]
    assert (result["status"], result["content"]) == ("success", [{"text": given}])
    assert calls == ["second"]


@pytest.mark.parametrize("made_again", [True, False])
def test_another_prompt_while_a_call_is_unknown_is_refused_and_writes_nothing(
    storage: HoldfastStorage, made_again: bool
) -> None:
    calls: list[str] = []

    @tool
    def first(x: int) -> str:
        """Do the first thing."""
        calls.append("first")
        return "one"

    model = Scripted([[("first", {"x": 1}), ("second", {"x": 1})], ["over"]])
    begun = asyncio.Event()
    second = once_cut(calls, storage, begun)
    effects: Any = {"second": "irreversible"}
    working = agent(storage, model, first, second, effects=effects)
    cut(working, begun)
    before = storage.client.timeline("strands", "s1")

    if made_again:
        working = agent(storage, model, first, second, effects=effects)
    with pytest.raises(HoldfastStorageError, match=r"^second\("):
        working(prompt_once(working, PROMPT))
    for _ in range(2):
        with pytest.raises(UnknownEffectError, match=r"^second\(.*holdfast resolve"):
            working(prompt_once(working, "something else"))
        assert len(working.messages) == 2
    assert storage.client.timeline("strands", "s1") == before

    with storage.client.session("strands", "s1") as run:
        run.unknown_effects()[0].mark_done("was sent")
    working(prompt_once(working, PROMPT))
    assert results(working.messages) == [[{"text": "one"}], [{"text": "was sent"}]]
    assert sorted(calls) == ["first", "second"]


# An agent whose session went on without it


REFUSED = "is not as this agent knows it.*Make the agent again"


@pytest.mark.parametrize("takes_turns_before", [True, False])
@pytest.mark.parametrize("save_latest_on", ["message", "invocation"])
def test_an_agent_does_not_write_over_the_turn_of_another(
    storage: HoldfastStorage, url: str, takes_turns_before: bool, save_latest_on: Any
) -> None:
    def made(kept_in: HoldfastStorage) -> Agent:
        return Agent(
            model=Scripted([["one"], ["two"], ["three"], ["four"]]),
            session_manager=SnapshotSessionManager(
                "s1", storage=kept_in, save_latest_on=save_latest_on
            ),
            plugins=[kept_in.plugin()],
            callback_handler=None,
        )

    working = made(storage)
    if takes_turns_before:
        working("from A")
        working("from A again")
    elsewhere = HoldfastStorage(url=url)  # another process
    made(elsewhere)("from B")
    asyncio.run(elsewhere.close())
    steps = storage.client.timeline("strands", "s1")

    for _ in range(2):
        with pytest.raises(HoldfastStorageError, match=REFUSED):
            working("from A at last")
    assert storage.client.timeline("strands", "s1") == steps

    again = made(storage)
    again("from A at last")
    assert texts(again.messages)[-4::2] == ["from B", "from A at last"]


def test_a_rollback_under_a_living_agent_is_not_undone(storage: HoldfastStorage) -> None:
    model = Scripted([["one"], ["two"], ["three"]])
    working = agent(storage, model)
    working("first")
    kept = storage.client.timeline("strands", "s1")[0].checkpoint_id
    working("second")
    with storage.client.session("strands", "s1") as run:
        run.rollback(kept)

    with pytest.raises(HoldfastStorageError, match=REFUSED):
        working("third")

    assert texts(agent(storage, model).messages) == ["first", "one"]
    manager: Any = working._session_manager
    asyncio.run(manager.restore_snapshot(working))  # or it is told to read the session again
    working("third")
    assert texts(agent(storage, model).messages) == ["first", "one", "third", "two"]


def test_what_an_agent_does_between_turns_is_its_own(storage: HoldfastStorage) -> None:
    @tool
    def count(x: int) -> str:
        """Count."""
        return "counted"

    model = Scripted([["one"], ["two"], ["three"], ["four"], ["five"]])
    working, other = agent(storage, model, count), agent(storage, model, count)
    working("first")
    working.tool.count(x=1)
    working("second")
    working.messages.append({"role": "user", "content": [{"text": "by hand"}]})
    manager: Any = working._session_manager
    asyncio.run(manager.save_snapshot(working, is_latest=True))
    working("third")
    with pytest.raises(HoldfastStorageError, match=REFUSED):
        other.tool.count(x=1)

    assert other.messages == []
    said = texts(agent(storage, model, count).messages)
    assert {"first", "one", "second", "by hand", "third"} <= set(said)


def test_rollback_undoes_what_tools_did(storage: HoldfastStorage) -> None:
    booked: list[str] = []

    @tool
    def book(room: str) -> str:
        """Book a room."""
        booked.append(room)
        return f"booked {room}"

    def cancel(output: Any, room: str) -> None:
        booked.remove(room)

    @tool
    def send(text: str) -> str:
        """Send a mail."""
        return "sent"

    effects: Any = {"book": ToolEffect("reversible", compensate=cancel), "send": "irreversible"}
    script: list[list[Any]] = [
        [("book", {"room": "7"})],
        ["booked"],
        [("send", {"text": "hi"})],
        ["sent"],
    ]
    model = Scripted(script)
    agent(storage, model, book, send, effects=effects)("book it")
    with storage.client.session("strands", "s1", tools=[cancel]) as run:
        run.rollback("user prompt")
    assert booked == []

    agent(storage, model, book, send, effects=effects)(None)
    kept = storage.client.timeline("strands", "s1")[0].checkpoint_id
    agent(storage, model, book, send, effects=effects)("send it")
    assert booked == ["7"]
    with storage.client.session("strands", "s1") as run, pytest.raises(RollbackRefusedError):
        run.rollback(kept)


def test_a_tool_that_asks_people_is_made_when_they_have_answered(storage: HoldfastStorage) -> None:
    paid: list[int] = []

    @tool(context=True)
    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay."""
        said = tool_context.interrupt("approve", reason=f"pay {amount}?")
        if said == "yes":
            paid.append(amount)
        return f"{said}: {len(paid)}"

    model = Scripted([[("pay", {"amount": 7})], ["over"]])
    asked = agent(storage, model, pay)(PROMPT)
    assert asked.stop_reason == "interrupt"
    (interrupt,) = asked.interrupts
    found = conversation("s1", storage.client)
    assert found is not None
    assert [each["message"] for each in found.interrupts] == ["pay 7?"]

    answer: Any = [{"interruptResponse": {"interruptId": interrupt.id, "response": "yes"}}]
    working = agent(storage, model, pay)
    working(answer)

    assert paid == [7]
    assert results(working.messages) == [[{"text": "yes: 1"}]]


def test_who_is_asked_may_edit_or_deny_a_call(storage: HoldfastStorage) -> None:
    sent: list[str] = []

    @tool
    def send(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return "sent"

    def decide(effect: Any) -> Any:
        if effect.kwargs["to"] == "everybody":
            return Decision(allowed=False, reason="too many")
        return Decision(allowed=True, kwargs={"to": "bob"})

    model = Scripted([[("send", {"to": "ann"}), ("send", {"to": "everybody"})], ["over"]])
    effects: Any = {"send": "irreversible"}
    working = agent(storage, model, send, effects=effects, approval=decide)
    working(PROMPT)

    assert sent == ["bob"]
    edited, denied = results(working.messages)
    assert edited == [{"text": "sent"}]
    assert "too many" in denied[0]["text"]


def test_a_store_that_is_full_is_an_error_that_comes_out_of_the_agent() -> None:
    store = FullStore()
    client = SyncClient(store)
    storage = HoldfastStorage(client)

    @tool
    def fill(x: int) -> str:
        """Fill the disk."""
        store.is_full = x > 1
        return "filled"

    model = Scripted([[("fill", {"x": 2})], [("fill", {"x": 1})], ["over"]])
    with pytest.raises(Exception, match="no space is left"):
        agent(storage, model, fill)(PROMPT)
    store.is_full = False

    assert len(agent(storage, model, fill).messages) == 2
    client.close()


def test_bad_effects_and_agents_are_refused(storage: HoldfastStorage) -> None:
    with pytest.raises(InvalidArgumentError, match="the effect of a tool is one of"):
        storage.plugin({"send": "harmless"})  # type: ignore[dict-item]
    alone = Agent(model=Scripted([["hi"]]), plugins=[storage.plugin()], callback_handler=None)
    with pytest.raises(InvalidArgumentError, match="SnapshotSessionManager"):
        alone("hi")


def test_a_checkpoint_that_cannot_be_written_is_an_error_that_is_seen(url: str) -> None:
    for journaled in (True, False):
        client = SyncClient.open(url)
        storage = HoldfastStorage(client)
        working = agent(storage, Scripted([["hi"]]), journaled=journaled)
        client.close()
        with pytest.raises(Exception, match="closed"):
            working("hi")
