"""Files go with the run: put back after a cut, rolled back, copied to forks, adopted."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, DivergenceError, InvalidArgumentError
from holdfast.workspace import Workspace
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, cut_at, killed, power_cut


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Stores that keep chunks."""
    from tests.clients import url_of

    return url_of(request.param, tmp_path)


def write(path: Path, text: str) -> str:
    """A tool that changes a file."""
    path.write_text(text)
    return text


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_an_interrupted_call_half_wrote_is_undone(session: Open, repo: Path) -> None:
    def half(path: Path) -> None:
        path.write_text("half")
        (repo / "left.tmp").write_text("left")
        raise PowerCut

    def program(run: Any, then: Any) -> None:
        for task in run.tasks.plan("write").remaining():
            with task:
                run.call(write, repo / "main.py", "print('two')")
                run.call(then, repo / "other.py")

    with power_cut(), session(workspace=repo) as run:
        program(run, half)
    assert names(repo) == ["left.tmp", "main.py", "other.py"]

    with session(workspace=repo, on_divergence="live") as run:
        assert run.workspace.path == str(repo)
        assert names(repo) == ["main.py"]  # as after the last call that was recorded
        assert (repo / "main.py").read_text() == "print('two')"
        program(run, lambda path: path.write_text("whole"))
    assert (repo / "other.py").read_text() == "whole"


def test_files_are_those_of_the_head_where_no_call_was_recorded_since(
    session: Open, repo: Path
) -> None:
    with killed(), session(workspace=repo) as run:
        run.checkpoint("good")
        (repo / "main.py").unlink()
        raise PowerCut

    with session(workspace=repo):
        assert (repo / "main.py").read_text() == "print('one')"


def test_files_go_back_with_the_state_or_alone(session: Open, repo: Path) -> None:
    with session(workspace=repo) as run:
        run.state["n"] = 1
        run.checkpoint("good")
        run.state["n"] = 2
        run.call(write, repo / "main.py", "broken")
        (repo / "new.py").write_text("new")

        run.rollback(to="good", scope="files")
        assert (run.state, names(repo)) == ({"n": 2}, ["main.py"])
        run.undo()
        assert names(repo) == ["main.py", "new.py"]
        run.rollback(to="good", scope="state")
        assert (run.state, (repo / "main.py").read_text()) == ({"n": 1}, "broken")
        run.undo()
        run.rollback(to="good")
        assert (run.state, (repo / "main.py").read_text()) == ({"n": 1}, "print('one')")
        run.undo()
        assert (run.state, (repo / "main.py").read_text()) == ({"n": 2}, "broken")


@pytest.mark.parametrize(
    "point", ["run:rollback_begun", "run:before_checkpoint", "run:rolled_back"]
)
def test_a_rollback_cut_off_leaves_files_and_state_agreeing(
    session: Open, repo: Path, point: str
) -> None:
    with power_cut(), session(workspace=repo) as run:
        run.checkpoint("good")
        run.state["n"] = 1
        run.call(write, repo / "main.py", "broken")
        with cut_at(point, 2 if point == "run:before_checkpoint" else 1):
            run.rollback(to="good")
        raise PowerCut

    with session(workspace=repo) as run:
        assert (run.state, (repo / "main.py").read_text()) == ({}, "print('one')")


def test_forks_have_copies_of_the_files_and_one_is_adopted(
    session: Open, repo: Path, tmp_path: Path
) -> None:
    with session(workspace=repo) as run:
        one, two = run.fork(names=["one", "two"])
        (there,) = run.fork(paths=[tmp_path / "there"])
        for fork in (one, two, there):
            path = Path(fork.workspace.path)
            assert names(path) == ["main.py"]
            fork.call(write, path / "main.py", fork.session_id)
        assert Path(one.workspace.path) == tmp_path / "repo.one"
        assert Path(there.workspace.path) == tmp_path / "there"
        assert (repo / "main.py").read_text() == "print('one')"

        run.adopt(two)
        assert (repo / "main.py").read_text() == "fix-42.two"
    with session(workspace=repo):
        assert (repo / "main.py").read_text() == "fix-42.two"


@pytest.mark.parametrize("beside", [True, False], ids=["beside the workspace", "for a while"])
def test_strategies_have_copies_of_the_files_and_are_compared(
    session: Open,
    client: Any,
    repo: Path,
    tmp_path: Path,
    beside: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    def longer(run: Any) -> int:
        return len(write(Path(run.workspace.path) / "main.py", "a much longer text"))

    def shorter(run: Any) -> int:
        return len(write(Path(run.workspace.path) / "main.py", "short"))

    with session(workspace=repo) as run:
        base = run.head
    ways = {"longer": longer, "shorter": shorter}
    options = {"workspace": repo} if beside else {}
    client.explore(base, ways, **options)
    found = client.explore(base, ways, **options)

    assert [each.error for each in found] == [None, None]
    assert not list((tmp_path / "temporary").glob("holdfast-explore-*"))
    assert len(list(tmp_path.glob("repo.*"))) == (4 if beside else 0)
    assert found.winner.name == "longer"
    assert [str(each.files) for each in found] == ["M main.py", "M main.py"]
    assert found.as_dict()["outcomes"][0]["file_changes"] == 1
    assert (repo / "main.py").read_text() == "print('one')"
    with session(workspace=repo) as run:
        run.adopt(found.winner)
        assert (repo / "main.py").read_text() == "a much longer text"


def test_a_session_opened_without_its_files_keeps_them_for_the_next(
    session: Open, client: Any, repo: Path, tools: Tools
) -> None:
    with session(workspace=repo) as run:
        run.checkpoint("with files")
    with session() as run:
        assert run.workspace is None
        run.call(tools.read)
    (repo / "main.py").write_text("changed by hand")
    with session(workspace=repo) as run:
        run.rollback(to="with files")
        assert (repo / "main.py").read_text() == "print('one')"
    assert client.latest(AGENT, SESSION).workspace is not None


def test_replay_shows_which_files_changed(session: Open, client: Any, repo: Path) -> None:
    with session(workspace=repo) as run:
        run.call(write, repo / "new.py", "new")
        run.checkpoint("written")

    steps = {step.checkpoint.step_name: step for step in client.replay(SESSION)}
    assert str(steps["written"].files) == "A new.py"
    assert "   A new.py" in str(steps["written"]).splitlines()
    assert steps["written"].tree_id != steps["start"].tree_id
    assert not steps["end"].files


def test_who_changes_files_and_makes_no_calls_again_is_told(
    session: Open, repo: Path, tools: Tools
) -> None:
    with power_cut(), session(workspace=repo) as run:
        run.call(tools.read, "x")
        raise PowerCut
    with session(workspace=repo):  # only looks
        pass
    with pytest.raises(DivergenceError), session(workspace=repo):
        (repo / "main.py").write_text("edited")


def test_files_in_another_store_are_refused(session: Open, repo: Path) -> None:
    with (
        Workspace(repo, "memory://") as elsewhere,
        pytest.raises(InvalidArgumentError, match="open the workspace on the client"),
        session(workspace=elsewhere) as run,
    ):
        run.checkpoint("one")


async def test_opening_a_run_with_files_blocks_no_event_loop(repo: Path, tmp_path: Path) -> None:
    async with Client.sqlite(tmp_path / "agent.db") as client:
        with Workspace(repo, client) as workspace, workspace._local.alone():
            opening = asyncio.create_task(
                client.session(AGENT, session_id=SESSION, workspace=repo).__aenter__()
            )
            for _ in range(20):  # it waits for the lock, and the loop goes on
                await asyncio.sleep(0.005)
            assert not opening.done()
        run = await asyncio.wait_for(opening, 30)
        assert (Path(run.workspace.path) / "main.py").exists()
        await run.close()


@pytest.mark.parametrize("wrong", [7, b"repo", ["repo"], object()])
def test_a_workspace_is_one_or_the_path_of_a_directory(session: Open, wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="workspace is a Workspace or the path of a dir"):
        session(workspace=wrong)
