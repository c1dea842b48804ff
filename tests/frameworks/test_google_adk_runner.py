"""ADK's runner on the session service: resume, tools one by one, effects, rewind."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.workflow import START, Workflow
from google.genai import types

from holdfast import Client
from holdfast.adapters.google_adk import HoldfastPlugin, HoldfastSessionService
from holdfast.adapters.journal import ToolEffect
from holdfast.adapters.portable import conversation
from holdfast.errors import RollbackRefusedError, UnknownEffectError
from holdfast.session.approval import Decision
from tests.frameworks.full_store import FullStore

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*Agent is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning"),
]
WHO: dict[str, Any] = {"app_name": "shop", "user_id": "ann"}
RECORD = "shop/ann/s1"
HELLO = types.UserContent("hello")


class PowerCut(BaseException):
    """Ends a run as a kill would."""


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[HoldfastSessionService]:
    async with HoldfastSessionService(url=f"sqlite:///{tmp_path / 'h.db'}") as opened:
        yield opened


class Scripted(BaseLlm):
    """A model that says, after so many answers of its own, what the script has there."""

    model: str = "scripted"
    script: list[list[Any]]
    asked: list[list[types.Content]]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append(llm_request.contents)
        said = sum(content.role == "model" for content in llm_request.contents)
        parts = [
            types.Part(text=each)
            if isinstance(each, str)
            else types.Part(function_call=types.FunctionCall(name=each[0], args=each[1]))
            for each in self.script[said]
        ]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def agent(script: list[list[Any]], *tools: Any, **options: Any) -> LlmAgent:
    model = Scripted(script=script, asked=[])
    return LlmAgent(name=options.pop("name", "clerk"), model=model, tools=list(tools), **options)


def runner(service: HoldfastSessionService, root: Any, **options: Any) -> Runner:
    app = App(
        name="shop",
        root_agent=root,
        plugins=[service.plugin(**options)],
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    return Runner(app=app, session_service=service, auto_create_session=True)


async def run(runner: Runner, message: Any = HELLO, **options: Any) -> list[Any]:
    """Return what was said: texts, and what functions were called and what they gave."""
    found: list[Any] = []
    events = runner.run_async(
        user_id="ann",
        session_id="s1",
        new_message=types.UserContent(message) if isinstance(message, str) else message,
        **options,
    )
    async for event in events:
        for part in (event.content.parts if event.content else None) or []:
            if part.function_call:
                found.append(part.function_call.name)
            elif part.function_response:
                found.append(part.function_response.response)
            else:
                found.append(part.text)
    return found


async def cut(runner: Runner, message: Any = HELLO) -> None:
    """Run until the power is cut, and leave all as it is then, as a kill does."""
    with pytest.raises(PowerCut):
        await run(runner, message)
    service = runner.session_service
    assert isinstance(service, HoldfastSessionService)
    for record, opened in list(service.runs._open.items()):
        await opened.run.__aexit__(PowerCut, PowerCut(), None)
        del service.runs._open[record]


def once_cut(calls: list[str], result: Any = "done") -> Callable[..., Any]:
    """Return a tool in which the power is cut the first time."""

    async def second(x: int) -> Any:
        """Do the second thing."""
        calls.append("second")
        if calls.count("second") == 1:
            raise PowerCut
        return result

    return second


async def test_of_tools_at_once_only_the_unfinished_run_again(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []

    async def first(x: int, tool_context: ToolContext) -> dict[str, int]:
        """Do the first thing."""
        calls.append("first")
        tool_context.state["seen"] = x
        tool_context.state["user:seen"] = x
        return {"got": x}

    script: list[list[Any]] = [
        [("first", {"x": 1})],
        [("first", {"x": 2}), ("second", {"x": 2})],
        ["over"],
    ]
    root = agent(script, first, once_cut(calls))
    await cut(runner(service, root))

    told = await run(runner(service, root))

    assert told == [{"got": 2}, {"result": "done"}, "over"]
    assert calls == ["first", "first", "second", "second"]
    session = await service.get_session(**WHO, session_id="s1")
    assert session is not None
    assert session.state == {"seen": 2, "user:seen": 2}
    assert len([event for event in session.events if event.author == "user"]) == 1
    assert len(root.model.asked) == 3


async def test_a_run_that_was_cancelled_goes_on_in_the_same_runner(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []
    root = agent([[("second", {"x": 1})], ["over"]], once_cut(calls))
    working = runner(service, root)
    with pytest.raises(PowerCut):
        await run(working)

    assert await run(working) == [{"result": "done"}, "over"]
    assert len(root.model.asked) == 2
    session = await service.get_session(**WHO, session_id="s1")
    assert session is not None
    assert [event.author for event in session.events].count("user") == 1


async def test_nothing_that_a_tool_may_return_has_it_run_twice(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []
    results = {"none": None, "empty": {}, "text": "", "zero": 0, "list": [1], "type": {"type": "x"}}

    def give(what: str) -> Any:
        """Give something."""
        calls.append(what)
        return results[what]

    batch = [*(("give", {"what": what}) for what in results), ("second", {"x": 1})]
    root = agent([batch, ["over"]], give, once_cut(calls))
    whole = await run(runner(service, agent([batch[:-1], ["over"]], give)))
    await service.delete_session(**WHO, session_id="s1")
    calls.clear()
    await cut(runner(service, root))

    told = await run(runner(service, root))

    given = [each for each in whole if isinstance(each, dict)]
    assert [each for each in told if isinstance(each, dict)] == [*given, {"result": "done"}]
    assert calls == [*results, "second", "second"]


async def test_another_prompt_begins_anew_and_the_orphan_is_left_out(
    service: HoldfastSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []
    root = agent([["hm", ("second", {"x": 1})], ["over"]], once_cut(calls))
    await cut(runner(service, root))

    with caplog.at_level(logging.ERROR):
        assert await run(runner(service, root), "something else") == ["over"]

    assert calls == ["second"]
    asked = root.model.asked[-1]
    assert [part.text for content in asked for part in content.parts or []] == [
        "hello",
        "hm",
        "something else",
    ]
    found = conversation("s1", service.client)
    assert found is not None
    assert found.problems() != []
    assert found.settle(rest="answer").problems() == []


async def test_a_finished_run_takes_the_same_prompt_as_a_new_turn(
    service: HoldfastSessionService,
) -> None:
    root = agent([["one"], ["two"]])
    assert await run(runner(service, root)) == ["one"]
    assert await run(runner(service, root)) == ["two"]


async def test_a_plugin_without_a_service_works_with_that_of_the_runner(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []
    root = agent([[("second", {"x": 1})], ["over"], ["again"]], once_cut(calls))
    app = App(
        name="shop",
        root_agent=root,
        plugins=[HoldfastPlugin(effects={"second": "read"})],
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    working = Runner(app=app, session_service=service, auto_create_session=True)
    with pytest.raises(PowerCut):
        await run(working)
    assert await run(working) == [{"result": "done"}, "over"]
    with service.client.session("google_adk", RECORD) as opened:
        assert [call.kind for call in opened.effects] == ["read"]

    elsewhere = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)
    assert (await run(elsewhere))[-1] == "over"


async def test_without_the_plugin_the_service_tells_what_was_cut_off(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []
    root = agent([[("second", {"x": 1})], ["over"]], once_cut(calls))
    app = App(
        name="shop",
        root_agent=root,
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    plain = Runner(app=app, session_service=service, auto_create_session=True)
    names = {**WHO, "session_id": "s1"}
    assert await service.unfinished(**names) is None
    await cut(plain)

    cut_off = await service.unfinished(**names, new_message=HELLO)

    assert cut_off is not None
    assert await service.unfinished(**names) == cut_off
    assert await service.unfinished(**names, new_message=types.UserContent("other")) is None
    assert await run(plain, invocation_id=cut_off) == [{"result": "done"}, "over"]
    assert await service.unfinished(**names) is None
    session = await service.get_session(**names)
    assert session is not None
    assert [event.author for event in session.events].count("user") == 1


async def test_agents_one_after_the_other_go_on_with_the_one_that_was_cut(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []
    one = agent([["first word"], ["never"]], name="one")
    two = agent([[("second", {"x": 1})], ["second word"]], once_cut(calls), name="two")
    three = agent([["third word"], ["never"]], name="three")
    root = SequentialAgent(name="all", sub_agents=[one, two, three])
    await cut(runner(service, root))

    told = await run(runner(service, root))

    assert told == [{"result": "done"}, "second word", "third word"]
    assert len(one.model.asked) == len(three.model.asked) == 1
    assert len(two.model.asked) == 2
    assert await run(runner(service, SequentialAgent(name="b", sub_agents=[agent([["x"]] * 9)])))


async def test_agents_beside_each_other_go_on_each_where_it_was(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []

    async def first(x: int) -> str:
        """Do the first thing."""
        calls.append("first")
        return "one"

    one = agent([[("first", {"x": 1})], ["first word"]], first, name="one")
    two = agent([[("second", {"x": 1})], ["second word"]], once_cut(calls), name="two")
    root = ParallelAgent(name="both", sub_agents=[one, two])
    await cut(runner(service, root))

    told = await run(runner(service, root))

    assert {"first word", "second word"} <= {each for each in told if isinstance(each, str)}
    assert calls.count("second") == 2
    assert len(one.model.asked) == len(two.model.asked) == 2
    session = await service.get_session(**WHO, session_id="s1")
    assert session is not None
    assert session.events[-1].actions.end_of_agent


async def test_a_workflow_runs_with_its_tools_journaled(service: HoldfastSessionService) -> None:
    calls = ["second"]
    one = agent([["first word"]], name="one")
    two = agent([[("second", {"x": 1})], ["second word"]], once_cut(calls), name="two")
    root = Workflow(name="both", edges=[(START, one), (one, two)])

    told = await run(runner(service, root))

    assert told == ["first word", "second", {"result": "done"}, "second word"]
    with service.client.session("google_adk", RECORD) as opened:
        assert [call.tool for call in opened.effects] == ["second"]


async def test_an_agent_in_a_tool_is_one_call(service: HoldfastSessionService) -> None:
    calls: list[str] = []
    inner = agent([["inner word"]], name="inner", description="Thinks.")
    batch = [("inner", {"request": "think"}), ("second", {"x": 1})]
    root = agent([batch, ["over"]], AgentTool(inner), once_cut(calls))
    await cut(runner(service, root))

    told = await run(runner(service, root))

    assert told == [{"result": "inner word"}, {"result": "done"}, "over"]
    assert {step.session_id for step in service.client.find()} == {RECORD}


async def test_a_tool_that_fails_ends_the_run_and_the_next_begins_anew(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []

    def shaky(x: int) -> str:
        """Fail the first time."""
        calls.append("shaky")
        if len(calls) == 1:
            raise ValueError("no luck")
        return "luck"

    root = agent([[("shaky", {"x": 1})], ["over"]], shaky)
    with pytest.raises(ValueError, match="no luck"):
        await run(runner(service, root))

    assert await run(runner(service, root)) == ["shaky", {"result": "luck"}, "over"]
    assert calls == ["shaky", "shaky"]
    assert "failed" in [step.step_name for step in service.client.timeline("google_adk", RECORD)]


async def test_a_tool_that_waits_for_people_is_made_when_they_have_said_yes(
    service: HoldfastSessionService,
) -> None:
    calls: list[int] = []

    def pay(amount: int) -> str:
        """Pay."""
        calls.append(amount)
        return "paid"

    root = agent([[("pay", {"amount": 7})], ["over"]], FunctionTool(pay, require_confirmation=True))
    asked = await run(runner(service, root))
    assert "adk_request_confirmation" in asked
    assert calls == []

    found = conversation("s1", service.client)
    assert found is not None
    (interrupt,) = found.interrupts
    answer = types.FunctionResponse(
        id=interrupt["id"], name="adk_request_confirmation", response={"confirmed": True}
    )
    message = types.Content(role="user", parts=[types.Part(function_response=answer)])
    told = await run(runner(service, root), message)

    assert calls == [7]
    assert told[-1] == "over"


async def test_a_tool_that_answers_later_is_begun_once(service: HoldfastSessionService) -> None:
    calls: list[str] = []

    def ticket(x: int) -> None:
        """Ask somebody."""
        calls.append("ticket")

    batch = [("ticket", {"x": 1}), ("second", {"x": 1})]
    root = agent([batch, ["over"]], LongRunningFunctionTool(ticket), once_cut(calls))
    await cut(runner(service, root))
    await run(runner(service, root))

    assert calls.count("ticket") == 1


# Effects


async def test_an_irreversible_call_of_unknown_end_is_not_made_again(
    service: HoldfastSessionService,
) -> None:
    calls: list[str] = []
    root = agent([[("second", {"x": 1})], ["over"]], once_cut(calls))
    effects = {"second": "irreversible"}
    await cut(runner(service, root, effects=effects))

    with pytest.raises(UnknownEffectError, match="second"):
        await run(runner(service, root, effects=effects))

    with service.client.session("google_adk", RECORD) as opened:
        (unknown,) = opened.unknown_effects()
        unknown.mark_done("sent already")
    assert await run(runner(service, root, effects=effects)) == [
        {"result": "sent already"},
        "over",
    ]
    assert calls == ["second"]


async def test_who_is_asked_may_edit_or_deny_a_call(service: HoldfastSessionService) -> None:
    sent: list[str] = []

    def send(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return "sent"

    def decide(effect: Any) -> Any:
        if effect.kwargs["to"] == "everybody":
            return Decision(allowed=False, reason="too many")
        return Decision(allowed=True, kwargs={"to": "bob"})

    batch = [("send", {"to": "ann"}), ("send", {"to": "everybody"})]
    root = agent([batch, ["over"]], send)
    asking = runner(service, root, effects={"send": "irreversible"}, approval=decide)

    told = await run(asking)

    assert sent == ["bob"]
    assert told[2] == {"result": "sent"}
    assert "too many" in told[3]["error"]
    assert told[-1] == "over"


async def test_rollback_undoes_what_tools_did(service: HoldfastSessionService) -> None:
    booked: list[str] = []

    def book(room: str) -> str:
        """Book a room."""
        booked.append(room)
        return f"booked {room}"

    def cancel(output: str, room: str) -> None:
        booked.remove(room)

    def send(text: str) -> str:
        """Send a mail."""
        return "sent"

    effects: dict[str, Any] = {
        "book": ToolEffect("reversible", compensate=cancel),
        "send": "irreversible",
    }
    root = agent(
        [[("book", {"room": "7"})], ["booked"], [("send", {"text": "hi"})], ["sent"]], book, send
    )
    await run(runner(service, root, effects=effects))
    before = service.client.timeline("google_adk", RECORD)[0]
    with service.client.session("google_adk", RECORD, tools=[cancel]) as opened:
        opened.rollback("user prompt")
    assert booked == []

    await run(runner(service, root, effects=effects))
    assert booked == ["7"]
    with service.client.session("google_adk", RECORD, tools=[cancel]) as opened:
        opened.rollback(before.checkpoint_id)
    await run(runner(service, root, effects=effects), "and now send")
    with (
        service.client.session("google_adk", RECORD) as opened,
        pytest.raises(RollbackRefusedError),
    ):
        opened.rollback(before.checkpoint_id)


async def test_bad_effects_and_apps_are_refused(service: HoldfastSessionService) -> None:
    with pytest.raises(ValueError, match="the effect of a tool is one of"):
        service.plugin({"send": "harmless"})  # type: ignore[dict-item]
    app = App(name="shop", root_agent=agent([["hi"]]), plugins=[service.plugin()])
    plain = Runner(app=app, session_service=service, auto_create_session=True)
    with pytest.raises(RuntimeError, match="is_resumable=True"):
        await run(plain)


async def test_two_runs_in_one_session_at_once_are_refused(
    service: HoldfastSessionService,
) -> None:
    async def again(x: int) -> str:
        """Run the same session."""
        with pytest.raises(RuntimeError, match="s1"):
            await run(runner(service, agent([["x"]] * 9)), "other")
        return "refused"

    root = agent([[("again", {"x": 1})], ["over"]], again)
    assert await run(runner(service, root)) == ["again", {"result": "refused"}, "over"]


async def test_a_store_that_is_full_is_an_error_that_comes_out_of_the_run() -> None:
    store = FullStore()
    async with Client(store) as client:
        service = HoldfastSessionService(client)

        def fill(x: int) -> str:
            """Fill the disk."""
            store.is_full = x > 1
            return "filled"

        root = agent([[("fill", {"x": 2})], [("fill", {"x": 1})], ["over"]], fill)
        with pytest.raises(Exception, match="no space is left"):
            await run(runner(service, root))
        store.is_full = False

        session = await service.get_session(**WHO, session_id="s1")
        assert session is not None
        assert len(session.events) == 2


def test_the_runner_of_sync_programs_works_too(tmp_path: Path) -> None:
    service = HoldfastSessionService(url=f"sqlite:///{tmp_path / 'h.db'}")

    def first(x: int) -> str:
        """Do it."""
        return "one"

    root = agent([[("first", {"x": 1})], ["over"], ["again"]], first)
    for said in ("over", "again"):
        events = runner(service, root).run(user_id="ann", session_id="s1", new_message=HELLO)
        texts = [e.content.parts[0].text for e in events if e.content and e.is_final_response()]
        assert texts == [said]
    service.client.close()


# Rewind and rollback


async def test_rewind_takes_events_and_state_back(service: HoldfastSessionService) -> None:
    def count(n: int, tool_context: ToolContext) -> str:
        """Count."""
        tool_context.state["n"] = n
        return "counted"

    root = agent([[("count", {"n": 1})], ["one"], [("count", {"n": 2})], ["two"], ["three"]], count)
    working = runner(service, root)
    await run(working, "first")
    await run(working, "second")
    session = await service.get_session(**WHO, session_id="s1")
    assert session is not None
    assert session.state["n"] == 2
    second = next(e for e in session.events if e.content and e.content.parts[0].text == "second")

    await working.rewind_async(
        user_id="ann", session_id="s1", rewind_before_invocation_id=second.invocation_id
    )

    session = await service.get_session(**WHO, session_id="s1")
    assert session is not None
    assert session.state["n"] == 1
    found = conversation("s1", service.client)
    assert found is not None
    assert [m["parts"][0].get("content") for m in found.messages if m["role"] == "user"] == [
        "first"
    ]
    assert service.client.timeline("google_adk", RECORD)[0].step_name == "rewind"
    assert (await run(working, "again"))[0] == "count"


async def test_a_session_that_was_rolled_back_goes_on_from_there(
    service: HoldfastSessionService,
) -> None:
    root = agent([["one"], ["two"], ["three"]])
    await run(runner(service, root), "first")
    kept = service.client.timeline("google_adk", RECORD)[0].checkpoint_id
    await run(runner(service, root), "second")
    with service.client.session("google_adk", RECORD) as opened:
        opened.rollback(kept)

    assert await run(runner(service, root), "other") == ["two"]

    asked = root.model.asked[-1]
    assert [part.text for content in asked for part in content.parts or []] == [
        "first",
        "one",
        "other",
    ]
