"""The helper of a project: one for all hooks, that ends by itself and leaves nothing behind."""

import fcntl
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from holdfast import SyncClient, __version__
from holdfast.coding_agents.resident.agents import agent_of, asked_of_ps
from holdfast.coding_agents.resident.meeting import Meeting, NoHelperError
from holdfast.coding_agents.resident.messages import AGAIN, DONE, Answer, Request
from tests.cli.hook_kit import Hooks, hooks_of
from tests.cli.kit import environment
from tests.waiting import wait_until


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a store and a file."""
    folder = tmp_path / "project"
    (folder / ".holdfast").mkdir(parents=True)
    (folder / "page.html").write_text("good")
    return folder


@pytest.fixture
def hooks(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooks]:
    """Its hooks."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    with hooks_of(project) as hooks:
        yield hooks


def test_one_helper_records_every_event_with_the_files_as_they_are(hooks: Hooks) -> None:
    page = hooks.project / "page.html"
    pids = set()
    for number in range(5):
        page.write_text(f"page {number}")
        hooks.ok(hooks.event(call=f"call-{number}"))
        pids.update(hooks.helpers())

    assert len(pids) == 1
    assert hooks.files() == {
        f"call-{number}": {"page.html": f"page {number}".encode()} for number in range(5)
    }


def test_hooks_that_come_at_once_start_one_helper_and_make_one_line(hooks: Hooks) -> None:
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda n: hooks(hooks.event(call=f"call-{n}")), range(6)))

    assert [each.code for each in done] == [0] * 6
    assert len(hooks.helpers()) == 1
    infos = hooks.recorded()
    assert [each.parent_id for each in infos[1:]] == [each.checkpoint_id for each in infos[:-1]]
    assert not hooks.report.problems


def test_it_does_not_hold_what_the_agent_waits_for(hooks: Hooks) -> None:
    """Agents read a hook's output to its end, which comes when nobody has it open any more."""
    hooks.ok()

    (pid,) = hooks.helpers()
    held = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
    assert not [name for name in held if name.startswith(("pipe:", "/dev/pts"))]
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


AGENT = """
import subprocess, sys
for _ in range(2):
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m holdfast hook; exit $?'], input=sys.argv[1].encode()
    )
    assert done.returncode == 0
"""


def test_it_ends_when_the_agent_has_ended(hooks: Hooks) -> None:
    subprocess.run(
        [sys.executable, "-c", AGENT, hooks.event()],
        cwd=hooks.project,
        env=environment(**hooks.variables),
        check=True,
    )
    assert len(hooks.helpers()) == 1

    hooks.are_gone()

    assert hooks.left() == []
    assert len(hooks.recorded()) == 2


def test_the_agent_is_the_nearest_ancestor_that_is_no_shell() -> None:
    with subprocess.Popen(["sh", "-c", "sh -c 'cat; :'; :"], stdin=subprocess.PIPE) as shell:
        inner = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        wait_until(lambda: inner.read_text().split(), "the inner shell")
        assert agent_of(int(inner.read_text().split()[0])) == os.getpid()
        shell.communicate()


def test_the_parent_of_a_process_is_found_with_and_without_proc() -> None:
    parent, name = asked_of_ps(os.getpid()) or (0, "")

    assert parent == os.getppid()
    assert Path("/proc/self/comm").read_text().strip() == name
    assert asked_of_ps(2**22 + 1) is None


def test_it_ends_when_nothing_happens(hooks: Hooks) -> None:
    hooks.ok(HOLDFAST_HOOK_HELPER="0.01")

    hooks.are_gone()

    assert hooks.left() == []


def test_it_ends_when_its_project_is_removed_and_makes_nothing_anew(hooks: Hooks) -> None:
    hooks.ok()

    shutil.rmtree(hooks.project)
    hooks.are_gone()

    assert not hooks.project.exists()
    assert hooks.left() == []


def test_a_project_that_is_renamed_goes_on_under_its_new_name(hooks: Hooks) -> None:
    hooks.ok()
    (old,) = hooks.helpers()

    hooks.project = hooks.project.rename(hooks.project.with_name("renamed"))
    hooks.ok()

    assert len(hooks.recorded()) == 2
    wait_until(lambda: old not in hooks.helpers(), "the end of the helper of the old name")


def test_a_store_that_was_replaced_is_not_written_to_any_more(hooks: Hooks, project: Path) -> None:
    hooks.ok(hooks.event(call="old"))
    shutil.rmtree(project / ".holdfast")
    (project / ".holdfast").mkdir()

    hooks.ok(hooks.event(call="new"))

    assert [each.metadata["call_id"] for each in hooks.recorded()] == ["new"]


@pytest.mark.parametrize("is_seen_first_by", ["hook", "helper"])
def test_a_store_that_was_cleaned_away_is_told_of_and_made_anew_unseen_by_git(
    hooks: Hooks, project: Path, is_seen_first_by: str
) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    subprocess.run(["git", "add", "page.html"], cwd=project, check=True)
    hooks.ok(hooks.event(call="before"))
    subprocess.run(["git", "clean", "-fdxq"], cwd=project, check=True)
    if is_seen_first_by == "helper":
        hooks.are_gone()

    hooks.ok(hooks.event(call="after"))

    assert list(hooks.files()) == ["after"]
    loss = f"the store {project}/.holdfast/holdfast.db was removed meanwhile"
    assert loss in hooks.holdfast("doctor").out
    hooks.holdfast("hook", "install", "claude-code")
    said = hooks.holdfast("hook", "status", "claude-code").out
    assert "went wrong (1 time" in said
    assert loss in said
    git = ["git", "status", "--short", ".holdfast"]
    assert not subprocess.run(git, cwd=project, capture_output=True, check=True).stdout


def test_an_event_from_below_is_about_all_of_the_project(hooks: Hooks) -> None:
    below = hooks.project / "src" / "deep"
    below.mkdir(parents=True)
    hooks.ok(hooks.event(call="above"))
    hooks.ok(hooks.event(call="below", cwd=str(below)))

    assert len(hooks.helpers()) == 1
    assert hooks.files()["below"] == {"page.html": b"good"}


def test_projects_and_stores_have_helpers_apart(hooks: Hooks, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".holdfast").mkdir(parents=True)
    named = tmp_path / "named.db"

    hooks.ok(hooks.event(call="one"))
    hooks.ok(hooks.event(call="two", cwd=str(other)))
    hooks.ok(hooks.event(call="three"), "--store", f"sqlite:///{named}")
    hooks.ok(hooks.event(call="four"), HOLDFAST_URL=f"sqlite:///{named}")

    assert len(hooks.helpers()) == 4
    assert [each.metadata["call_id"] for each in hooks.recorded()] == ["one"]
    with SyncClient.sqlite(named) as client:
        assert [each.metadata["call_id"] for each in client.find()] == ["four", "three"]


def test_a_store_named_relative_to_the_project_is_found_by_the_helper(hooks: Hooks) -> None:
    for call in ("one", "two"):
        hooks.ok(hooks.event(call=call), HOLDFAST_URL="sqlite:///mine.db")

    with SyncClient.sqlite(hooks.project / "mine.db") as client:
        assert len(client.find()) == 2


def test_a_home_directory_with_a_store_is_not_captured(hooks: Hooks, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".holdfast").mkdir(parents=True)
    (home / "private").write_text("x")
    for name in ("a", "b", "a"):
        (home / name).mkdir(exist_ok=True)
        done = hooks(hooks.event("Stop", cwd=str(home / name)), "--json", HOME=str(home))
        assert (done.code, done.json["files"]) == (0, 0)

    assert len(hooks.helpers()) == 2


def test_a_start_looks_at_all_files_and_records_nothing(hooks: Hooks) -> None:
    hooks.ok(hooks.event("SessionStart"))
    assert len(hooks.helpers()) == 1

    hooks.ok(hooks.event(call="first"))

    assert list(hooks.files()) == ["first"]


@pytest.mark.parametrize("helper", ["on", "off"])
def test_a_program_that_only_starts_makes_no_store(hooks: Hooks, helper: str) -> None:
    (hooks.project / ".holdfast").rmdir()

    hooks.ok(hooks.event("SessionStart"), HOLDFAST_HOOK_HELPER=helper)
    assert not (hooks.project / ".holdfast").exists()
    hooks.ok(hooks.event(call="first"), HOLDFAST_HOOK_HELPER=helper)

    assert list(hooks.files()) == ["first"]


def test_a_long_event_comes_through(hooks: Hooks) -> None:
    hooks.ok(hooks.event(call="long", tool_response={"stdout": "x" * 5_000_000}))

    assert list(hooks.files()) == ["long"]


SLOW = """
import threading
from holdfast.system import crash_points
crash_points.install(lambda name: name == "helper:told" and threading.Event().wait(3))
"""


def test_an_event_that_takes_its_time_is_waited_for(hooks: Hooks) -> None:
    """While it is recorded there are signs of life, longer than silence would be borne."""
    hooks.fault(SLOW, is_patient=False)

    hooks.ok(hooks.event(call="slow"))

    assert list(hooks.files()) == ["slow"]


STUCK = """
import threading
from holdfast.coding_agents.resident import asking, server
from holdfast.system import crash_points
asking.LONGEST, server.STUCK_SECONDS = 1.0, 0.5
crash_points.install(lambda name: name == "helper:told" and threading.Event().wait())
"""


def test_an_event_that_has_no_end_is_not_waited_for_nor_keeps_the_helper(hooks: Hooks) -> None:
    hooks.fault(STUCK)

    done = hooks(hooks.event(call="stuck"))

    assert (done.code, done.out) == (1, "")
    assert "has taken more than 1 s" in hooks.problem
    hooks.end()
    assert hooks.left() == []


def test_files_that_were_put_back_meanwhile_are_seen(hooks: Hooks) -> None:
    page = hooks.project / "page.html"
    hooks.ok(hooks.event(call="good"))
    page.write_text("bad")
    (hooks.project / "junk").write_text("x")
    hooks.ok(hooks.event(call="bad"))
    good = hooks.recorded()[0].checkpoint_id

    assert hooks.holdfast("restore", good, "--yes").code == 0
    assert page.read_text() == "good"
    hooks.ok(hooks.event(call="back"))

    assert len(hooks.helpers()) == 1
    assert hooks.files()["back"] == {"page.html": b"good"}


def test_a_helper_serves_no_project_but_its_own(hooks: Hooks, tmp_path: Path) -> None:
    """Whatever runs in a sandbox may reach the socket: it must not have other places written."""
    hooks.ok(hooks.event(call="one"))
    (name,) = (hooks.runtime / f"holdfast-{os.geteuid()}").glob("*.sock")
    stolen = tmp_path / "elsewhere.db"
    request = Request(
        version=__version__,
        event_id="e",
        folder=str(hooks.project),
        words=["--store", f"sqlite:///{stolen}"],
        event=hooks.event().encode(),
    )
    with socket(AF_UNIX) as connection:
        connection.connect(str(name))
        connection.sendall(request.pack())
        with connection.makefile("rb") as said:
            answer = Answer.unpack(said.read())

    assert answer is not None
    assert answer.kind == AGAIN
    assert not stolen.exists()


NEWER = """
import os
from holdfast import _version
_version.__version__ = os.environ.get("TEST_VERSION", _version.__version__)
"""


def test_a_hook_of_another_version_gets_a_helper_of_its_own(hooks: Hooks) -> None:
    hooks.fault(NEWER)
    hooks.ok(hooks.event(call="old"), TEST_VERSION="0.4.0")
    (old,) = hooks.helpers()

    hooks.ok(hooks.event(call="new"), TEST_VERSION="0.5.0")

    wait_until(lambda: old not in hooks.helpers(), "the end of the old helper")
    assert len(hooks.helpers()) == 1
    assert list(hooks.files()) == ["new", "old"]


def test_a_helper_that_is_stopped_costs_one_event_and_is_replaced(hooks: Hooks) -> None:
    hooks.ok(hooks.event(call="before"))
    hooks.fault("", is_patient=False)
    (stopped,) = hooks.helpers()
    os.kill(stopped, signal.SIGSTOP)

    done = hooks(hooks.event(call="meanwhile"))
    hooks.fault("")
    hooks.ok(hooks.event(call="after"))

    assert (done.code, done.out) == (1, "")
    assert "silent for 2 s" in hooks.problem
    assert {"before", "after"} <= hooks.files().keys()
    wait_until(lambda: stopped not in hooks.helpers(), "the end of the one that was stopped")


def test_a_stopped_helper_that_nobody_follows_leaves_nothing(hooks: Hooks) -> None:
    hooks.ok()
    hooks.fault("", is_patient=False)
    for pid in hooks.helpers():
        os.kill(pid, signal.SIGSTOP)

    assert hooks().code == 1
    hooks.are_gone()

    assert hooks.left() == []


@pytest.mark.parametrize("helper", ["on", "off"])
def test_a_locked_store_is_not_waited_for(hooks: Hooks, helper: str) -> None:
    hooks.ok(hooks.event(call="before"), HOLDFAST_HOOK_HELPER=helper)
    path = hooks.project / ".holdfast" / "holdfast.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        done = hooks(hooks.event(call="meanwhile"), HOLDFAST_HOOK_HELPER=helper)
        db.execute("ROLLBACK")
    hooks.ok(hooks.event(call="after"), HOLDFAST_HOOK_HELPER=helper)

    assert (done.code, done.out) == (1, "")
    assert "locked by another program for 2 s" in hooks.problem
    assert set(hooks.files()) == {"before", "after"}


@pytest.mark.parametrize("helper", ["on", "off"])
def test_files_that_are_being_put_back_are_not_waited_for(hooks: Hooks, helper: str) -> None:
    hooks.ok(hooks.event(call="before"), HOLDFAST_HOOK_HELPER=helper)
    (lock,) = (hooks.project / ".holdfast" / "workspaces").glob("*/lock")
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = hooks(hooks.event(call="meanwhile"), HOLDFAST_HOOK_HELPER=helper)

    assert (done.code, done.out) == (1, "")
    assert "locked by another program for 2 s" in hooks.problem


@pytest.mark.parametrize("kind", ["shared", "link", "file"])
def test_a_directory_that_others_can_reach_is_not_used(hooks: Hooks, kind: str) -> None:
    """Whoever answers there would be told all that the agent does."""
    place = hooks.runtime / f"holdfast-{os.geteuid()}"
    if kind == "shared":
        place.mkdir()
        place.chmod(0o777)
    elif kind == "link":
        (hooks.runtime / "theirs").mkdir()
        place.symlink_to("theirs")
    else:
        place.write_text("")
    os.environ.pop("TMPDIR", None)

    hooks.ok(hooks.event(call="one"), TMPDIR=str(hooks.runtime))

    assert list(hooks.files()) == ["one"]
    for folder, _, names in os.walk(hooks.runtime):
        assert not [name for name in names if name.endswith(".sock")], folder
    if kind == "file":
        place.unlink()


def test_sockets_have_a_name_that_is_short_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 100)))
    monkeypatch.setenv("TMPDIR", "relative")

    meeting = Meeting.of(str(tmp_path), None)

    assert len(meeting.socket) <= 100
    assert os.stat(os.path.dirname(meeting.socket)).st_mode & 0o777 == 0o700


def test_without_any_directory_of_ones_own_there_is_no_helper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.coding_agents.resident.meeting._SHARED", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setenv("TMPDIR", "")

    with pytest.raises(NoHelperError, match="no directory for its socket"):
        Meeting.of(str(tmp_path), None)


UNWATCHED = """
import sys
sys.modules["inotify_simple"] = None
"""


def test_without_a_way_to_watch_it_looks_at_all_files_and_says_so_once(hooks: Hooks) -> None:
    hooks.fault(UNWATCHED)
    for number in range(3):
        (hooks.project / "page.html").write_text(f"{number}")
        hooks.ok(hooks.event(call=f"call-{number}"))

    assert hooks.files()["call-2"] == {"page.html": b"2"}
    (problem,) = hooks.report.problems
    assert problem.count == 1
    assert "inotify_simple" in problem.text


CANNOT_START = """
import sys
sys.executable = "/no/such/python"
"""


def test_where_no_helper_starts_the_hook_records_by_itself(hooks: Hooks) -> None:
    hooks.fault(CANNOT_START)

    hooks.ok(hooks.event(call="one"))

    assert list(hooks.files()) == ["one"]
    assert "/no/such/python cannot be started" in hooks.problem
    for name in hooks.left():  # of the start that failed; the next helper removes it
        os.unlink(hooks.runtime / f"holdfast-{os.geteuid()}" / name)


SANDBOX = """
import _socket

class Forbidden(_socket.socket):
    __slots__ = ()

    def __init__(self, *given):
        raise PermissionError(1, "Operation not permitted")

_socket.socket = Forbidden
"""


def test_where_a_sandbox_forbids_sockets_the_hook_records_by_itself(hooks: Hooks) -> None:
    hooks.fault(SANDBOX, is_patient=False)

    hooks.ok(hooks.event(call="one"))

    assert list(hooks.files()) == ["one"]
    assert "Operation not permitted" in hooks.problem
    for name in hooks.left():  # of the start that failed; the next helper removes it
        os.unlink(hooks.runtime / f"holdfast-{os.geteuid()}" / name)


def test_what_a_killed_helper_left_is_removed_by_that_of_any_project(
    hooks: Hooks, tmp_path: Path
) -> None:
    hooks.ok()
    for pid in hooks.helpers():
        os.kill(pid, signal.SIGKILL)
    hooks.are_gone()
    assert len(hooks.left()) == 2

    (tmp_path / "other").mkdir()
    hooks.ok(hooks.event(cwd=str(tmp_path / "other")))
    hooks.end()

    assert hooks.left() == []


@pytest.mark.parametrize("said", [b"", b"x" * 100, b"5 5\nabc", b"-1 5\n", b"9 99999999999\n"])
def test_nonsense_from_a_hook_is_passed_over(hooks: Hooks, said: bytes) -> None:
    hooks.ok(hooks.event(call="one"))
    (name,) = (hooks.runtime / f"holdfast-{os.geteuid()}").glob("*.sock")
    with socket(AF_UNIX) as connection:
        connection.connect(str(name))
        connection.sendall(said)
    hooks.ok(hooks.event(call="two"))

    assert list(hooks.files()) == ["two", "one"]
    assert len(hooks.helpers()) == 1


def test_what_is_said_is_understood_once_it_is_whole() -> None:
    request = Request(
        version="1", event_id="e", folder="/ü/\udcff", words=["--from", "x"], event=b"{\0\n}"
    )
    data = request.pack()

    for length in range(len(data)):
        assert Request.unpack(data[:length]) is None
    read = Request.unpack(data)
    assert read is not None
    assert vars(read) == vars(request)


def test_an_answer_is_found_behind_signs_of_life() -> None:
    assert Answer.unpack(b".\n.\n0 {") is None
    done = Answer.unpack(b".\n.\n" + Answer(DONE, '{"a":\n1}').pack())
    assert done is not None
    assert json.loads(done.text) == {"a": 1}
    again = Answer.unpack(Answer(AGAIN).pack())
    assert again is not None
    assert again.kind == AGAIN
