"""Calls of unknown end are listed and decided of from outside the program that made them."""

from typing import Any

import pytest

from holdfast.errors import InvalidArgumentError, RunError, SessionBusyError
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, killed


def cut_off(session: Open, tools: Tools, *args: Any) -> None:
    with killed(), session() as run:
        run.call(tools.read)
        run.call(tools.cut, *args, effect="irreversible")


def program(session: Open, tools: Tools, *args: Any) -> Any:
    with session() as run:
        run.call(tools.read)
        return run.call(tools.cut, *args, effect="irreversible")


def test_calls_of_unknown_end_are_listed_over_all_sessions(
    session: Open, client: Any, tools: Tools
) -> None:
    cut_off(session, tools, 7)
    with killed(), client.session("other", session_id="two") as run:
        run.call(tools.cut, effect="irreversible")
    with killed(), client.session("other", session_id="local") as run:
        run.call(tools.cut)  # it simply runs again

    found = client.unknown_effects()
    assert [(call.agent_id, call.session_id, str(call)) for call in found] == [
        (AGENT, SESSION, "cut(7)"),
        ("other", "two", "cut()"),
    ]
    assert [str(call) for call in client.unknown_effects(AGENT)] == ["cut(7)"]
    assert [str(call) for call in client.unknown_effects(session_id="two")] == ["cut()"]
    assert client.unknown_effects("nobody") == []


def test_a_call_that_is_done_gives_the_program_what_was_said(
    session: Open, client: Any, tools: Tools
) -> None:
    cut_off(session, tools)
    (call,) = client.unknown_effects()

    assert client.resolve(call.effect_id[:8], done={"id": 17}) == call

    assert client.unknown_effects() == []
    assert program(session, tools) == {"id": 17}
    assert tools.names() == ["read", "cut"]


@pytest.mark.parametrize("reason", ["the bank knows nothing of it", ValueError("no")])
def test_a_call_that_failed_raises_in_the_program(
    session: Open, client: Any, tools: Tools, reason: Any
) -> None:
    cut_off(session, tools)
    client.resolve(client.unknown_effects()[0].effect_id, failed=reason)

    with pytest.raises(Exception, match=str(reason)) as raised:
        program(session, tools)
    assert type(raised.value) is (RunError if isinstance(reason, str) else ValueError)


def test_a_call_that_is_to_be_made_again_is(session: Open, client: Any, tools: Tools) -> None:
    cut_off(session, tools)
    client.resolve(client.unknown_effects()[0].effect_id, retry=True)

    assert client.unknown_effects() == []
    with pytest.raises(PowerCut):
        program(session, tools)
    assert tools.names() == ["read", "cut", "cut"]


def test_a_call_that_was_under_way_at_a_checkpoint_is_listed_too(
    session: Open, client: Any, tools: Tools
) -> None:
    with killed(), session() as run:
        run.call(during(run, tools), effect="irreversible")

    (call,) = client.unknown_effects()
    assert call.tool == "send_and_save"
    with session() as run:  # only looks
        assert len(run.unknown_effects()) == 1
    assert client.unknown_effects() == [call]
    client.resolve(call.effect_id, done=None)
    assert client.unknown_effects() == []


def during(run: Any, tools: Tools) -> Any:
    def send_and_save() -> None:
        run.checkpoint("meanwhile")
        raise PowerCut

    async def asend_and_save() -> None:
        await run._inner.checkpoint("meanwhile")
        raise PowerCut

    if not hasattr(run, "_inner"):
        return send_and_save
    asend_and_save.__name__ = "send_and_save"
    return asend_and_save


def test_nothing_is_decided_where_a_process_works_on_the_session(
    session: Open, client: Any, tools: Tools
) -> None:
    cut_off(session, tools)
    (call,) = client.unknown_effects()
    with session():
        assert client.unknown_effects() == []  # whoever works on it may be making it
        with pytest.raises(SessionBusyError, match="is worked on by process"):
            client.resolve(call.effect_id, done=1)
    assert client.unknown_effects() == [call]


def test_one_thing_is_decided_of_one_call(session: Open, client: Any, tools: Tools) -> None:
    cut_off(session, tools)
    (call,) = client.unknown_effects()
    for said in ({}, {"done": 1, "retry": True}, {"failed": 7}, {"failed": "x", "done": None}):
        with pytest.raises(InvalidArgumentError):
            client.resolve(call.effect_id, **said)
    with pytest.raises(RunError, match="at least 6"):
        client.resolve("abc", retry=True)
    with pytest.raises(RunError, match="no call of unknown end"):
        client.resolve("abcdefgh", retry=True)
    assert client.unknown_effects() == [call]


@pytest.mark.parametrize(
    "name", ["state", "context", "tasks", "effects", "progress", "resumed", "recovered", "head"]
)
def test_a_run_that_was_not_opened_has_nothing_and_says_so(session: Open, name: str) -> None:
    with pytest.raises(RunError, match=r"was not opened: use `with client.session"):
        getattr(session(), name)


def test_a_run_that_was_not_opened_does_nothing_and_says_so(session: Open, tools: Tools) -> None:
    run = session()
    for tried in (
        lambda: run.call(tools.read),
        lambda: run.checkpoint("x"),
        lambda: setattr(run, "state", {}),
        lambda: run.unknown_effects(),
        lambda: run.rollback(),
    ):
        with pytest.raises(RunError, match="was not opened"):
            tried()
    assert tools.ran == []
