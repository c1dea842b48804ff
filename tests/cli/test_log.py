"""holdfast log: lists and trees."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast import StillWaitingError, SyncClient
from holdfast.cli.output.graph import draw, newest_first
from tests.cli.kit import Holdfast, golden, normal


def test_a_tree_shows_branches_names_ages_plans_sizes_and_marks(project: Holdfast) -> None:
    golden("log-graph", normal(project.ok("log", "--graph", "fix-42")))


def test_a_list_shows_one_session_newest_first(project: Holdfast) -> None:
    golden("log", normal(project.ok("log", "fix-42")))


def test_a_tree_can_be_drawn_without_unicode(project: Holdfast) -> None:
    shown = project.ok("log", "--graph", "fix-42", PYTHONUTF8="0", PYTHONIOENCODING="ascii")

    golden("log-graph-ascii", normal(shown))


def test_without_a_session_the_newest_is_shown(project: Holdfast) -> None:
    with SyncClient.sqlite(project.directory / ".holdfast" / "holdfast.db") as client:
        client.save("coder", execution_state={}, session_id="bolder", step_name="newer")

    header, first = project.ok("log").splitlines()[:2]

    assert header.startswith("coder/bolder  3 checkpoints  .holdfast/holdfast.db")
    assert "newer" in first


def test_the_first_line_says_how_the_session_stands(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    path = holdfast.directory / ".holdfast" / "holdfast.db"

    def standing(session: str) -> object:
        said = holdfast.ok("log", session).splitlines()[0]
        told = holdfast.json("log", session)["session"]["standing"]
        assert (told or "") in said
        return told

    with SyncClient.sqlite(path) as client:
        with client.session("coder", session_id="done") as run:
            assert standing("done") == "running"
            run.state["x"] = 1
        with suppress(ValueError), client.session("coder", session_id="broken"):
            raise ValueError
        client.save("coder", execution_state={}, session_id="plain")
        with (
            suppress(StillWaitingError),
            client.session(
                "coder", session_id="asking", approval="wait", approval_timeout=0
            ) as run,
        ):
            run.call(print, "x", effect="irreversible")
        client.handoff(client.timeline("coder", "done")[0].checkpoint_id, "reviewer")

    assert standing("broken") == "failed"
    assert standing("plain") is None
    assert standing("asking") == "waiting"
    assert standing("done") == "handed off"


def test_files_are_counted_with_their_lines(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    page = holdfast.directory / "page"
    page.write_text("one\ntwo\n")
    holdfast.ok("snapshot", "--session", "s", "-m", "first")
    page.write_text("one\n2\nthree\n")
    (holdfast.directory / "new").write_text("x\n")
    holdfast.ok("snapshot", "--session", "s", "-m", "second")

    assert "second  ~2 files +3 −1" in holdfast.ok("log", "s")
    newest, oldest = holdfast.json("log", "s")["checkpoints"]
    assert newest["files"] == {"files": 2, "added": 3, "removed": 1}
    assert oldest["files"] is None


def test_a_limit_tells_how_many_are_left_out(project: Holdfast) -> None:
    lines = project.ok("log", "fix-42", "-n", "3").splitlines()

    assert len(lines) == 5
    assert lines[4] == "… and 10 older (-n says how many are shown)"


def test_all_sessions_are_shown_if_that_is_asked(project: Holdfast) -> None:
    shown = project.json("log", "--all")["checkpoints"]

    assert {each["session_id"] for each in shown} == {"fix-42", "bolder"}


def test_marks_and_progress_are_in_the_json(project: Holdfast) -> None:
    shown = {each["step_name"]: each for each in project.json("log", "fix-42")["checkpoints"]}

    assert shown["handoff_to_reviewer"]["markers"] == ["head", "handed off"]
    assert shown["test: failed"]["markers"] == ["failed"]
    assert shown["before rollback"]["markers"] == ["rolled back"]
    assert shown["test: failed"]["progress"] == {"done": 2, "total": 3}
    assert shown["start"]["progress"] is None


def test_ids_that_are_shown_are_found_by_the_library(project: Holdfast) -> None:
    _, *lines = project.ok("log", "--all").splitlines()
    ids = [each["checkpoint_id"] for each in project.json("log", "--all")["checkpoints"]]

    with SyncClient.sqlite(project.directory / ".holdfast" / "holdfast.db") as client:
        found = [client.restore(line.split()[1], on_unknown="raw") for line in lines]

    assert [each.checkpoint_id for each in found] == ids


def test_columns_line_up(project: Holdfast) -> None:
    _, *lines = project.ok("log", "--graph", "fix-42").splitlines()

    assert len({line.rindex("  ", 0, line.rindex("/")) for line in lines if "/3" in line}) == 1
    assert len({len(line) for line in lines if "ago" in line}) == 1


def test_an_empty_store_says_so(holdfast: Holdfast) -> None:
    holdfast.ok("init")

    assert holdfast.ok("log") == "no checkpoints yet\n"
    assert holdfast.json("log") == {"session": None, "checkpoints": []}


def test_names_cannot_steer_the_terminal(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        client.save("a", execution_state={}, session_id="s\x1b[31m", step_name="\x1b]0;owned\x07\n")

    done = holdfast("log", "--all")

    assert "\x1b" not in done.out
    assert "\\x1b]0;owned\\x07⏎" in done.out


def test_a_file_store_is_read_too(tmp_path: Path) -> None:
    holdfast = Holdfast(tmp_path)
    with (
        SyncClient.file(tmp_path / "kept") as client,
        client.session("coder", session_id="one") as run,
    ):
        for task in run.tasks.plan("only").remaining():
            with task:
                pass

    shown = json.loads(holdfast.ok("log", "--store", "kept", "--json"))["checkpoints"]

    assert shown[0]["progress"] == {"done": 1, "total": 1}


def drawn(nodes: dict[str, str | None], first: str | None = None) -> list[str]:
    ordered = newest_first(nodes, list(nodes))
    return [f"{row.drawing} {row.key or ''}".rstrip() for row in draw(ordered, {}, first)]


@pytest.mark.parametrize(
    ("nodes", "first", "rows"),
    [
        ({"b": "a", "a": None}, None, ["○ b", "○ a"]),
        ({"c": "a", "b": "a", "a": None}, None, ["○ c", "│ ○ b", "├─╯", "○ a"]),
        ({"c": "a", "b": "a", "a": None}, "b", ["  ○ c", "○ │ b", "├─╯", "○ a"]),
        (
            {"d": "a", "c": "a", "b": "a", "a": None},
            None,
            ["○ d", "│ ○ c", "│ │ ○ b", "├─┴─╯", "○ a"],
        ),
        ({"b": None, "a": None}, None, ["○ b", "○ a"]),
        ({"b": "gone", "a": "b"}, None, ["○ a", "○ b"]),
        ({"b": "a", "a": "b"}, None, ["○ b", "○ a"]),
    ],
    ids=["line", "fork", "fork with a first", "three", "two roots", "clock set back", "circle"],
)
def test_lanes_lead_to_parents(
    nodes: dict[str, str | None], first: str | None, rows: list[str]
) -> None:
    assert drawn(nodes, first) == rows
