"""What is kept of an event, and of which events nothing is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Snapshot, SyncClient, Workspace
from holdfast.client.with_files import snapshot_of
from holdfast.coding_agents.keeping import keep
from holdfast.coding_agents.recorder import Recorder
from holdfast.coding_agents.told import Moment, Told


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a file."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "page.html").write_text("one\n")
    return folder


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "store.db") as made:
        yield made


@pytest.fixture
def recorder(client: SyncClient, project: Path) -> Iterator[Recorder]:
    with Workspace(project, store=client) as workspace:
        yield Recorder(client, workspace)


def told(moment: Moment = Moment.CALL, **more: Any) -> Told:
    """An event of Claude Code."""
    return Told(program="claude-code", session="s", event="PostToolUse", moment=moment, **more)


def steps(client: SyncClient, session: str = "s") -> list[str | None]:
    found = client.find(agent_id="claude-code", session_id=session)
    return [info.step_name for info in reversed(found)]


def test_calls_that_only_read_are_kept_when_files_have_changed(
    recorder: Recorder, client: SyncClient, project: Path
) -> None:
    reading = told(tool="Read", input={"file_path": "page.html"})
    recorder.record(told(Moment.PROMPT, prompt="Look at it"))

    assert recorder.record(reading).checkpoint_id is None
    (project / "page.html").write_text("edited beside it\n")
    assert recorder.record(reading).checkpoint_id is not None
    assert recorder.record(reading).checkpoint_id is None

    assert steps(client) == ["you: Look at it", "Read page.html"]


def test_nothing_is_kept_of_a_call_that_only_starts_a_subagent(
    recorder: Recorder, client: SyncClient, project: Path
) -> None:
    start = Told(
        program="codex", session="s", event="PostToolUse", moment=Moment.CALL, tool="spawn_agent"
    )
    recorder.record(told(Moment.PROMPT, prompt="Have it done"))
    (project / "page.html").write_text("by the subagent, meanwhile\n")

    assert recorder.record(start).checkpoint_id is None


def test_a_first_event_is_kept_whatever_it_is(recorder: Recorder) -> None:
    assert recorder.record(told(tool="Read")).checkpoint_id is not None


def test_a_recorder_that_begins_anew_knows_what_the_head_holds(
    client: SyncClient, project: Path
) -> None:
    for _ in range(2):
        with Workspace(project, store=client) as workspace:
            recorder = Recorder(client, workspace)
            recorder.record(told(tool="Read"))

    assert len(steps(client)) == 1


def test_nothing_is_kept_of_starts_and_of_calls_of_our_own(
    recorder: Recorder, client: SyncClient, project: Path
) -> None:
    recorder.record(told(Moment.START))
    (project / "page.html").write_text("two\n")
    recorder.record(told(tool="mcp__holdfast__checkpoint"))

    assert steps(client) == []


def test_a_subagent_has_a_session_beside_its_parent(recorder: Recorder, client: SyncClient) -> None:
    begun = recorder.record(told(Moment.PROMPT, prompt="Go"))
    first = recorder.record(told(tool="Write", subagent_id="a1", subagent_type="helper"))
    recorder.record(told(tool="Bash", subagent_id="a1"))
    recorder.record(told(tool="Agent"))

    assert first.session_id == "s.a1"
    assert steps(client, "s.a1") == ["Write", "Bash"]
    assert steps(client) == ["you: Go", "Agent"]
    assert first.checkpoint_id is not None
    assert client.restore(first.checkpoint_id).parent_id == begun.checkpoint_id


def test_an_event_that_is_told_again_is_kept_once(recorder: Recorder, client: SyncClient) -> None:
    first = recorder.record(told(tool="Bash"), event_id="e1")
    recorder.record(told(tool="Bash"), event_id="e2")
    again = recorder.record(told(tool="Bash"), event_id="e1")

    assert again.checkpoint_id == first.checkpoint_id
    assert len(steps(client)) == 2


def test_an_event_of_a_hook_that_is_installed_twice_is_kept_once(
    recorder: Recorder, client: SyncClient, project: Path
) -> None:
    def codex(**more: Any) -> Told:
        given = {"event": "PostToolUse", "moment": Moment.CALL, "turn_id": "t1", **more}
        return Told(program="codex", session="s", **given)

    prompt = {"event": "UserPromptSubmit", "moment": Moment.PROMPT}
    for said in ("First", "First", "and second"):
        recorder.record(codex(**prompt, prompt=said))
    for call in ("c1", "c1", "c2"):
        recorder.record(codex(tool="Bash", call_id=call))
    (project / "page.html").write_text("two\n")
    recorder.record(codex(tool="Bash", call_id="c2"))

    found = client.find(agent_id="codex", session_id="s")
    names = [info.step_name for info in reversed(found)]
    assert names == ["you: First", "you: and second", "Bash", "Bash", "Bash"]


def test_a_secret_is_hidden_before_a_name_is_cut(recorder: Recorder, client: SyncClient) -> None:
    url = "https://x-access-token:ghp_" + "a" * 36 + "@github.com/someone/something"
    recorder.record(told(tool="Bash", input={"command": f"git clone --depth 1 {url}"}))

    (name,) = steps(client)
    assert name is not None
    assert "aaa" not in name


def test_no_secret_is_kept_wherever_it_was_told(
    recorder: Recorder, client: SyncClient, project: Path, tmp_path: Path
) -> None:
    secret = "ghp_" + "a" * 36
    transcript = tmp_path / "chat.jsonl"
    transcript.write_text(f'{{"type": "user", "message": "{secret}"}}\n')
    done = recorder.record(
        told(
            tool="Bash",
            input={"command": f"TOKEN={secret} run"},
            output={"stdout": secret},
            error=secret,
            last_message=secret,
            transcript=str(transcript),
        )
    )

    assert done.checkpoint_id is not None
    kept = client.restore(done.checkpoint_id)
    assert secret not in repr((kept.execution_state, kept.metadata, kept.step_name))
    assert "***" in repr(kept.execution_state["input"])


def test_failures_are_in_the_name(recorder: Recorder, client: SyncClient) -> None:
    recorder.record(told(tool="Write", input={"file_path": "x" * 100}, error="no room"))

    (name,) = steps(client)
    assert name is not None
    assert name.endswith("… (failed)")
    assert len(name) == 60


class BusyWorkspace(Workspace):
    """Files beside which another call ends as soon as they were looked at."""

    rollout: Path

    def snapshot_for_checkpoint(self, *args: Any, **more: Any) -> Snapshot:
        found = super().snapshot_for_checkpoint(*args, **more)
        Path(self.path, "other.txt").write_text("made\n")
        with self.rollout.open("a") as file:
            file.write('{"type": "event_msg", "payload": "other"}\n')
        return found


@pytest.mark.parametrize("way", ["Bash", "view_image", "rewind"])
def test_a_call_that_ends_meanwhile_is_not_told_as_done_without_what_it_did(
    client: SyncClient, project: Path, tmp_path: Path, way: str
) -> None:
    rollout = tmp_path / "rollout.jsonl"
    rollout.write_text('{"type": "session_meta", "payload": {"id": "t"}}\n')
    of_codex = {"program": "codex", "session": "s", "transcript": str(rollout)}
    with Workspace(project, store=client) as workspace:
        begun = Told(event="UserPromptSubmit", moment=Moment.PROMPT, prompt="Go", **of_codex)
        Recorder(client, workspace).record(begun)
    (project / "page.html").write_text("two\n")

    with BusyWorkspace(project, store=client) as workspace:
        workspace.rollout = rollout
        if way == "rewind":
            keep(client, workspace, client.sessions()[0], "before rewind", None)
        else:
            call = Told(event="PostToolUse", moment=Moment.CALL, tool=way, **of_codex)
            Recorder(client, workspace).record(call)
        made, _ = client.find(agent_id="codex", session_id="s")
        files = snapshot_of(client, made)
        assert files is not None
        is_done = "other.txt" in {each.path for each in workspace.ls(files)}

    kept = client.restore(made.checkpoint_id).execution_state["conversation"]
    is_told = any(each["payload"] == "other" for each in kept["entries"])
    assert is_done or not is_told
