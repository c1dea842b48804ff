"""holdfast rollback, undo and fork: through the run, with its leases and effects."""

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import Framework, SyncClient
from holdfast.model import CheckpointBuilder
from tests.cli import story
from tests.cli.kit import Holdfast, environment

HOLD = """
import sys
from holdfast import SyncClient
with SyncClient.sqlite(sys.argv[1]) as client, client.session("coder", session_id="fix-42"):
    print("holding", flush=True)
    sys.stdin.readline()
"""


def state_of(holdfast: Holdfast, session: str) -> dict[str, object]:
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        head = client.find(session_id=session, limit=1)[0]
        state: dict[str, object] = client.restore(head.checkpoint_id).execution_state
        return state


def test_a_damaged_head_is_named_with_the_way_out(project: Holdfast) -> None:
    path = project.directory / ".holdfast" / "holdfast.db"
    with SyncClient.sqlite(path) as client:
        head = client.find(session_id="fix-42", limit=1)[0]
        target = next(
            info for info in client.find(session_id="fix-42") if info.step_name == "start"
        )
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM chunks WHERE name = ?", (bytes.fromhex(head.content_id),))

    refused = project("rollback", "start", "--session", "fix-42", "--yes")

    assert refused.code == 6
    (way_out,) = re.findall("`(holdfast fork .+?)`", refused.err)
    assert target.checkpoint_id.replace("-", "").startswith(way_out.split()[-1])
    assert head.checkpoint_id in refused.err
    assert project.ok(*way_out.split()[1:])


def test_a_session_goes_back_without_its_classes_and_keeps_them(project: Holdfast) -> None:
    done = project.json("rollback", "start", "--session", "fix-42", "--yes")

    state = state_of(project, "fix-42")
    assert isinstance(state["ticket"], story.Ticket)
    assert state["ticket"].number == 42
    assert len(state["messages"]) == 1  # type: ignore[arg-type]
    head = project.json("log", "fix-42")["checkpoints"][0]
    assert head["checkpoint_id"] == done["checkpoint_id"]
    assert head["parent_id"] == done["target"]


def test_undo_leads_back_and_can_be_undone(project: Holdfast) -> None:
    project.ok("rollback", "start", "--session", "fix-42", "--yes")

    project.ok("undo", "fix-42", "--yes")
    assert state_of(project, "fix-42")["fixed"] is True
    project.ok("undo", "fix-42", "--yes")
    assert "fixed" not in state_of(project, "fix-42")


def test_undo_takes_the_session_as_other_commands_do(project: Holdfast) -> None:
    project.ok("rollback", "start", "--session", "fix-42", "--yes")

    assert project("undo", "bolder", "--session", "fix-42", "--yes").code == 2
    project.ok("undo", "--session", "fix-42", "--yes")
    assert state_of(project, "fix-42")["fixed"] is True


def test_a_dry_run_says_what_would_be_done_and_does_nothing(project: Holdfast) -> None:
    before = project.json("stats")["checkpoints"]

    shown = project.ok("rollback", "fix: started", "--session", "fix-42", "--dry-run")
    said = project.json("rollback", "fix: started", "--session", "fix-42", "--dry-run")

    assert "goes back from handoff_to_reviewer" in shown
    assert "  state  1 change\n" in shown
    assert (said["dry_run"], said["checkpoint_id"], said["changes"]) == (True, None, 1)
    assert project.json("stats")["checkpoints"] == before


def test_it_asks_on_a_terminal(project: Holdfast) -> None:
    arguments = ("rollback", "start", "--session", "fix-42")

    refused = project.on_terminal(*arguments, answer="n", NO_COLOR="1")
    agreed = project.on_terminal(*arguments, answer="y", NO_COLOR="1")

    assert (refused.code, agreed.code) == (5, 0)
    assert "Roll back fix-42? [y/N]" in refused.out
    assert "`holdfast undo` leads back" in agreed.out


def test_a_session_that_another_process_works_on_is_left_alone(project: Holdfast) -> None:
    path = project.directory / ".holdfast" / "holdfast.db"
    with subprocess.Popen(
        [sys.executable, "-c", f"from tests.cli.story import Ticket\n{HOLD}", str(path)],
        cwd=Path(__file__).parents[2],
        env=environment(PYTHONPATH="."),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holding\n"
        done = project("rollback", "start", "--session", "fix-42", "--yes")
        holder.communicate("\n", timeout=50)

    assert done.code == 5
    assert "is worked on by process" in done.err


@pytest.fixture
def paid(holdfast: Holdfast) -> Holdfast:
    """A session with a call that can be undone, and one that cannot."""
    holdfast.ok("init")
    shutil.copy(story.__file__, holdfast.directory / "shop.py")
    script = """
import shop
from holdfast import SyncClient
with SyncClient.sqlite(".holdfast/holdfast.db") as client:
    with client.session("shop", session_id="order") as run:
        run.checkpoint("before")
        run.call(shop.charge, 7, effect="reversible", compensate=shop.refund)
        run.checkpoint("charged")
        run.call(shop.send, "anna", effect="irreversible")
        run.checkpoint("sent")
"""
    subprocess.run(
        [sys.executable, "-c", script], cwd=holdfast.directory, env=environment(), check=True
    )
    return holdfast


def test_what_only_the_program_can_undo_is_refused_with_a_list(paid: Holdfast) -> None:
    done = paid("rollback", "before", "--yes", "--accept-irreversible")

    assert done.code == 5
    assert "charge(7): undone by shop:refund" in done.err
    assert "--import" in done.err


def test_what_cannot_be_undone_has_to_be_accepted(paid: Holdfast) -> None:
    refused = paid("rollback", "charged", "--yes")
    accepted = paid.json("rollback", "charged", "--yes", "--accept-irreversible")

    assert refused.code == 5
    assert "send('anna')" in refused.err
    assert "--accept-irreversible" in refused.err
    assert len(accepted["remaining"]) == 1


def test_a_module_that_is_named_undoes_what_it_can(paid: Holdfast) -> None:
    done = paid.json("rollback", "before", "--import", "shop", "--accept-irreversible", "--yes")

    assert len(done["undone"]) == 1
    assert (paid.directory / "refunds.txt").read_text() == "receipt 7\n"
    assert paid("rollback", "before", "--import", "no_such_module").code == 2


HOSTILE = """
from holdfast import SyncClient
from holdfast.session import calls
with SyncClient.sqlite(".holdfast/holdfast.db") as client:
    with client.session("shop", session_id="order") as run:
        run.checkpoint("before")
        calls.path_of = lambda function: "{name}"
        run.call(lambda: "touch ran", effect="reversible", compensate=print)
        run.checkpoint("booked")
"""


@pytest.mark.parametrize("name", ["os:system", "shop:system", "shop:run", "shop:Popen"])
def test_a_module_gives_no_function_that_it_only_imported(holdfast: Holdfast, name: str) -> None:
    holdfast.ok("init")
    (holdfast.directory / "shop.py").write_text(
        "from os import system\nfrom subprocess import Popen, run\ndef refund(output): ...\n"
    )
    assert holdfast.within(HOSTILE.format(name=name)).code == 0

    done = holdfast("rollback", "before", "--import", "shop", "--import", "os", "--yes")

    assert done.code == 5
    assert f"undone by {name}" in done.err
    assert not (holdfast.directory / "ran").exists()


def test_a_thread_of_langgraph_is_not_written_into(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        built = CheckpointBuilder("graph", Framework.LANGGRAPH).session("thread")
        for number in (1, 2):
            client.put(built.tag(checkpoint_id=f"1ef-{number}").build())

    done = holdfast("rollback", "1ef-1", "--yes")

    assert done.code == 5
    assert "is kept by langgraph" in done.err
    assert "checkpoint_id '1ef-1'" in done.err


def test_a_checkpoint_of_another_session_is_no_target(project: Holdfast) -> None:
    done = project("rollback", "rewrite", "--session", "fix-42", "--yes")

    assert done.code == 3
    done = project("rollback", "bolder@", "--session", "fix-42", "--yes")
    assert done.code == 2
    assert "fork it instead" in done.err


def test_a_fork_begins_at_any_checkpoint(project: Holdfast) -> None:
    first = project.json("fork", "read: completed", "--session", "fix-42")
    second = project.json("fork", "read: completed", "--session", "fix-42")
    named = project.json("fork", "fix-42@", "--as", "other")

    assert [each["session_id"] for each in (first, second, named)] == [
        *("fix-42.1", "fix-42.2", "other")
    ]
    assert len(state_of(project, "fix-42.1")["messages"]) == 2  # type: ignore[arg-type]
    assert project("fork", "@", "--as", "bolder").code == 2


@pytest.mark.parametrize("rules", [".gitignore", ".holdfastignore"])
def test_what_is_ignored_since_is_there_again_after_an_undo(project: Holdfast, rules: str) -> None:
    here = project.directory
    with (
        SyncClient.sqlite(here / ".holdfast" / "holdfast.db") as client,
        client.session("coder", session_id="env", workspace=here) as run,
    ):
        (here / ".env").write_text("v1")
        run.checkpoint("then")
        (here / rules).write_text(".env\n")
        (here / ".env").write_text("mine")
        run.checkpoint("now")

    project.ok("rollback", "then", "--session", "env", "--yes")
    assert (here / ".env").read_text() == "v1"
    for expected, is_ignored in (("mine", True), ("v1", False), ("mine", True)):
        project.ok("undo", "env", "--yes")
        assert (here / ".env").read_text() == expected
        assert (here / rules).exists() is is_ignored
