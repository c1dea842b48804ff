"""Approval: calls that wait for a decision, which is bound to them and outlives restarts."""

# ruff: noqa: PT012, SIM117  (a run is a block, and some raise as it ends)

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, SyncClient
from holdfast.errors import ApprovalDeniedError, InvalidArgumentError, RunError, SerializationError
from holdfast.session import Decision
from tests.integration.fork_server import PATH
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, cut_at, power_cut


class Decider:
    """Answers as told, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, effect: Any) -> Any:
        self.asked.append(str(effect))
        return self.answers.pop(0)


def send(run: Any, tools: Tools, *args: Any, **how: Any) -> Any:
    return run.call(tools.send, *args, effect="irreversible", **how)


def test_a_function_decides_of_what_cannot_be_undone(session: Open, tools: Tools) -> None:
    decide = Decider(True, False, Decision(False, "too many"))

    with session(approval=decide) as run:
        run.call(tools.read, "not asked")
        assert send(run, tools, "a") == ["send", "a", 2]
        with pytest.raises(ApprovalDeniedError, match="send"):
            send(run, tools, "b")
        with pytest.raises(ApprovalDeniedError, match="too many") as denied:
            send(run, tools, "c")
        assert denied.value.reason == "too many"
        assert [each.status for each in run.effects] == ["done", "done", "denied", "denied"]
    assert decide.asked == ["send('a')", "send('b')", "send('c')"]
    assert tools.names() == ["read", "send"]


@pytest.mark.parametrize(
    ("when", "asked"),
    [
        (None, ["send('s')"]),
        ("read", ["read('r')"]),
        (["local", "irreversible"], ["write('w')", "send('s')"]),
        (["write"], ["write('w')"]),
        (lambda effect: effect.args == ("r",), ["read('r')"]),
    ],
)
def test_which_calls_wait_is_said_by_kinds_names_or_a_function(
    session: Open, tools: Tools, when: Any, asked: list[str]
) -> None:
    decide = Decider(True, True, True)
    with session(approval=decide, approve_when=when) as run:
        run.call(tools.read, "r", effect="read")
        run.call(tools.write, "w")
        send(run, tools, "s")
    assert decide.asked == asked


def test_a_decision_outlives_a_restart(session: Open, tools: Tools) -> None:
    decide = Decider(True, False)
    with cut_at("run:before_journal"), session(approval=decide) as run:
        send(run, tools, "a")
    with power_cut(), session(approval=decide) as run:
        send(run, tools, "a")
        with pytest.raises(ApprovalDeniedError):
            send(run, tools, "b")
        raise PowerCut

    for _ in range(2):
        with pytest.raises(ApprovalDeniedError), session(approval=decide) as run:
            send(run, tools, "a")
            send(run, tools, "b")  # and it leaves the block: the answer is still no
    assert decide.asked == ["send('a')", "send('b')"]
    assert tools.names() == ["send"]


def test_a_changed_call_asks_anew(session: Open, tools: Tools) -> None:
    decide = Decider(True, False)
    with cut_at("run:before_journal"), session(approval=decide) as run:
        send(run, tools, "to ann")

    with session(approval=decide) as run, pytest.raises(ApprovalDeniedError):
        send(run, tools, "to everybody")
    assert decide.asked == ["send('to ann')", "send('to everybody')"]
    assert tools.ran == []


def test_a_call_may_be_edited_when_it_is_approved(session: Open, tools: Tools) -> None:
    decide = Decider(Decision(True, args=("b",)), Decision(True, kwargs={"x": 1}))

    def tool(*args: Any, **kwargs: Any) -> Any:
        tools.ran.append((args, kwargs))
        return args, kwargs

    def program(run: Any) -> list[Any]:
        return [run.call(tool, "a", effect="irreversible") for _ in range(2)]

    with power_cut(), session(approval=decide) as run:
        assert program(run) == [(("b",), {}), (("a",), {"x": 1})]
        raise PowerCut
    with session(approval=decide) as run:
        assert program(run) == [(("b",), {}), (("a",), {"x": 1})]
        assert [str(each) for each in run.effects] == ["tool('b')", "tool('a', x=1)"]
        assert [each.edited for each in run.effects] == [True, True]
    assert len(tools.ran) == 2


def test_a_decider_that_answers_nonsense_is_told_and_nothing_is_called(
    session: Open, tools: Tools
) -> None:
    decide = Decider("yes", True)
    with session(approval=decide) as run:
        with pytest.raises(InvalidArgumentError, match="True, False or a Decision, not 'yes'"):
            send(run, tools)
        assert run.unknown_effects() == []
        send(run, tools)
    assert len(tools.ran) == 1


def test_a_decider_that_fails_decides_nothing(session: Open, tools: Tools) -> None:
    def decide(_: Any) -> bool:
        raise OSError("no connection")

    with session(approval=decide) as run:
        with pytest.raises(OSError, match="no connection"):
            send(run, tools)
        assert run.unknown_effects() == []
    assert tools.ran == []


def test_a_call_that_was_cut_off_is_not_asked_about_twice(session: Open, tools: Tools) -> None:
    decide = Decider(True)
    with cut_at("run:after_tool"), session(approval=decide) as run:
        send(run, tools)
    with session(approval=decide) as run:
        run.unknown_effects()[0].retry()
        send(run, tools)
    assert len(decide.asked) == 1


def test_a_denied_call_in_a_task_leaves_it_in_progress(session: Open, tools: Tools) -> None:
    for _ in range(2):
        with pytest.raises(ApprovalDeniedError), session(approval=lambda _: False) as run:
            for task in run.tasks.plan("a").remaining():
                with task:
                    send(run, tools)
    with session() as run:
        assert run.tasks["a"].status == "in_progress"


# Somebody else decides


def waiting(url: str, *told: Callable[[Any, Any], Any]) -> threading.Thread:
    """Another one, who decides as soon as there is something to be decided."""

    def look() -> None:
        with SyncClient.open(url) as other:
            for decide in told:
                for event in other.subscribe("approvals", timeout=20):
                    questions = [
                        q for q in other.pending() if q.effect_id == event.data["effect_id"]
                    ]
                    if questions:
                        decide(other, questions[0])
                        break

    thread = threading.Thread(target=look)
    thread.start()
    return thread


@pytest.fixture(params=["file", "sqlite"])
def kept_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    from tests.clients import url_of

    return url_of(request.param, tmp_path)


@pytest.fixture
def kept(face: Any, kept_url: str) -> Any:
    from tests.clients import end
    from tests.session.kit import plainly

    opened = face.open(kept_url)
    yield plainly(opened)
    end(opened)


def test_another_process_may_decide(kept: Any, kept_url: str, tools: Tools) -> None:
    seen = []

    def allow(client: Any, question: Any) -> None:
        seen.append((str(question), question.agent_id, question.session_id, question.kind))
        client.approve(question.effect_id[:8], "fine")

    other = waiting(
        kept_url,
        allow,
        lambda client, question: client.deny(question.effect_id, "not today"),
        lambda client, question: client.approve(question.effect_id, args=("d",)),
    )
    with kept.session(AGENT, session_id=SESSION, approval="wait") as run:
        assert send(run, tools, "a") == ["send", "a", 1]
        with pytest.raises(ApprovalDeniedError, match="not today"):
            send(run, tools, "b")
        assert send(run, tools, "c") == ["send", "d", 2]
    other.join()
    assert seen == [("send('a')", AGENT, SESSION, "irreversible")]
    assert kept.pending() == []


def test_a_question_stands_while_nobody_waits(session: Open, client: Any, tools: Tools) -> None:
    def program() -> Any:
        with session(approval="wait", approval_timeout=0.01) as run:
            run.call(tools.read)
            return send(run, tools, "a")

    for _ in range(2):
        with pytest.raises(RunError, match=r"send\('a'\) still waits for approval.*client.approve"):
            program()
    (question,) = client.pending()
    assert client.pending("another agent") == []
    assert [q.effect_id for q in client.pending(AGENT)] == [question.effect_id]

    client.approve(question.effect_id)
    assert client.pending() == []
    assert program() == ["send", "a", 2]
    assert tools.names() == ["read", "send"]


def test_concurrent_questions_keep_their_answers_over_a_restart(
    session: Open, client: Any, tools: Tools
) -> None:
    """Which call comes first may differ from one start to the next."""

    def ask(name: str) -> None:
        with session(approval="wait", approval_timeout=0.01) as run:
            for each in name:
                with pytest.raises(RunError):
                    send(run, tools, each)
            raise PowerCut

    with power_cut():
        ask("ab")
    with power_cut():
        ask("ba")
    assert sorted(str(question) for question in client.pending()) == ["send('a')", "send('b')"]


@pytest.mark.parametrize("approve", [True, False])
def test_a_decision_is_made_once(session: Open, client: Any, tools: Tools, approve: bool) -> None:
    with pytest.raises(RunError, match="still waits"):
        with session(approval="wait", approval_timeout=0.01) as run:
            send(run, tools)
    (question,) = client.pending()
    decide = client.approve if approve else client.deny
    decide(question.effect_id)

    for again in (client.approve, client.deny):
        with pytest.raises(RunError, match="decided of already"):
            again(question.effect_id)
    for unknown in ("ffffffff", "abc"):
        with pytest.raises(RunError, match=r"no call waits|at least 6"):
            client.approve(unknown)


def test_an_edit_that_cannot_be_kept_is_refused(session: Open, client: Any, tools: Tools) -> None:
    with pytest.raises(RunError, match="still waits"):
        with session(approval="wait", approval_timeout=0.01) as run:
            send(run, tools)
    (question,) = client.pending()

    with pytest.raises(SerializationError):
        client.approve(question.effect_id, args=(iter([]),))
    assert len(client.pending()) == 1


def test_a_question_that_nobody_answers_expires(session: Open, client: Any, tools: Tools) -> None:
    options = {"approval": "wait", "approval_expires_seconds": 0.05}
    with session(**options) as run:
        with pytest.raises(ApprovalDeniedError, match="nobody decided in time"):
            send(run, tools)
    assert client.pending() == []
    assert tools.ran == []


def test_an_expired_question_cannot_be_answered_any_more(
    session: Open, client: Any, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"approval": "wait", "approval_expires_seconds": 60, "approval_timeout": 0.01}
    with pytest.raises(RunError, match="still waits"), session(**options) as run:
        send(run, tools)
    (question,) = client.pending()

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC) + timedelta(hours=1)

    monkeypatch.setattr("holdfast.session.approval.datetime", Later)
    assert client.pending() == []
    with pytest.raises(RunError, match="the time to decide"):
        client.approve(question.effect_id)
    with pytest.raises(ApprovalDeniedError, match="in time"), session(**options) as run:
        send(run, tools)


async def test_an_async_function_may_decide(tools: Tools) -> None:
    async def decide(effect: Any) -> bool:
        return effect.args == ("yes",)

    async with Client.memory() as client, client.session(AGENT, approval=decide) as run:
        assert await run.call(tools.send, "yes", effect="irreversible")
        with pytest.raises(ApprovalDeniedError):
            await run.call(tools.send, "no", effect="irreversible")


PROGRAM = """
from holdfast import SyncClient
from holdfast.errors import ApprovalDeniedError
with SyncClient.memory() as client, client.session("a", approval="prompt") as run:
    for number in range(4):
        try:
            print("result", run.call(str, number, effect="irreversible"))
        except ApprovalDeniedError as denied:
            print("denied", denied.reason)
"""


def test_the_terminal_is_asked() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": PATH},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        os.write(ours, b"y\nn\ntoo dear\n\n")
        out, asked = child.communicate()
    os.close(ours)
    os.close(theirs)

    assert out.splitlines() == ["result 0", "denied None", "denied too dear", "denied None"]
    assert "irreversible: str(0)\nAllow this call? [y/N, or a reason]" in asked


def test_without_a_terminal_nothing_is_allowed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": PATH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["denied there is no terminal to ask on"] * 4
