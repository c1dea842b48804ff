"""What waits for a person: status leads with it, resolve and approve end it."""

import pytest

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver
from tests.cli.kit import Holdfast
from tests.graphs import asking

AGENT = """
import os, signal, sys
from holdfast import SyncClient, StillWaitingError

def charge(amount):
    if "kill" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"charged {amount}"

with SyncClient.sqlite(".holdfast/holdfast.db") as client:
    try:
        with client.session("shop", session_id="order") as run:
            print(run.call(charge, 7, effect="irreversible"))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""

WAITING = """
from holdfast import SyncClient, StillWaitingError

def send(to, amount, note=""):
    return f"{amount} to {to}{note}"

options = dict(approval="wait", approval_timeout=0.0)
with SyncClient.sqlite(".holdfast/holdfast.db") as client:
    try:
        with client.session("shop", session_id="payment", **options) as run:
            print(run.call(send, "ann", 50, effect="irreversible"))
    except StillWaitingError:
        print("waits")
"""


@pytest.fixture
def killed(holdfast: Holdfast) -> Holdfast:
    """A store in which the end of a payment is unknown."""
    holdfast.ok("init")
    (holdfast.directory / "agent.py").write_text(AGENT)
    assert holdfast._python("agent.py", "kill").code == -9
    return holdfast


@pytest.fixture
def asked(holdfast: Holdfast) -> Holdfast:
    """A store in which a payment waits for approval."""
    holdfast.ok("init")
    (holdfast.directory / "agent.py").write_text(WAITING)
    assert holdfast._python("agent.py").out == "waits\n"
    return holdfast


def go_on(holdfast: Holdfast) -> str:
    done = holdfast._python("agent.py")
    assert done.code == 0, done.err
    return done.out


def unknown_id(holdfast: Holdfast) -> str:
    (call,) = holdfast.json("status")["waiting"]["unknown"]
    return str(call["id"])


def test_status_leads_with_a_call_of_unknown_end(killed: Holdfast) -> None:
    lines = killed.ok("status").splitlines()

    effect_id = unknown_id(killed)
    assert lines[0].startswith(f"unknown   {effect_id[:8]}  charge(7)  order, begun ")
    assert lines[0].endswith("s ago")
    assert lines[1].strip() == "holdfast resolve ID --done VALUE, --failed or --retry"
    assert lines[2].startswith("store     ")


def test_the_program_names_the_command_that_decides(killed: Holdfast) -> None:
    said = go_on(killed)
    assert f"holdfast resolve {unknown_id(killed)[:8]} --done VALUE, --failed or --retry" in said


@pytest.mark.parametrize(
    ("value", "got"),
    [('{"id": 17}', "{'id': 17}"), ("receipt 9", "receipt 9"), ("17", "17"), ("null", "None")],
)
def test_a_call_is_said_to_be_done(killed: Holdfast, value: str, got: str) -> None:
    said = killed.ok("resolve", unknown_id(killed)[:6], "--done", value)

    assert said == "charge(7) is done, when its program goes on\n"
    assert "unknown" not in killed.ok("status")
    assert go_on(killed) == f"{got}\n"


def test_a_call_is_said_to_have_failed(killed: Holdfast) -> None:
    done = killed.json("resolve", unknown_id(killed), "--failed", "the bank knows nothing")

    assert (done["outcome"], done["call"]["tool"]) == ("failed", "charge")
    assert go_on(killed) == "RunError: the bank knows nothing\n"


def test_a_failure_needs_no_reason(killed: Holdfast) -> None:
    killed.ok("resolve", unknown_id(killed), "--failed")
    assert go_on(killed) == "RunError: it did not take place\n"


def test_a_call_is_made_again(killed: Holdfast) -> None:
    killed.ok("resolve", unknown_id(killed), "--retry")
    assert go_on(killed) == "charged 7\n"


def test_what_is_not_written_as_it_has_to_be_decides_nothing(killed: Holdfast) -> None:
    effect_id = unknown_id(killed)
    assert killed("resolve", effect_id).code == 2
    assert killed("resolve", effect_id, "--retry", "--failed").code == 2
    assert killed("resolve", "ffffffff", "--retry").code == 3
    assert killed("resolve", "", "--retry").code == 2
    assert unknown_id(killed) == effect_id


def test_a_session_that_a_process_works_on_is_left_alone(killed: Holdfast) -> None:
    effect_id = unknown_id(killed)
    with (
        SyncClient.sqlite(killed.directory / ".holdfast" / "holdfast.db") as client,
        client.session("shop", session_id="order"),
    ):
        done = killed("resolve", effect_id, "--retry")
    assert done.code == 5
    assert "is worked on by process" in done.err


def test_status_shows_what_waits_for_approval(asked: Holdfast) -> None:
    shown = asked.ok("status")
    assert shown.startswith("approval  ")
    assert "send('ann', 50)  payment, " in shown.splitlines()[0]
    assert asked.json("status")["waiting"]["approvals"][0]["args"] == ["ann", 50]


def test_a_call_is_approved_with_other_arguments(asked: Holdfast) -> None:
    (call,) = asked.json("pending")["pending"]
    asked.ok("approve", call["id"], "--args", '["ann", 20]', "--args", '{"note": ", as agreed"}')
    assert go_on(asked) == "20 to ann, as agreed\n"


@pytest.mark.parametrize("given", ["{", "7", '"text"', '{"not a name": 1}', "[" * 100_000])
def test_arguments_that_are_none_decide_nothing(asked: Holdfast, given: str) -> None:
    (call,) = asked.json("pending")["pending"]
    assert asked("approve", call["id"], "--args", given).code == 2
    assert asked("approve", call["id"], "--args", "[1]", "--args", "[2]").code == 2
    assert asked.json("pending")["pending"] == [call]


def test_status_tells_of_questions_that_graphs_wait_at(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    with HoldfastSaver.from_sqlite(holdfast.directory / ".holdfast/holdfast.db") as saver:
        graph = asking("ship \x1b[31m it?", name="review").compile(checkpointer=saver)
        graph.invoke({"log": []}, {"configurable": {"thread_id": "thread-1"}})

    said = holdfast.ok("status")
    assert "asked" in said
    assert "thread-1, review" in said
    assert "\x1b" not in said
    (question,) = holdfast.json("status")["waiting"]["interrupts"]
    assert (question["node"], question["session_id"]) == ("review", "thread-1")
