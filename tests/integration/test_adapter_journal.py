"""Tools of an agent that are journaled by call id: each call is made once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    ApprovalDeniedError,
    Client,
    Framework,
    InvalidArgumentError,
    StoreError,
    UnknownEffectError,
)
from holdfast.adapters.journal import ToolEffect, ToolJournal
from tests.clients import url_of


class Cut(BaseException):
    """What ends a program without its being a failure, as an interrupt does."""


class Tool:
    """A tool that remembers what it was called with."""

    def __init__(self, *, error: Exception | None = None) -> None:
        self.calls: list[Any] = []
        self.error = error

    async def __call__(self, arguments: Any) -> str:
        self.calls.append(arguments)
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return f"{len(self.calls)}: {arguments}"


def opened(client: Client, **options: Any) -> Any:
    return client.session("agent", "s", framework=Framework.OPENAI_AGENTS, **options)


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    async with Client.open(url_of(request.param, tmp_path)) as client:
        yield client


async def test_a_call_is_made_once_for_its_id(client: Client) -> None:
    tool = Tool()
    async with opened(client) as run:
        journal = ToolJournal(run)
        first = await journal.call("look", "call_1", {"where": "Süd"}, tool)
        assert await journal.call("look", "call_1", {"where": "Süd"}, tool) == first
    async with opened(client) as run:
        journal = ToolJournal(run)
        assert await journal.call("look", "call_1", {"where": "Süd"}, tool) == first
        assert await journal.call("look", "call_2", {"where": "Süd"}, tool) != first

    assert tool.calls == [{"where": "Süd"}] * 2
    made = [str(call) for call in run.effects if call.reused is None]
    assert made == ["look(where='Süd')"] * 2


async def test_calls_run_side_by_side(client: Client) -> None:
    tool = Tool()
    async with opened(client) as run:
        journal = ToolJournal(run)
        calls = (journal.call("look", f"call_{n}", {"n": n}, tool) for n in range(5))
        outputs = await asyncio.gather(*calls)

    assert len(set(outputs)) == 5
    assert len(tool.calls) == 5


@pytest.mark.parametrize(
    "arguments",
    [{"self": 1, "key": 2, "effect": 3, "again": 4, "function": 5}, {}, "no JSON", [1], None],
)
async def test_a_tool_gets_the_arguments_that_the_model_gave(arguments: Any) -> None:
    tool = Tool()
    async with Client.memory() as client, opened(client) as run:
        await ToolJournal(run).call("look", "call_1", arguments, tool)

    assert tool.calls == [arguments]


async def test_an_error_of_the_tool_is_its_end_and_not_ours(client: Client) -> None:
    tool = Tool(error=StoreError("the harbour's own database is closed"))

    async def cut_off_after_it() -> None:
        async with opened(client) as run:
            journal = ToolJournal(run)
            with pytest.raises(StoreError, match="harbour"):
                await journal.call("look", "call_1", {}, tool)
            journal.check()
            raise Cut

    for _ in range(2):
        with pytest.raises(Cut):
            await cut_off_after_it()

    assert len(tool.calls) == 1


async def test_a_call_of_unknown_end_is_not_made_again_and_is_told_to_the_user(
    client: Client,
) -> None:
    async def cut_off(arguments: Any) -> str:
        raise Cut

    effects = {"pay": "irreversible"}
    with pytest.raises(Cut):
        async with opened(client) as run:
            await ToolJournal(run, effects).call("pay", "call_1", {"amount": 7}, cut_off)  # type: ignore[arg-type]
    tool = Tool()
    async with opened(client) as run:
        journal = ToolJournal(run, effects)  # type: ignore[arg-type]
        with pytest.raises(UnknownEffectError):
            await journal.call("pay", "call_1", {"amount": 7}, tool)
        with pytest.raises(UnknownEffectError):
            journal.check()
        (unknown,) = run.unknown_effects()
        await unknown.mark_done("paid")
        assert await ToolJournal(run, effects).call("pay", "call_1", {"amount": 7}, tool) == "paid"  # type: ignore[arg-type]

    assert not tool.calls


async def test_what_undoes_a_tool_is_given_its_output_and_arguments(client: Client) -> None:
    undone: list[Any] = []

    def cancel(output: str, **arguments: Any) -> None:
        undone.append((output, arguments))

    async with opened(client) as run:
        journal = ToolJournal(run, {"book": ToolEffect("reversible", compensate=cancel)})
        booked = await journal.call("book", "call_1", {"hotel": "Anchor"}, Tool())
        await run.rollback("start")

    assert undone == [(booked, {"hotel": "Anchor"})]


async def test_who_decides_of_a_call_may_deny_it() -> None:
    def decide(effect: Any) -> Any:
        return bool(effect.kwargs["amount"] <= 100)

    tool = Tool()
    async with Client.memory() as client, opened(client, approval=decide) as run:
        journal = ToolJournal(run, {"pay": "irreversible"})
        await journal.call("pay", "call_1", {"amount": 7}, tool)
        with pytest.raises(ApprovalDeniedError):
            await journal.call("pay", "call_2", {"amount": 700}, tool)
        journal.check()  # a denial is an answer for the model

    assert tool.calls == [{"amount": 7}]


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (["pay"], "effects is a dict"),
        ({"pay": "forever"}, "the effect of a tool is one of"),
        ({7: "read"}, "the effect of a tool is one of"),
        ({"pay": "reversible"}, "tool 'pay': \"reversible\" goes with compensate="),
        ({"pay": ToolEffect("read", compensate=print)}, "goes with compensate="),
    ],
)
async def test_what_is_declared_of_tools_is_checked(wrong: Any, complaint: str) -> None:
    async with Client.memory() as client, opened(client) as run:
        with pytest.raises(InvalidArgumentError, match=complaint):
            ToolJournal(run, wrong)


async def test_a_payment_is_not_made_again_after_a_rollback_whatever_id_a_model_gives_it(
    client: Client,
) -> None:
    tool = Tool()
    async with opened(client) as run:
        journal = ToolJournal(run, {"pay": "irreversible"})
        paid = await journal.call("pay", "call_1", {"amount": 7}, tool)
        await run.rollback("start", accept_irreversible=True)
        assert await journal.call("pay", "call_2", {"amount": 7}, tool) == paid
        assert await journal.call("pay", "call_3", {"amount": 7}, tool) != paid

    assert len(tool.calls) == 2


async def test_a_payment_of_unknown_end_is_not_made_again_on_another_way(client: Client) -> None:
    async def cut_off(arguments: Any) -> str:
        raise Cut

    with pytest.raises(Cut):
        async with opened(client) as run:
            await ToolJournal(run, {"pay": "irreversible"}).call("pay", "c1", {"x": 1}, cut_off)
    head = await client.latest("agent", "s")
    assert head is not None
    await client.fork(head.checkpoint_id, session_id="fork")
    async with opened(client) as run:
        await run.rollback("start", accept_irreversible=True)
    tool = Tool()
    for session in ("s", "fork"):
        run = client.session("agent", session, framework=Framework.OPENAI_AGENTS)
        async with run as opened_run:
            journal = ToolJournal(opened_run, {"pay": "irreversible"})
            with pytest.raises(UnknownEffectError):
                await journal.call("pay", "c2", {"x": 1}, tool)
            with pytest.raises(UnknownEffectError):
                journal.check()
            assert await journal.call("pay", f"c3-{session}", {"x": session}, tool)

    assert tool.calls == [{"x": "s"}, {"x": "fork"}]
