"""Approval, handoffs and watching: the command line beside running programs."""

import json
import subprocess
import sys

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast, environment

ASK = """
import sys
from holdfast import SyncClient
from holdfast.errors import ApprovalDeniedError
def transfer(amount): return f"sent {amount}"
with SyncClient.sqlite(".holdfast/holdfast.db") as client:
    with client.session("bank", session_id="pay", approval="wait") as run:
        try:
            print(run.call(transfer, 500, effect="irreversible"), flush=True)
        except ApprovalDeniedError as denied:
            print(f"denied: {denied.reason}", flush=True)
"""


@pytest.fixture
def asking(holdfast: Holdfast):
    """A program that waits for approval."""
    holdfast.ok("init")
    with subprocess.Popen(
        [sys.executable, "-c", ASK],
        cwd=holdfast.directory,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
            next(client.subscribe("approvals", timeout=50))
        yield holdfast, process
        process.communicate()


def test_a_call_that_waits_is_listed_and_approved(asking) -> None:
    holdfast, process = asking
    (waiting,) = holdfast.json("pending")["pending"]

    shown = holdfast.ok("pending")
    said = holdfast.ok("approve", waiting["id"][:8], "-m", "checked")

    assert "irreversible  transfer(500)" in shown
    assert said == "allowed: transfer(500)\n"
    assert process.stdout.readline() == "sent 500\n"
    assert holdfast("approve", waiting["id"][:8]).code == 5
    assert holdfast.ok("pending") == "no call waits for approval\n"


def test_a_call_is_denied_with_a_reason(asking) -> None:
    holdfast, process = asking
    (waiting,) = holdfast.json("pending")["pending"]

    done = holdfast.json("deny", waiting["id"], "-m", "too much")

    assert (done["allowed"], done["reason"]) == (False, "too much")
    assert process.stdout.readline() == "denied: too much\n"


def test_status_tells_what_waits(asking) -> None:
    holdfast, _ = asking
    status = holdfast.ok("status")
    (waiting,) = holdfast.json("pending")["pending"]
    holdfast.ok("deny", waiting["id"])

    assert status.startswith(f"approval  {waiting['id'][:8]}  transfer(500)  pay, ")
    assert "holdfast approve ID, or holdfast deny ID" in status.splitlines()[1]


def test_watch_tells_of_a_call_that_waits(asking) -> None:
    holdfast, _ = asking
    lines = holdfast.ok("watch", "--json", "--timeout", "0.3").splitlines()
    (waiting,) = holdfast.json("pending")["pending"]
    holdfast.ok("deny", waiting["id"])

    told = [json.loads(line) for line in lines]
    assert [each["call"] for each in told if each["kind"] == "approval"] == ["transfer(500)"]


def test_an_offer_is_made_and_listed(project: Holdfast) -> None:
    made = project.json("handoff", "tester", "bolder@", "--ttl", "2d")["offer"]
    offers = project.json("inbox", "tester")["offers"]

    assert [each["checkpoint_id"] for each in offers] == [made["checkpoint_id"]]
    assert (made["from_session"], made["open"]) == ("bolder", True)
    assert "from coder/bolder" in project.ok("inbox", "tester")
    assert project.ok("inbox", "nobody") == "nothing is offered to nobody\n"


def test_settled_offers_are_listed_if_that_is_asked(project: Holdfast) -> None:
    (offer,) = project.json("inbox", "reviewer")["offers"]
    with SyncClient.sqlite(project.directory / ".holdfast" / "holdfast.db") as client:
        client.reject(offer["checkpoint_id"], "no time")

    assert project.json("inbox", "reviewer")["offers"] == []
    assert "rejected: no time" in project.ok("inbox", "reviewer", "--all")


def test_watch_shows_new_checkpoints_as_they_come(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    path = holdfast.directory / ".holdfast" / "holdfast.db"
    with (
        SyncClient.sqlite(path) as client,
        subprocess.Popen(
            [sys.executable, "-m", "holdfast", "watch", "--count", "2", "--json"],
            cwd=holdfast.directory,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        ) as watching,
    ):
        client.save("a", execution_state={}, session_id="s", step_name="old")
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        for name in ("one", "two"):
            client.save("a", execution_state={}, session_id="s", step_name=name)
        others = [json.loads(line) for line in watching.stdout]

    names = [each["checkpoint"]["step_name"] for each in (first, *others)]
    assert names[0] == "old"
    assert names[-1] in ("one", "two")
    assert watching.returncode == 0


def test_watch_follows_one_session_until_it_is_quiet(project: Holdfast) -> None:
    shown = project.ok("watch", "bolder", "--timeout", "0.2")

    assert [line.split("  ")[2] for line in shown.splitlines()] == ["bolder", "bolder"]
