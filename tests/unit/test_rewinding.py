"""The parts of rewinding that need no program: choosing, counting, and where a session goes on."""

import difflib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CheckpointBuilder, SyncClient
from holdfast.cli.exits import Refused
from holdfast.cli.output.file_changes import lines_by_file
from holdfast.cli.output.picker import Choosing, _keys
from holdfast.cli.output.rewind_preview import command
from holdfast.coding_agents import rewinding
from holdfast.coding_agents.outside import reaches_outside
from holdfast.errors import CodingAgentError, TranscriptError
from holdfast.stores.base import SessionInfo
from holdfast.workspace import Workspace

TEXTS = ["you: Make it", "Bash npm test (failed, 3)", "patch: hello.txt", "agent: Done."]
KEYS = ["\x1b[A", "\x1b[B", "j", "k", "g", "G", "/", "\x7f", "\x1b[5~", "\x1b[6~", "x", "é", " "]


def test_arrows_and_letters_move_and_enter_chooses() -> None:
    choosing = Choosing(TEXTS)

    for key in ("j", "\x1b[B", "\x1b[B", "j", "k"):
        assert choosing.press(key) is None

    assert choosing.press("\r") == 2


def test_what_is_typed_filters_and_letters_are_letters_then() -> None:
    choosing = Choosing(TEXTS)

    for key in "/test bash":
        choosing.press(key)
    assert choosing.found == [1]
    assert choosing.press("\n") == 1
    choosing.press("\x1b")
    assert (choosing.found, choosing.sought) == ([0, 1, 2, 3], "")


def test_nothing_is_chosen_where_nothing_was_found() -> None:
    choosing = Choosing(TEXTS)

    for key in "/nothing at all":
        choosing.press(key)

    assert choosing.press("\r") is None


@pytest.mark.parametrize("key", ["q", "\x1b", "\x04"])
def test_leaving_is_refusing(key: str) -> None:
    with pytest.raises(Refused):
        Choosing(TEXTS).press(key)


@given(st.lists(st.sampled_from(KEYS)), st.integers(1, 12), st.integers(0, 30))
def test_whatever_is_pressed_the_place_is_one_that_is_seen(
    keys: list[str], height: int, number: int
) -> None:
    choosing = Choosing([f"step {i}" for i in range(number)])

    for key in keys:
        choosing.press(key)
        seen = choosing.seen(height)
        assert len(seen) == min(height, len(choosing.found))
        assert choosing.at in seen or not choosing.found


@given(st.lists(st.sampled_from([*KEYS, "\x1bOA", "\x1b[1;5A", "😀"])))
def test_keys_come_out_as_they_were_typed_however_they_arrive(keys: list[str]) -> None:
    ours, its = os.pipe()
    data = "".join(keys).encode()
    with os.fdopen(its, "wb") as file:
        file.write(data)
    try:
        assert list(_keys(ours)) == keys
    finally:
        os.close(ours)


line = st.text("ab+-@\\ ", max_size=4)


@given(st.lists(line), st.lists(line))
def test_lines_that_came_and_went_are_counted(old: list[str], new: list[str]) -> None:
    before, after = ([f"{each}\n" for each in lines] for lines in (old, new))
    diff = list(difflib.unified_diff(before, after, "a/page", "b/page"))
    added = sum(each.startswith("+") for each in diff[2:])
    removed = sum(each.startswith("-") for each in diff[2:])

    assert lines_by_file("".join(diff)) == ({"page": (added, removed)} if diff else {})


def test_the_command_that_goes_on_is_typed_as_a_shell_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "it's $HOME; rm -rf"

    typed = command(["claude", "--resume", "a b"], folder)

    assert shlex.split(typed) == ["cd", str(folder), "&&", "claude", "--resume", "a b"]
    assert command(["claude", "--resume", "x"], Path.cwd()) == "claude --resume x"


@pytest.mark.parametrize(
    ("tool", "name", "reaches"),
    [
        ("Bash", "Bash git push origin main", True),
        ("run_shell_command", "run_shell_command npm publish", True),
        ("Bash", "Bash cd x && curl -d @y https://z", True),
        ("Bash", "Bash npm test", False),
        ("Bash", "Bash cat curls.txt", False),
        ("Write", "Write curl", False),
        ("mcp__tickets__close", "mcp__tickets__close", True),
        (None, "you: git push", False),
    ],
)
def test_what_reached_outside_is_known_by_its_name(
    tool: str | None, name: str, reaches: bool
) -> None:
    info: Any = SimpleNamespace(metadata={} if tool is None else {"tool": tool}, step_name=name)

    assert reaches_outside(info) is reaches


@pytest.fixture
def client() -> Iterator[SyncClient]:
    with SyncClient.memory() as client:
        yield client


def recorded(client: SyncClient, state: Any, **more: Any) -> SessionInfo:
    """A session with one checkpoint, as a hook would have recorded it."""
    built = CheckpointBuilder("claude-code").session(more.pop("session", "s1"))
    tags = {"program": "claude-code", "event": "Stop", **more.pop("tags", {})}
    client.put(built.execution_state(state).workspace(more.get("workspace")).tag(**tags).build())
    return client.sessions()[0]


@pytest.mark.parametrize("cwd", ["/", "/etc", "..", "\0", "", 7, None, "/no/such/directory"])
def test_where_a_program_goes_on_is_never_outside_of_the_workspace(
    client: SyncClient, tmp_path: Path, cwd: Any
) -> None:
    session = recorded(client, {"cwd": cwd})

    assert rewinding.project_of(client, session, tmp_path) == tmp_path


def test_where_a_program_goes_on_does_not_follow_a_link_out(
    client: SyncClient, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "in").mkdir()

    outside = recorded(client, {"cwd": str(root / "out")})
    inside = recorded(client, {"cwd": str(root / "in")}, session="s2")

    assert rewinding.project_of(client, outside, root) == root
    assert rewinding.project_of(client, inside, root) == root / "in"


def test_a_checkpoint_without_files_is_refused(client: SyncClient) -> None:
    session = recorded(client, {})

    with pytest.raises(CodingAgentError, match="was saved without files"):
        rewinding.look(client, session, session.head, None)


@pytest.mark.parametrize("state", [None, 7, ["x"], "text"])
def test_a_state_that_no_hook_wrote_is_refused(client: SyncClient, state: Any) -> None:
    session = recorded(client, state)

    with pytest.raises(CodingAgentError, match="where the hook keeps"):
        rewinding.look(client, session, session.head, None, with_files=False)


def test_a_subagent_that_nobody_called_is_refused(client: SyncClient, tmp_path: Path) -> None:
    with Workspace(tmp_path, store=client) as workspace:
        files = workspace.snapshot_for_checkpoint().as_value()
    tags = {"subagent_id": "a7"}
    session = recorded(client, {}, session="s1.a7", tags=tags, workspace=files)

    with pytest.raises(TranscriptError, match="where the subagent"):
        rewinding.look(client, session, session.head, None)
