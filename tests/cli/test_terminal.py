"""How output behaves on a real terminal, and on a pipe."""

import os
import re
import signal
import subprocess
import sys

import pytest

from holdfast import SyncClient
from holdfast.system.terminal_text import width
from tests.cli.kit import Holdfast, environment


def test_colours_are_for_terminals(project: Holdfast) -> None:
    assert "\x1b[" in project.on_terminal("log", "fix-42").out
    assert "\x1b[" not in project.ok("log", "fix-42")


def test_no_color_and_the_option_turn_colours_off_and_on(project: Holdfast) -> None:
    assert "\x1b[" not in project.on_terminal("log", "fix-42", NO_COLOR="1").out
    assert "\x1b[" not in project.on_terminal("log", "fix-42", TERM="dumb").out
    assert "\x1b[" not in project.on_terminal("log", "fix-42", "--color", "never").out
    assert "\x1b[" in project.ok("log", "fix-42", "--color", "always", NO_COLOR="1")


def test_lines_fit_the_terminal_and_are_whole_on_a_pipe(project: Holdfast) -> None:
    narrow = project.on_terminal("log", "fix-42", "-n", "9", columns=60, NO_COLOR="1").out

    assert "rolled back to read: completed" in narrow
    assert "(handed off to reviewer)" in narrow
    assert max(map(len, narrow.splitlines())) <= 60
    assert "rolled back to read: completed" in project.ok("log", "fix-42")


ODD = "日本語の名前がとても長いチェックポイント😀と続き"


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("how", [[], ["--graph"], ["--all"]])
def test_no_line_is_wrapped_and_no_mark_is_clipped(
    project: Holdfast, columns: int, how: list[str]
) -> None:
    with SyncClient.sqlite(project.directory / ".holdfast" / "holdfast.db") as client:
        (root, *_) = [i for i in client.timeline("coder", "fix-42") if i.step_name == "end"]
        client.fork(root.checkpoint_id, session_id=f"bolder-{ODD}")
        client.save(
            "coder", execution_state={}, session_id=f"bolder-{ODD}", step_name=f"{ODD} {ODD}"
        )

    shown = project.on_terminal("log", *how, columns=columns, lines=80, NO_COLOR="1").out

    assert max(map(width, shown.splitlines())) <= columns
    assert "forked from fix-42@" in shown
    assert shown.count("(") == shown.count(")")
    assert shown.startswith(("coder/bolder-日", "4 sessions", "3 sessions"))


@pytest.mark.parametrize("columns", [40, 80])
def test_watch_fits_the_terminal(project: Holdfast, columns: int) -> None:
    with SyncClient.sqlite(project.directory / ".holdfast" / "holdfast.db") as client:
        for number in range(40):
            client.save(
                "coder", execution_state={}, session_id=f"s-{ODD}", step_name=f"{number}{ODD}"
            )

    shown = project.on_terminal(
        "watch", "--timeout", "0", "-n", "50", columns=columns, lines=24, NO_COLOR="1"
    ).out.splitlines()

    assert len(shown) == 23
    assert max(map(width, shown)) <= columns
    assert "\x1b" not in "".join(shown)


def test_the_graph_and_the_head_are_in_colours(project: Holdfast) -> None:
    shown = project.on_terminal("log", "--graph", "fix-42", columns=80).out

    assert "\x1b[1;36m@\x1b[0m" in shown
    assert "\x1b[31m×\x1b[0m" in shown
    assert "\x1b[2m│ \x1b[0m" in shown


def test_long_output_is_paged_on_a_terminal(project: Holdfast) -> None:
    paged = project.on_terminal("log", "fix-42", lines=5, PAGER="sed s/^/paged:/", NO_COLOR="1")

    assert paged.code == 0
    assert paged.out.startswith("paged:")


def test_short_output_is_not_paged(project: Holdfast) -> None:
    shown = project.on_terminal("log", "fix-42", lines=50, PAGER="sed s/^/paged:/", NO_COLOR="1")

    assert "paged:" not in shown.out


def test_paging_can_be_turned_off(project: Holdfast) -> None:
    pager = "sed s/^/paged:/"
    for arguments, first, second in (
        (["--no-pager"], pager, pager),
        (["--json"], pager, pager),
        ([], "cat", pager),
        ([], "no-such-pager", pager),
        ([], "", pager),
    ):
        shown = project.on_terminal(
            "log", "fix-42", *arguments, lines=5, HOLDFAST_PAGER=first, PAGER=second
        )
        assert "paged:" not in shown.out
        assert "fix" in shown.out


def test_a_pager_that_is_left_early_is_no_error(project: Holdfast) -> None:
    done = project.on_terminal("show", "fix-42@", lines=5, PAGER="head -n 1", NO_COLOR="1")

    assert done.code == 0
    assert done.out.count("\n") == 1


def test_a_destructive_command_shows_what_it_would_do_and_asks(project: Holdfast) -> None:
    refused = project.on_terminal("prune", "--last", "2", answer="n", NO_COLOR="1")
    kept = project.json("stats")["checkpoints"]
    agreed = project.on_terminal("prune", "--last", "2", answer="y", NO_COLOR="1")

    assert refused.code == 5
    assert "remove  " in refused.out
    assert re.search(r"Remove \d+ checkpoints\? \[y/N\]", refused.out)
    assert "nothing was changed" in refused.out
    assert agreed.code == 0
    assert project.json("stats")["checkpoints"] < kept


def test_without_a_terminal_a_destructive_command_needs_yes(project: Holdfast) -> None:
    refused = project("prune", "--last", "2", given="y\n")
    kept = project.json("stats")["checkpoints"]

    assert refused.code == 5
    assert "remove  " in refused.out
    assert "pass --yes" in refused.err
    assert kept == 15
    assert project("prune", "--last", "2", "--yes").code == 0


def test_an_interrupt_ends_quietly(project: Holdfast) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", "watch"],
        cwd=project.directory,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored behind a shell's &
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()

    assert (process.returncode, err) == (130, "holdfast: interrupted\n")


RAISED_IN_A_HOOK = """
class Hook:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

Hook()
"""
TURNED_INTO_ANOTHER = """
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    raise %s
"""


@pytest.mark.parametrize(
    "strike",
    [
        RAISED_IN_A_HOOK,
        TURNED_INTO_ANOTHER % "RuntimeError('while a class was made') from None",
        TURNED_INTO_ANOTHER % "StoreError('the save was interrupted') from None",
    ],
)
def test_an_interrupt_that_python_loses_ends_quietly_too(project: Holdfast, strike: str) -> None:
    done = project.within(f"""
import signal, sys
from holdfast import StoreError
from holdfast.cli import main
from holdfast.cli.commands import watch

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind a shell's &

def questions(self):
    exec({strike!r}, globals())
    return []

watch.Follower.questions = questions
sys.exit(main(["watch"]))
""")

    assert (done.code, done.err) == (130, "holdfast: interrupted\n")


def test_errors_in_hooks_are_still_printed_and_main_leaves_no_handler(project: Holdfast) -> None:
    done = project.within("""
import signal
from holdfast.cli import main
from holdfast.cli.commands import watch

signal.signal(signal.SIGINT, signal.default_int_handler)

class Hook:
    def __del__(self):
        raise ValueError("in a hook")

def questions(self):
    Hook()
    return []

watch.Follower.questions = questions
main(["watch", "--timeout", "0s"])
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
""")

    assert done.code == 0
    assert "ValueError: in a hook" in done.err


def test_a_closed_output_is_no_error(project: Holdfast) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "log", "--json"],
        cwd=project.directory,
        env=environment(),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: os.close(1),
    )

    assert (done.returncode, done.stderr) == (0, b"")
