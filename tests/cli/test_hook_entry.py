"""How a hook ends: never in the agent's way, and what went wrong is written down once."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.coding_agents import programs
from holdfast.coding_agents.hook_options import is_event, read_options
from holdfast.coding_agents.hook_project import CWD
from tests.cli.hook_kit import Hooks, hooks_of
from tests.cli.kit import Holdfast, environment
from tests.disks import own_disk


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooks]:
    """The hooks of a project that has a store."""
    project = tmp_path / "project"
    (project / ".holdfast").mkdir(parents=True)
    (project / "page.html").write_text("good")
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    with hooks_of(project) as hooks:
        yield hooks


WRONG_WORDS = [
    (["--later"], "takes no --later"),
    (["--later", "install"], "takes no --later"),
    (["observe"], "takes no observe"),
    (["record", "more"], "takes no more"),
    (["--from"], "--from needs a value"),
    (["--from", "newer-program"], "'newer-program' is none of claude-code"),
    (["--map", "nonsense"], "--map takes NAME=PATH"),
    (["--directory", "/no/such/directory"], "is no directory"),
    (["--store", "nonsense"], "a store is named by a URL"),
    (["--store", "nonsense://x"], "no store is called 'nonsense'"),
    (["--store=sqlite:////proc/x/y.db"], "cannot be opened"),
]


@pytest.mark.parametrize("helper", ["on", "off"])
@pytest.mark.parametrize(("words", "said"), WRONG_WORDS)
def test_what_is_written_wrongly_forbids_nothing_and_is_said_in_the_log(
    hooks: Hooks, words: list[str], said: str, helper: str
) -> None:
    done = hooks(None, *words, HOLDFAST_HOOK_HELPER=helper)

    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert said in hooks.problem


@pytest.mark.parametrize("helper", ["on", "off"])
@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("", "is told JSON"),
        ("nonsense", "is told JSON"),
        ("[" * 100_000, "is told JSON"),
        ("[]", "a JSON object"),
        ("{}", "no session"),
        ('{"session_id": "s", "cwd": "/no/such/directory"}', "is no directory"),
        ('{"session_id": "s", "cwd": "a\\u0000b"}', "is no directory"),
        ('{"session_id": "s", "cwd": "\\ud800"}', "is no directory"),
    ],
)
def test_what_is_told_wrongly_forbids_nothing_and_is_said_in_the_log(
    hooks: Hooks, event: str, said: str, helper: str
) -> None:
    done = hooks(event, HOLDFAST_HOOK_HELPER=helper)

    assert (done.code, done.out) == (1, "")
    assert said in hooks.problem


def test_what_goes_wrong_again_is_counted_and_shown_by_doctor(hooks: Hooks) -> None:
    hooks.ok()
    for _ in range(3):
        hooks(None, "--later")

    (problem,) = hooks.report.problems
    assert problem.count == 3
    shown = hooks.holdfast("doctor")
    assert shown.code == 0
    assert "takes no --later" in shown.out
    assert "3 times" in shown.out


def test_people_are_told_that_they_wrote_something_wrong(hooks: Hooks) -> None:
    for action in ("install", "uninstall"):
        assert hooks.holdfast("hook", action, "--later").code == 2
    assert hooks.holdfast("hook", "--help").code == 0
    assert not hooks.report.problems


@pytest.mark.parametrize("helper", ["on", "off"])
@pytest.mark.parametrize(
    "streams",
    [
        "<&-",
        ">&-",
        "2>&-",
        "<&- >&- 2>&-",
        ">/dev/full 2>/dev/full",
        "<&- 2>/dev/full",
        "</dev/null",
    ],
)
@pytest.mark.parametrize("words", ["", "--json", "--later"])
def test_streams_that_are_closed_or_full_forbid_nothing(
    hooks: Hooks, streams: str, words: str, helper: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m holdfast hook {words} {streams}', sys.executable],
        cwd=hooks.project,
        env=environment(**{**hooks.variables, "HOLDFAST_HOOK_HELPER": helper}),
        input=hooks.event().encode(),
        capture_output=True,
    )

    assert done.returncode in (0, 1)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_an_interrupt_forbids_nothing(hooks: Hooks) -> None:
    hooks.fault(
        "import os, signal, select\n"
        "real = select.select\n"
        "def wait(*given):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(*given)\n"
        "select.select = wait\n"
    )

    done = hooks(None, HOLDFAST_HOOK_HELPER="off")

    assert (done.code, done.out) == (1, "")
    assert hooks.problem == "it was interrupted"


FAULT = """
from holdfast.coding_agents import events

def read(*given):
    raise RuntimeError("postgresql://me:hunter22@db says\\nno")

events.read = read
"""


@pytest.mark.parametrize("helper", ["on", "off"])
def test_a_fault_of_our_own_forbids_nothing_and_tells_no_secret(hooks: Hooks, helper: str) -> None:
    hooks.fault(FAULT)

    done = hooks(None, HOLDFAST_HOOK_HELPER=helper)

    assert (done.code, done.out) == (1, "")
    assert "RuntimeError: postgresql://me:***@db says no" in done.err
    assert "This is a fault of holdfast" in hooks.problem


def test_a_current_directory_that_was_removed_forbids_nothing(hooks: Hooks) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m holdfast hook'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        cwd=hooks.project,
        env=environment(**hooks.variables),
        input=b'{"session_id": "s"}',
        capture_output=True,
    )

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"is no directory" in done.stderr


def test_a_store_that_cannot_be_written_to_forbids_nothing(hooks: Hooks) -> None:
    hooks.ok()
    hooks.end()
    (hooks.project / ".holdfast" / "holdfast.db").write_bytes(b"nonsense " * 1000)

    done = hooks()

    assert (done.code, done.out) == (1, "")
    assert "holdfast.db" in hooks.problem


FULL = """
mkdir "$0/project" && cd "$0/project" && mkdir .holdfast
hook() { "$1" -m holdfast hook; echo "ended with $?"; }
echo "$2" | hook "$1"
cat /dev/zero > big 2>/dev/null
echo "$2" | hook "$1"
rm big
echo "$2" | hook "$1"
"""


@pytest.mark.parametrize("helper", ["on", "off"])
def test_a_full_disk_forbids_nothing(hooks: Hooks, tmp_path: Path, helper: str) -> None:
    disk = tmp_path / "disk"
    event = json.dumps({"session_id": "s", "hook_event_name": "Stop"})
    done = subprocess.run(
        [*own_disk(disk, "4m"), "sh", "-c", FULL, str(disk), sys.executable, event],
        env=environment(**{**hooks.variables, "HOLDFAST_HOOK_HELPER": helper}),
        capture_output=True,
        text=True,
    )

    ended = [line for line in done.stdout.splitlines() if line.startswith("ended with")]
    assert ended == ["ended with 0", "ended with 1", "ended with 0"], done
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("helper", ["on", "off"])
def test_a_server_that_is_not_there_forbids_nothing(hooks: Hooks, helper: str) -> None:
    url = "redis://:hunter22@127.0.0.1:1/0"

    done = hooks(None, HOLDFAST_HOOK_HELPER=helper, HOLDFAST_URL=url)

    assert (done.code, done.out) == (1, "")
    assert "127.0.0.1:1" in hooks.problem
    assert "hunter22" not in done.err + hooks.problem


def test_an_event_of_a_program_is_counted_even_where_it_is_not_recorded(hooks: Hooks) -> None:
    hooks.ok(hooks.event("SessionStart"))
    hooks.ok(hooks.event("Stop"))

    (arrived,) = hooks.report.arrived
    assert (arrived.program, arrived.event, arrived.count) == ("claude-code", "Stop", 2)
    assert len(hooks.recorded()) == 1


def test_a_hook_with_a_helper_imports_next_to_nothing(hooks: Hooks) -> None:
    hooks.fault("", is_patient=False)
    hooks.ok()
    script = (
        "import sys; bare = set(sys.modules); from holdfast.cli import main; "
        "assert main(['hook']) == 0; print(*sys.modules.keys() - bare)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=hooks.project,
        env=environment(**hooks.variables),
        input=hooks.event().encode(),
        capture_output=True,
    )

    modules = set(done.stdout.decode().split())
    heavy = {"argparse", "typing", "dataclasses", "socket", "subprocess", "hashlib", "pathlib"}
    assert not modules & heavy
    assert {name for name in modules if name.startswith("holdfast")} <= {
        *("holdfast", "holdfast._lazy", "holdfast._version", "holdfast.cli", "holdfast.cli.words"),
        *("holdfast.coding_agents", "holdfast.coding_agents.entry"),
        "holdfast.coding_agents.event_paths",
        *("holdfast.coding_agents.hook_options", "holdfast.coding_agents.hook_project"),
        *("holdfast.coding_agents.resident", "holdfast.coding_agents.resident.asking"),
        *("holdfast.coding_agents.resident.meeting", "holdfast.coding_agents.resident.messages"),
    }


def test_the_directory_of_an_event_is_where_its_program_says() -> None:
    for name in programs.NAMES:
        assert programs.program(name).paths["cwd"] == CWD.get(name, "cwd")


def test_an_event_of_a_program_that_another_one_runs_is_of_its_own_directory(
    hooks: Hooks, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / ".holdfast").mkdir(parents=True)

    hooks.ok(hooks.event("Stop"), "--from", "codex", CLAUDE_PROJECT_DIR=str(other))
    hooks.ok(hooks.event("Stop"), CLAUDE_PROJECT_DIR=str(other))

    assert len(hooks.recorded()) == 1
    assert (other / ".holdfast" / "holdfast.db").exists()


@pytest.mark.parametrize(
    ("words", "is_told"),
    [
        (["install", "claude-code"], False),
        (["--store", "x", "uninstall"], False),
        (["status", "--json"], False),
        (["--help"], False),
        (["--agent", "install"], True),
        (["--agent=x", "install"], False),
        (["--json"], True),
        (["--new", "status"], True),
        (["anything"], True),
        ([], True),
    ],
)
def test_an_agent_is_told_from_people_by_the_words(words: list[str], is_told: bool) -> None:
    assert is_event(words) is is_told


def test_options_are_read_as_they_are_written() -> None:
    words = ["record", "--from", "codex", "--map", "a=b", "--map=c=d", "--agent", "me", "--json"]
    options = read_options([*words, "--directory=/x", "--store", "s", "--color", "never"])

    assert (options.program, options.maps, options.agent) == ("codex", ["a=b", "c=d"], "me")
    assert (options.directory, options.store, options.is_json) == ("/x", "s", True)


def test_an_answer_in_json_is_of_the_helper_too(hooks: Hooks) -> None:
    first, second = (
        json.loads(hooks(hooks.event("Stop"), "--json", HOLDFAST_HOOK_HELPER=helper).out)
        for helper in ("on", "off")
    )

    assert first.keys() == second.keys()
    assert [each.checkpoint_id for each in hooks.recorded()] == [
        first["checkpoint_id"],
        second["checkpoint_id"],
    ]


def test_an_agent_that_ends_takes_its_hook_along(hooks: Hooks) -> None:
    with hooks.start() as process:
        process.send_signal(signal.SIGTERM)
        process.communicate()

    assert process.returncode == -signal.SIGTERM
    assert os.listdir(hooks.runtime) == []


@pytest.mark.parametrize("where", ["/", "home"])
def test_a_home_or_a_disk_is_not_kept_as_a_project(tmp_path: Path, where: str) -> None:
    """A hook for all projects runs wherever an agent is started, also where nobody meant to."""
    home = tmp_path / "home"
    home.mkdir()
    holdfast = Holdfast(home)
    folder = "/" if where == "/" else str(home)
    said = json.dumps({"session_id": "s", "hook_event_name": "Stop", "cwd": folder})

    done = holdfast("hook", given=said, HOME=str(home))

    assert (done.code, done.out) == (1, "")
    assert "is no project" in done.err
    assert not Path(folder, ".holdfast").exists()
