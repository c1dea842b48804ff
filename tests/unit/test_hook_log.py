"""The log of hooks: what came, and what went wrong."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.coding_agents.hook_log import HookLog


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a store; the user's own log is elsewhere."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project"
    (folder / ".holdfast").mkdir(parents=True)
    return folder


def test_events_are_counted_for_each_program(project: Path) -> None:
    log = HookLog.of(project)
    log.arrived("codex", "UserPromptSubmit")
    log.arrived("claude-code", "Stop")
    log.arrived("codex", "PostToolUse")

    codex, claude = HookLog.of(project / ".holdfast").report().arrived

    assert (codex.program, codex.event, codex.count) == ("codex", "PostToolUse", 2)
    assert (claude.program, claude.event, claude.count) == ("claude-code", "Stop", 1)


def test_a_problem_that_comes_again_is_counted(project: Path) -> None:
    log = HookLog.of(project)
    for text in ("the disk is full", "no session", "the disk is full"):
        log.problem("codex", text)

    first, second = log.report().problems

    assert (first.text, first.count, second.text, second.count) == (
        *("the disk is full", 2),
        *("no session", 1),
    )
    assert first.first <= first.last


def test_it_stays_small_and_forgets_no_count(project: Path) -> None:
    log = HookLog.of(project)
    for number in range(3000):
        log.arrived("codex", "PostToolUse")
        log.problem("codex", f"problem {number}")

    report = log.report()

    assert report.arrived[0].count == 3000
    assert report.problems[0].text == "problem 2999"
    assert os.path.getsize(log.file) < 200_000
    assert os.listdir(os.path.dirname(log.file)) == ["log"]


def test_it_is_its_owners_alone_and_holds_no_secret(project: Path) -> None:
    log = HookLog.of(project)
    log.problem("codex", "postgresql://me:hunter22@db/agents cannot be reached")

    assert os.stat(log.file).st_mode & 0o777 == 0o600
    assert "hunter22" not in Path(log.file).read_text()


def test_without_a_store_the_users_own_log_tells_projects_apart(
    project: Path, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    HookLog.of(one).problem("codex", "nothing there")

    assert HookLog.of(one).file == HookLog.of(other).file
    assert not HookLog.of(other).report().problems
    assert HookLog.of(one).report().problems[0].text == "nothing there"
    assert not (one / ".holdfast").exists()


def test_what_was_noted_while_no_store_was_there_is_told_once_there_is_one(
    project: Path, tmp_path: Path
) -> None:
    one = tmp_path / "one"
    one.mkdir()
    HookLog.of(one).problem("helper", "it was removed")
    (one / ".holdfast").mkdir()
    HookLog.of(one).problem("codex", "locked")

    told = [each.text for each in HookLog.of(one).report().problems]
    assert told == ["locked", "it was removed"]


def test_what_it_makes_anew_is_nothing_to_git(project: Path) -> None:
    log = HookLog.of(project)
    shutil.rmtree(project / ".holdfast")
    log.problem("codex", "locked")

    assert (project / ".holdfast" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]\n{}\n", "\x00" * 100, '{"at": "x"}', "[" * 10**5]
)
def test_what_others_wrote_into_it_is_passed_over(project: Path, text: str) -> None:
    log = HookLog.of(project)
    log.arrived("codex", "Stop")
    with open(log.file, "a") as file:
        file.write(f"{text}\n")

    log.arrived("codex", "Stop")

    assert log.report().arrived[0].count == 2


def test_writing_it_never_raises_nor_waits(project: Path) -> None:
    (project / ".holdfast" / "hook").mkdir()
    os.mkfifo(project / ".holdfast" / "hook" / "log")
    log = HookLog.of(project)

    log.problem("codex", "x")

    assert log.report().problems == ()


def test_a_link_is_not_written_through(project: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    (project / ".holdfast" / "hook").mkdir()
    (project / ".holdfast" / "hook" / "log").symlink_to(tmp_path / "mine")

    HookLog.of(project).problem("codex", "x")

    assert (tmp_path / "mine").read_text() == "x"


def test_many_write_to_it_at_once(project: Path) -> None:
    log = HookLog.of(project)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: log.arrived("codex", "Stop"), range(200)))

    assert log.report().arrived[0].count == 200
