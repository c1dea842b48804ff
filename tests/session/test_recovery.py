"""Files when a session is opened again: people's edits are kept, half a call is undone and said."""

import logging
from pathlib import Path
from typing import Any

import pytest

from holdfast import StillWaitingError, SyncClient, UnknownEffectError
from tests.cli.kit import Holdfast
from tests.clients import url_of
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, killed, power_cut


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Stores that keep chunks."""
    return url_of(request.param, tmp_path)


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def edit(repo: Path) -> None:
    """What a person does between two runs."""
    (repo / "main.py").write_text("edited by hand")
    (repo / "new.py").write_text("new")


EDITED = {"main.py": "edited by hand", "new.py": "new"}


def names_of(run: Any) -> list[str]:
    return [info.step_name for info in run.history()]


# After a clean end


def test_what_a_person_edited_after_a_clean_end_is_kept_and_captured(
    session: Open, client: Any, repo: Path
) -> None:
    with session(workspace=repo) as run:
        run.state["n"] = 1
    edit(repo)

    with session(workspace=repo) as run:
        assert contents(repo) == EDITED
        assert run.recovered is None
        assert names_of(run) == ["edited outside", "end", "start"]
        assert run.history()[0].metadata["edited_outside"] == 2
        assert run.state == {"n": 1}
        run.rollback(to="end")
        assert contents(repo) == {"main.py": "print('one')"}
        run.undo()
        assert contents(repo) == EDITED


def test_files_nobody_edited_make_no_checkpoint(session: Open, repo: Path) -> None:
    with session(workspace=repo):
        pass
    (repo / "main.py").touch()
    with session(workspace=repo) as run:
        assert names_of(run) == ["end", "start"]


def test_an_error_of_the_program_is_a_clean_end(session: Open, repo: Path) -> None:
    with pytest.raises(ValueError, match="bad"), session(workspace=repo):
        raise ValueError("bad")
    edit(repo)
    with session(workspace=repo) as run:
        assert contents(repo) == EDITED
        assert names_of(run)[0] == "edited outside"


def test_edits_after_an_interrupt_between_calls_are_kept_and_calls_found_again(
    session: Open, repo: Path, tools: Tools
) -> None:
    def program(run: Any, then: Any = None) -> None:
        for task in run.tasks.plan("write").remaining():
            with task:
                run.state["read"] = run.call(tools.read, "a")
                run.call(tools.send, "b", effect="irreversible")
                if then is not None:
                    raise then

    with pytest.raises(KeyboardInterrupt), session(workspace=repo) as run:
        program(run, KeyboardInterrupt())
    edit(repo)
    with session(workspace=repo) as run:  # only looks
        assert run.recovered is None
        assert names_of(run)[0] == "edited outside"
    with session(workspace=repo) as run:
        program(run)
        assert contents(repo) == EDITED
        assert run.state == {"read": ["read", "a", 1]}
    assert tools.names() == ["read", "send"]


def test_edits_while_a_call_waits_for_approval_are_kept(
    session: Open, client: Any, repo: Path, tools: Tools
) -> None:
    options = {"workspace": repo, "approval": "wait", "approval_timeout": 0.0}

    def program() -> None:
        with session(**options) as run:
            run.call(tools.read, "a")
            run.call(tools.send, "b", effect="irreversible")

    with pytest.raises(StillWaitingError):
        program()
    edit(repo)
    client.approve(client.pending()[0].effect_id)
    program()
    assert contents(repo) == EDITED
    assert tools.names() == ["read", "send"]


def test_a_call_of_unknown_end_is_still_unknown_after_an_edit(
    session: Open, repo: Path, tools: Tools
) -> None:
    with killed(), session(workspace=repo) as run:
        run.call(tools.read, "a")
        run.call(tools.cut, effect="irreversible")

    def resumed() -> None:
        with session(workspace=repo) as run:
            run.call(tools.read, "a")
            run.call(tools.cut, effect="irreversible")

    with pytest.raises(UnknownEffectError):
        resumed()
    edit(repo)
    with session(workspace=repo) as run:
        assert contents(repo) == EDITED  # the files had been put back before
        (unknown,) = run.unknown_effects()
        unknown.mark_done("done")
    with session(workspace=repo) as run:
        assert names_of(run)[0] == "edited outside"
        assert run.call(tools.read, "a") == ["read", "a", 1]
        assert run.call(tools.cut, effect="irreversible") == "done"
    assert tools.names() == ["read", "cut"]


def test_a_retry_that_was_decided_outlives_an_edit(session: Open, repo: Path, tools: Tools) -> None:
    with killed(), session(workspace=repo) as run:
        run.call(tools.cut, effect="irreversible")
    with session(workspace=repo) as run:
        run.unknown_effects()[0].retry()
    edit(repo)
    with power_cut(), session(workspace=repo) as run:
        assert names_of(run)[0] == "edited outside"
        run.call(tools.cut, effect="irreversible")
    assert tools.names() == ["cut", "cut"]


def test_a_workspace_that_is_given_for_the_first_time_is_left_as_it_is(
    session: Open, repo: Path
) -> None:
    with session() as run:
        run.state["n"] = 1
    with session(workspace=repo) as run:
        assert (contents(repo), run.recovered) == ({"main.py": "print('one')"}, None)


# After a crash


def test_what_was_undone_after_a_crash_is_said_and_can_be_taken_back(
    session: Open, client: Any, repo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def half(path: Path) -> None:
        edit(repo)
        raise PowerCut

    with killed(), session(workspace=repo) as run:
        run.call(half, repo)
    with caplog.at_level(logging.WARNING, "holdfast"), session(workspace=repo) as run:
        assert contents(repo) == {"main.py": "print('one')"}
        found = run.recovered
        assert (found.reason, found.paths) == ("crash", ("main.py", "new.py"))
        assert (found.written, found.removed) == (("main.py",), ("new.py",))
        assert found.call.tool == "half"
        (said,) = [record.getMessage() for record in caplog.records]
        assert said == str(found)
        assert "session 'fix-42': files put back after a crash, which cut off half(" in said
        assert f"main.py, new.py (undo: holdfast restore {found.undo_tree} --to {repo})" in said
        run.workspace.restore(found.undo_tree)
        assert contents(repo) == EDITED
    with session(workspace=repo) as run:
        assert run.recovered is None


def test_a_call_cut_off_by_an_interrupt_is_undone_and_said(session: Open, repo: Path) -> None:
    def half() -> None:
        edit(repo)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), session(workspace=repo) as run:
        run.call(half)
    with session(workspace=repo) as run:
        assert run.recovered.call.tool == "half"
        assert contents(repo) == {"main.py": "print('one')"}


def test_a_process_killed_between_calls_leaves_files_put_back_and_said(
    session: Open, repo: Path, tools: Tools
) -> None:
    with killed(), session(workspace=repo) as run:
        run.call(tools.read)
        edit(repo)
        raise PowerCut
    with session(workspace=repo, on_divergence="live") as run:
        assert (run.recovered.reason, run.recovered.call) == ("crash", None)
        assert contents(repo) == {"main.py": "print('one')"}


def test_a_crash_that_changed_no_file_is_not_told(session: Open, repo: Path, caplog: Any) -> None:
    with killed(), session(workspace=repo):
        raise PowerCut
    with session(workspace=repo) as run:
        assert run.recovered is None
    assert caplog.records == []


def test_a_look_without_the_files_leaves_them_to_be_put_back(session: Open, repo: Path) -> None:
    with killed(), session(workspace=repo) as run:
        run.call(edit_and_cut, repo)
    with session():  # only looks
        pass
    with session(workspace=repo) as run:
        assert run.recovered is not None
        assert contents(repo) == {"main.py": "print('one')"}


def edit_and_cut(repo: Path) -> None:
    edit(repo)
    raise PowerCut


# Elsewhere


def test_files_are_put_into_another_directory_and_that_is_said(
    session: Open, repo: Path, tmp_path: Path
) -> None:
    with session(workspace=repo) as run:
        run.checkpoint("good")
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with session(workspace=other) as run:
        assert contents(other) == {"main.py": "print('one')"}
        assert run.recovered.reason == "elsewhere"
        assert run.recovered.paths == ("main.py", "mine.txt")
        run.workspace.restore(run.recovered.undo_tree)
        assert contents(other) == {"mine.txt": "mine"}
    assert contents(repo) == {"main.py": "print('one')"}


def test_a_fork_of_an_older_checkpoint_has_its_files(
    session: Open, client: Any, repo: Path
) -> None:
    with session(workspace=repo) as run:
        old = run.checkpoint("good")
        edit(repo)
    client.fork(old, session_id="other")
    with client.session(AGENT, session_id="other", workspace=repo) as run:
        assert contents(repo) == {"main.py": "print('one')"}
        assert run.recovered.reason == "elsewhere"
    edit(repo)
    with client.session(AGENT, session_id="other", workspace=repo) as run:
        assert (contents(repo), run.recovered) == (EDITED, None)


def test_a_session_that_was_brought_here_has_its_files_put_here(
    session: Open, client: Any, repo: Path, tmp_path: Path
) -> None:
    with session(workspace=repo):
        pass
    client.export(tmp_path / "moved.bundle")
    edit(repo)
    with SyncClient.sqlite(tmp_path / "elsewhere.db") as there:
        there.import_(tmp_path / "moved.bundle")
        with there.session(AGENT, session_id=SESSION, workspace=repo) as run:
            assert run.recovered is not None
            assert run.recovered.reason == "elsewhere"
            assert contents(repo) == {"main.py": "print('one')"}
        edit(repo)
        with there.session(AGENT, session_id=SESSION, workspace=repo) as run:
            assert (run.recovered, contents(repo)) == (None, EDITED)


def test_a_new_machine_on_the_same_server_has_the_files_put_there(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = url_of("redis", tmp_path)
    for machine, edits in (("one", True), ("one", True), ("two", False), ("two", True)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))
        with (
            SyncClient.open(url) as client,
            client.session(AGENT, session_id=SESSION, workspace=repo) as run,
        ):
            is_edited = contents(repo) == EDITED
            assert (is_edited, run.recovered is None) == (edits and run.resumed, edits)
            (repo / "main.py").write_text("print('one')")
            (repo / "new.py").unlink(missing_ok=True)
        edit(repo)


# On the command line

AGENT_SCRIPT = """
import os, signal, sys
from pathlib import Path
from holdfast import SyncClient

def half():
    Path("repo/main.py").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

with SyncClient.sqlite(".holdfast/holdfast.db") as client:
    with client.session("coder", session_id="fix-42", workspace="repo") as run:
        print(run.recovered is not None)
        if "kill" in sys.argv:
            run.call(half)
"""


def test_a_real_kill_is_told_on_stderr_in_the_log_and_undone_by_undo(
    repo: Path, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(AGENT_SCRIPT)
    holdfast = Holdfast(tmp_path)
    assert holdfast._python("agent.py", "kill").code == -9
    again = holdfast._python("agent.py")

    assert again.out == "True\n"
    assert "files put back after a crash, which cut off half()" in again.err
    assert (repo / "main.py").read_text() == "print('one')"
    tree = again.err.rpartition("holdfast restore ")[2].partition(" --to")[0]
    assert f"files put back after a crash (undo: {tree})" in holdfast.ok("log")
    asked = holdfast("undo", "--dry-run")
    assert "main.py" in asked.out
    holdfast.ok("undo", "--yes")
    assert (repo / "main.py").read_text() == "half"
    assert "files as they were found" in holdfast.ok("log")
    assert "has no rollback or rewind to undo" in holdfast("undo", "--yes").err
    third = holdfast._python("agent.py")
    assert third.out == "False\n"
    assert (repo / "main.py").read_text() == "half"
