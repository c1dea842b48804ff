"""holdfast wrap: any program runs as if Holdfast were not there, and its files are kept."""

import fcntl
import json
import os
import pty
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from holdfast import SyncClient
from holdfast.cli.output.json_schemas import document
from holdfast.coding_agents.wrapped_names import after, before, resting, shown
from holdfast.workspace import TreeDiff
from tests.cli.kit import Holdfast, environment
from tests.waiting import wait_until


def names(directory: Path) -> list[str]:
    """The names of all checkpoints of the newest session, the oldest first."""
    file = directory / ".holdfast" / "holdfast.db"
    if not file.exists():
        return []
    with SyncClient.sqlite(file) as client:
        return [str(info.step_name) for info in reversed(client.find(limit=50))]


def wrap(directory: Path, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
    """Start it on pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "wrap", *arguments],
        cwd=directory,
        env=environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def wrapped() -> Iterator[list["subprocess.Popen[str]"]]:
    """Programs that must not outlive their test."""
    running: list[subprocess.Popen[str]] = []
    yield running
    for process in running:
        process.kill()
        process.communicate()


def test_files_are_kept_before_at_rest_and_after_and_go_back(holdfast: Holdfast) -> None:
    here = holdfast.directory
    (here / "a.py").write_text("good\n")
    script = "echo bad > a.py; echo b > b.py; mkdir d; echo c > d/c.py; read line; rm b.py; exit 1"
    with wrap(here, "--rest", "0.2", "--", "sh", "-c", script) as process:
        wait_until(lambda: len(names(here)) == 2, "coming to rest")
        out, err = process.communicate("go on\n")

    assert (process.returncode, out, err) == (1, "", "")
    assert names(here) == [
        f"before: sh -c '{script}"[:59] + "…",
        "3 files came to rest: b.py, d/c.py and 1 more",
        f"after: sh -c '{script}"[:50] + "… (exit 1)",
    ]
    before_it, rest, after_it = holdfast.json("log")["checkpoints"][::-1]
    assert (rest["parent_id"], after_it["parent_id"]) == (
        before_it["checkpoint_id"],
        rest["checkpoint_id"],
    )
    holdfast.ok("rollback", rest["checkpoint_id"], "--scope", "files", "--yes")
    assert (here / "b.py").read_text() == "b\n"
    holdfast.ok("rollback", before_it["checkpoint_id"], "--scope", "files", "--yes")
    assert sorted(os.listdir(here)) == [".holdfast", "a.py"]
    assert (here / "a.py").read_text() == "good\n"


def test_a_rewind_puts_the_files_back_alone_and_can_be_undone(holdfast: Holdfast) -> None:
    here = holdfast.directory
    (here / "a.py").write_text("good\n")
    holdfast.ok("wrap", "--", "sh", "-c", "echo bad > a.py; echo b > b.py")

    said = holdfast.json("rewind", "@-", "--yes")
    assert (said["resume"], said["conversation"]) == (None, None)
    assert (here / "a.py").read_text() == "good\n"
    assert not (here / "b.py").exists()
    holdfast.ok("undo", "--yes")
    assert (here / "a.py").read_text() == "bad\n"
    assert (here / "b.py").exists()

    assert holdfast("rewind", "@-", "--conversation", "--yes").code == 5
    assert holdfast("rewind", "@-", "--to", "../other", "--yes").code == 5


@pytest.mark.parametrize(
    ("script", "code"),
    [
        *(("exit 0", 0), ("exit 2", 2), ("exit 255", 255)),
        *(("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -INT $$", 130)),
    ],
)
def test_the_exit_code_of_the_program_is_ours(holdfast: Holdfast, script: str, code: int) -> None:
    done = holdfast("wrap", "--", "sh", "-c", script)

    assert (done.code, done.out, done.err) == (code, "", "")
    assert len(names(holdfast.directory)) == 2


def test_programs_that_cannot_be_started_end_as_in_a_shell(holdfast: Holdfast) -> None:
    (holdfast.directory / "plain").write_text("echo from a script without a first line\n")
    missing = holdfast("wrap", "--", "no-such-program")
    forbidden = holdfast("wrap", "--", "./plain")
    (holdfast.directory / "plain").chmod(0o755)
    script = holdfast("wrap", "--", "./plain")

    assert (missing.code, missing.out) == (127, "")
    assert "no-such-program was not started" in missing.err
    assert (forbidden.code, forbidden.out) == (126, "")
    assert (script.code, script.out) == (0, "from a script without a first line\n")


def test_what_is_given_to_the_program_and_what_it_says_is_its_own(holdfast: Holdfast) -> None:
    (holdfast.directory / "list").write_text("from file 3\n")
    command = f"{sys.executable} -m holdfast wrap -- sh -c 'cat; cat <&3; echo no >&2' 3<list"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=holdfast.directory,
        env=environment(),
        input="typed\n",
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "typed\nfrom file 3\n", "no\n")


def test_without_standard_error_nothing_is_said(holdfast: Holdfast) -> None:
    (holdfast.directory / "agent.db").write_text("this is no database, " * 100)
    words = "wrap --store sqlite:///agent.db -- echo worked"
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m holdfast {words} 2>&-"],
        cwd=holdfast.directory,
        env=environment(),
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout) == (0, "worked\n")


def test_arguments_of_the_program_are_its_own(holdfast: Holdfast) -> None:
    words = ["--json", "--name", "x", "--", "-h", "--store", "sqlite:///y.db"]
    behind = holdfast("wrap", "--", "echo", *words)
    without = holdfast("wrap", "echo", *words)

    assert behind.out == without.out == " ".join(words) + "\n"
    assert behind.err == without.err == ""


@pytest.mark.parametrize("arguments", [[], ["--"], ["--rest", "-1", "--", "x"], ["--rest", "nan"]])
def test_a_command_that_is_not_one_is_refused(holdfast: Holdfast, arguments: list[str]) -> None:
    assert holdfast("wrap", *arguments).code == 2
    assert not (holdfast.directory / ".holdfast").exists()


def test_a_rest_of_no_time_is_refused_in_words_that_are_true(holdfast: Holdfast) -> None:
    done = holdfast("wrap", "--rest", "0", "--", "x")

    assert (done.code, done.out) == (2, "")
    assert "'0' is no time: more than 0 seconds, and 3600 at most" in done.err


def test_sessions_are_one_for_each_run_or_the_one_that_is_named(holdfast: Holdfast) -> None:
    for _ in range(2):
        holdfast.ok("wrap", "--", "true")
        holdfast.ok("wrap", "--name", "nightly", "--session", "monday", "--", "true")

    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        found = sorted((each.agent_id, each.checkpoints) for each in client.sessions())
        assert client.sessions("nightly")[0].session_id == "monday"
    assert found == [("nightly", 4), ("true", 2), ("true", 2)]


def test_json_is_said_beside_the_output_of_the_program(holdfast: Holdfast) -> None:
    done = holdfast("wrap", "--json", "--", "sh", "-c", "echo mine; exit 4")

    assert (done.code, done.out) == (4, "mine\n")
    said = json.loads(done.err)
    jsonschema.validate(said, document("wrap"))
    assert (said["exit_code"], len(said["checkpoints"]), said["problems"]) == (4, 2, [])


def test_a_store_that_fails_never_ends_the_program(holdfast: Holdfast) -> None:
    (holdfast.directory / "agent.db").write_text("this is no database, " * 100)

    done = holdfast(
        *("wrap", "--store", "sqlite:///agent.db", "--", "sh", "-c", "echo worked; exit 6")
    )

    assert (done.code, done.out) == (6, "worked\n")
    assert done.err.startswith("holdfast: nothing was kept: ")
    assert len(done.err.splitlines()) == 1


def test_a_store_that_fails_meanwhile_is_told_of_at_the_end(holdfast: Holdfast) -> None:
    store = holdfast.directory / "kept"
    script = "rm -r kept; echo no directory > kept; echo worked"

    done = holdfast("wrap", "--store", f"file://{store}", "--", "sh", "-c", script)

    assert (done.code, done.out) == (0, "worked\n")
    assert len(done.err.splitlines()) == 1
    assert f"nothing was kept: the store {store} was removed meanwhile" in done.err


def test_a_store_that_the_program_cleans_away_is_said_and_made_anew(holdfast: Holdfast) -> None:
    here = holdfast.directory
    subprocess.run(["git", "init", "-q", "."], cwd=here, check=True)
    script = "git clean -fdxq; echo n > n; exit 4"

    done = holdfast("wrap", "--", "sh", "-c", script)

    assert (done.code, done.out) == (4, "")
    assert done.err == (
        f"holdfast: only 1 checkpoint could be kept: the store {here}/.holdfast/holdfast.db was "
        "removed meanwhile: what was kept before is gone\n"
    )
    assert names(here) == [after(shown(["sh", "-c", script]), 4, "exit 4")]
    git = ["git", "status", "--short"]
    assert subprocess.run(git, cwd=here, capture_output=True, check=True).stdout == b"?? n\n"


def test_a_store_above_that_is_cleaned_away_meanwhile_is_made_anew_in_its_place(
    holdfast: Holdfast, wrapped: list["subprocess.Popen[str]"]
) -> None:
    here = holdfast.directory
    holdfast.ok("init")
    below = here / "below"
    below.mkdir()
    script = "rm -r ../.holdfast; echo a > a.py; read line; exit 0"
    process = wrap(below, "--rest", "0.1", "--", "sh", "-c", script)
    wrapped.append(process)
    wait_until(lambda: "during: sh -c" in str(names(here)), "a new store")

    _, err = process.communicate("go on\n")

    assert "only 2 checkpoints could be kept" in err
    assert len(err.splitlines()) == 1
    assert not (below / ".holdfast").exists()
    assert (here / ".holdfast" / ".gitignore").read_text() == "*\n"


def test_a_store_that_another_holds_is_not_waited_for_and_used_once_it_is_free(
    holdfast: Holdfast, wrapped: list["subprocess.Popen[str]"]
) -> None:
    here = holdfast.directory
    holdfast.ok("init")
    with closing(sqlite3.connect(here / ".holdfast" / "holdfast.db")) as other:
        other.execute("begin exclusive")
        script = "echo a > a.py; echo ready; read line"
        process = wrap(here, "--rest", "0.1", "--", "sh", "-c", script)
        wrapped.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        other.rollback()
    wait_until(lambda: names(here), "being free")

    _, err = process.communicate("go on\n")

    assert process.returncode == 0
    assert "checkpoints could be kept: " in err
    assert names(here)[0].startswith("during: sh -c")
    assert names(here)[-1].startswith("after: sh -c")


def test_a_home_directory_is_not_captured(holdfast: Holdfast) -> None:
    done = holdfast("wrap", "--", "echo", "worked", HOME=str(holdfast.directory))

    assert (done.code, done.out) == (0, "worked\n")
    assert "is no project" in done.err
    assert not (holdfast.directory / ".holdfast").exists()


def test_the_project_is_what_has_the_store(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    (holdfast.directory / "top").write_text("x")
    inner = holdfast.directory / "inner"
    inner.mkdir()

    Holdfast(inner).ok("wrap", "--", "touch", "below")

    assert not (inner / ".holdfast").exists()
    changed = holdfast.json("diff", "@-", "@")["files"]
    assert changed["added"] == ["inner/below"]


def test_what_is_sent_to_us_is_passed_on(
    holdfast: Holdfast, wrapped: list["subprocess.Popen[str]"]
) -> None:
    script = "trap 'echo saved > saved; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    process = wrap(holdfast.directory, "--", "sh", "-c", script)
    wrapped.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    process.send_signal(signal.SIGTERM)

    assert process.wait() == 5
    assert "(exit 5)" in names(holdfast.directory)[-1]
    assert holdfast.json("diff", "@-", "@")["files"]["added"] == ["saved"]


def test_signals_that_are_ignored_stay_ignored(holdfast: Holdfast) -> None:
    """As with nohup, or in the background of a script."""
    show = "import signal as s; print([s.getsignal(n) is s.SIG_IGN for n in (s.SIGHUP, s.SIGINT)])"
    command = f"trap '' HUP INT; {sys.executable} -m holdfast wrap -- {sys.executable} -c '{show}'"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=holdfast.directory,
        env=environment(),
        capture_output=True,
        text=True,
    )

    assert done.stdout == "[True, True]\n", done.stderr


def test_a_wrapper_that_is_killed_loses_nothing_it_has_kept(
    holdfast: Holdfast, wrapped: list["subprocess.Popen[str]"]
) -> None:
    here = holdfast.directory
    script = "echo a > a.py; read line; echo b > b.py; echo gone on > done"
    process = wrap(here, "--rest", "0.1", "--", "sh", "-c", script)
    wrapped.append(process)
    wait_until(lambda: len(names(here)) == 2, "coming to rest")

    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.write("go on\n")
    process.stdin.flush()

    wait_until((here / "done").exists, "going on without us")
    assert names(here)[1] == "1 file came to rest: a.py"
    holdfast.ok("wrap", "--", "true")
    assert names(here)[2:] == ["before: true", "after: true"]
    holdfast.ok("verify")


def test_files_that_never_rest_are_kept_all_the_same(
    holdfast: Holdfast, wrapped: list["subprocess.Popen[str]"]
) -> None:
    here = holdfast.directory
    script = "while [ ! -e enough ]; do echo x >> busy; sleep 0.02; done"
    process = wrap(here, "--rest", "0.1", "--", "sh", "-c", script)
    wrapped.append(process)

    wait_until(lambda: len(names(here)) >= 3, "losing patience")
    (here / "enough").touch()

    assert process.wait() == 0
    assert names(here)[1] == "1 file came to rest: busy"


def test_files_are_looked_at_where_nobody_tells_of_changes(
    holdfast: Holdfast, wrapped: list["subprocess.Popen[str]"]
) -> None:
    here = holdfast.directory
    arguments = ["wrap", "--rest", "0.1", "--", "sh", "-c", "echo a > a.py; read line"]
    program = (
        "import sys; sys.modules['inotify_simple'] = None; from holdfast.cli import main; "
        f"sys.exit(main({arguments!r}))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=here,
        env=environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wrapped.append(process)

    wait_until(lambda: len(names(here)) == 2, "looking")
    process.communicate("\n")

    assert process.returncode == 0
    assert names(here)[1] == "1 file came to rest: a.py"


class Screen:
    """A terminal with a program that it controls, as a terminal emulator has it."""

    def __init__(self, directory: Path, *command: str) -> None:
        self.said = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(command[0], command, environment(PS1="shell> ", TERM="xterm"))
        self.resize(24, 80)

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def sees(self, text: str) -> None:
        """Wait until a text has come, since the last that was waited for."""
        wait_until(lambda: self._has(text), f"{text!r}")
        self.said = self.said.partition(text)[2]

    def _has(self, text: str) -> bool:
        if text not in self.said and select.select([self._fd], [], [], 0.1)[0]:
            try:
                self.said += os.read(self._fd, 65536).decode(errors="replace")
            except OSError:  # the program has gone
                raise AssertionError(f"{text!r} never came: {self.said!r}") from None
        return text in self.said

    def hang_up(self) -> None:
        """Close the terminal, as its window is closed."""
        os.close(self._fd)
        os.waitpid(self.pid, 0)
        self.pid = 0

    def ends(self) -> int:
        """Wait for the end, and return the exit code."""
        while True:
            try:
                self.said += os.read(self._fd, 65536).decode(errors="replace")
            except OSError:
                break
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._fd)
        self.pid = 0
        return code

    def leave(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.close(self._fd)
            os.waitpid(self.pid, 0)


@pytest.fixture
def screen(holdfast: Holdfast) -> Iterator[Callable[..., Screen]]:
    """Makes terminals that end with the test."""
    made: list[Screen] = []

    def make(*command: str) -> Screen:
        made.append(Screen(holdfast.directory, *command))
        return made[-1]

    yield make
    for each in made:
        each.leave()


HOLDFAST = (sys.executable, "-m", "holdfast")

FULL_SCREEN = """
import curses, sys

def show(window):
    window.keypad(True)
    while True:
        lines, columns = window.getmaxyx()
        window.erase()
        window.addstr(0, 0, f"<{lines}x{columns}>")
        window.refresh()
        key = window.getch()
        if key == curses.KEY_RESIZE:
            curses.update_lines_cols()
        elif key == ord("w"):
            open("written", "w").write("by hand")
            window.addstr(1, 0, "<saved>")
        elif key == ord("q"):
            return

curses.wrapper(show)
sys.exit(3)
"""


def test_a_program_that_takes_the_whole_screen_has_it(
    holdfast: Holdfast, screen: Callable[..., Screen]
) -> None:
    here = holdfast.directory
    (here / "editor.py").write_text(FULL_SCREEN)
    terminal = screen(*HOLDFAST, "wrap", "--rest", "0.1", "--", sys.executable, "editor.py")

    terminal.sees("<24x80>")
    terminal.resize(30, 100)
    terminal.sees("<30x100>")
    terminal.type("w")
    wait_until(lambda: len(names(here)) == 2, "coming to rest")
    terminal.type("q")

    assert terminal.ends() == 3
    assert names(here)[1:] == [
        "1 file came to rest: written",
        f"after: {Path(sys.executable).name} editor.py (exit 3)",
    ]
    assert "3 checkpoints in session" in terminal.said


INTERRUPTED = """
import signal, sys

signal.signal(signal.SIGINT, lambda *_: print("<interrupted>", flush=True))
print("<ready>", flush=True)
for line in sys.stdin:
    print("<heard", line.strip() + ">", flush=True)
"""


def test_ctrl_c_is_for_the_program_and_comes_once(
    holdfast: Holdfast, screen: Callable[..., Screen]
) -> None:
    (holdfast.directory / "chat.py").write_text(INTERRUPTED)
    terminal = screen(*HOLDFAST, "wrap", "--", sys.executable, "chat.py")

    terminal.sees("<ready>")
    terminal.type("\x03")
    terminal.sees("<interrupted>")
    terminal.type("still here\n")
    terminal.sees("<heard still here>")
    assert "<interrupted>" not in terminal.said
    terminal.type("\x04")

    assert terminal.ends() == 0


def test_a_program_that_ctrl_c_ends_is_kept_as_it_ended(
    holdfast: Holdfast, screen: Callable[..., Screen]
) -> None:
    script = "open('half', 'w').close(); print('<ready>', flush=True); input()"
    terminal = screen(*HOLDFAST, "wrap", "--", sys.executable, "-c", script)

    terminal.sees("<ready>")
    terminal.type("\x03")

    assert terminal.ends() == 130
    assert names(holdfast.directory)[-1].endswith("(SIGINT)")
    assert (holdfast.directory / "half").exists()
    holdfast.ok("rollback", "@~1", "--scope", "files", "--yes")


def test_a_terminal_that_is_closed_ends_the_program_and_what_it_did_is_kept(
    holdfast: Holdfast, screen: Callable[..., Screen]
) -> None:
    here = holdfast.directory
    script = "import signal; print('<ready>', flush=True); open('half', 'w').close(); input()"
    terminal = screen(*HOLDFAST, "wrap", "--rest", "60", "--", sys.executable, "-c", script)
    terminal.sees("<ready>")
    wait_until((here / "half").exists, "writing")

    terminal.hang_up()

    wait_until(lambda: len(names(here)) == 2, "keeping what there is")
    assert names(here)[-1].startswith("after: ")


STOPPING = """
import os, signal, sys

def stop(*_):
    print("<leaving the screen>", flush=True)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.signal(signal.SIGTSTP, stop)
    print("<back>", flush=True)

signal.signal(signal.SIGTSTP, stop)
print("<ready>", flush=True)
for line in sys.stdin:
    print("<heard", line.strip() + ">", flush=True)
"""


@pytest.mark.parametrize("program", ["editor", "plain"])
def test_ctrl_z_gives_the_shell_its_prompt_and_fg_gives_it_back(
    holdfast: Holdfast, screen: Callable[..., Screen], program: str
) -> None:
    """Also for one that first leaves its screen, and then stops nobody but itself."""
    (holdfast.directory / "chat.py").write_text(STOPPING if program == "editor" else INTERRUPTED)
    shell = screen("bash", "--norc", "--noprofile", "-i")
    shell.type(f"{' '.join(HOLDFAST)} wrap -- {sys.executable} chat.py\n")
    for text in ("<ready>", "<heard again>"):
        shell.sees(text)
        shell.type("\x1a")
        shell.sees("Stopped")
        shell.sees("shell> ")
        shell.type("echo $((20 + 3)) prompts\n")
        shell.sees("23 prompts")
        shell.type("fg\n")
        if program == "editor":
            shell.sees("<back>")
        shell.type("again\n")
    shell.sees("<heard again>")
    shell.type("\x04")
    shell.sees("checkpoints in session")
    shell.type("exit\n")

    assert shell.ends() == 0


def test_names_are_in_words_and_short() -> None:
    many = TreeDiff(added=("a.py", "b.py"), modified=("c.py",))

    assert resting(many) == "3 files came to rest: a.py, b.py and 1 more"
    assert resting(TreeDiff(removed=("x",))) == "1 file came to rest: x"
    assert resting(TreeDiff(renamed=(("old", "new"),))) == "1 file came to rest: new"
    assert resting(TreeDiff(touched=("a",))) == "1 file touched: a"
    assert len(resting(TreeDiff(added=("x" * 100,)))) == 60
    assert before("aider --model m") == "before: aider --model m"
    assert after("aider", 0, "exit 0") == "after: aider"
    assert after("aider " + "x" * 90, 1, "exit 1").endswith("x… (exit 1)")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["aider", "--openai-api-key", "abc", "x"], "aider --openai-api-key *** x"),
        (["aider", "--token=abc"], "aider --token=***"),
        (["x", "--key", "--verbose"], "x --key --verbose"),
        (["psql", "postgresql://me:hunter2@db/x"], "psql 'postgresql://me:***@db/x'"),
        (["env", "OPENAI_API_KEY=hunter2hunter2", "aider"], "env OPENAI_API_KEY=*** aider"),
        (["/usr/bin/make", "a b"], "make 'a b'"),
    ],
)
def test_nothing_secret_is_kept_of_a_command(command: list[str], said: str) -> None:
    assert shown(command) == said
