"""holdfast rewind: files and conversation of a coding agent, taken back together."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast import CheckpointBuilder, SyncClient
from holdfast.coding_agents import programs
from holdfast.coding_agents.events import read
from holdfast.coding_agents.recorder import Recorder
from holdfast.system.crash_points import REWIND_POINTS
from holdfast.system.terminal_text import width
from holdfast.workspace import Workspace
from tests.cli.kit import SECONDS, Done, Holdfast, environment
from tests.cli.talks import ROOT, TRANSCRIPT
from tests.cli.test_json import check

FIRST, SECOND = "Make the page", "Now make it blue"


class Talk(Holdfast):
    """A program with hooks at work in a project, and the command beside it."""

    def __init__(self, directory: Path, session: str = "s1") -> None:
        super().__init__(directory)
        self.session = session
        self.talks = directory.parent / "talks"
        self.talks.mkdir(exist_ok=True)
        self.transcript = self.talks / f"{session}.jsonl"

    def _variables(self, given: dict[str, str]) -> dict[str, str]:
        path = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        return environment(PYTHONPATH=path, TALKS=str(self.talks), **given)

    def _python(self, *arguments: str, given: str = "", **variables: str) -> Done:
        words = ["-m", "tests.cli.talks", *arguments[2:]]
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.directory,
            env=self._variables(variables),
            input=given,
            capture_output=True,
            text=True,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def says(self, role: str, text: str, **more: str) -> None:
        """Add a message to the conversation, as the program does."""
        entry = {"message": {"role": role, "content": text}, **more}
        with self.transcript.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def tells(self, moment: str, **more: Any) -> str:
        """Tell the hook; return the checkpoint."""
        told: Any = {
            "session": self.session,
            "event": moment,
            "cwd": str(self.directory),
            "transcript": str(self.transcript),
            **more,
        }
        told = read(told, programs.program("generic"))
        os.chdir(self.directory)  # the store is looked for from there
        with SyncClient.open() as client, Workspace(self.directory, store=client) as workspace:
            made = Recorder(client, workspace).record(told).checkpoint_id
        assert made is not None
        return made

    def asks(self, prompt: str) -> str:
        made = self.tells("prompt", prompt=prompt)
        self.says("user", prompt)
        return made

    def calls(self, tool: str, command: str, call_id: str, **more: Any) -> str:
        """A tool was used; its result is in the conversation only later, as with real programs."""
        self.says("assistant", f"{tool} {command}")
        made = self.tells("call", tool=tool, input={"command": command}, call_id=call_id, **more)
        self.says("tool", f"did {command}", answers=call_id)
        return made

    def ends(self, text: str) -> str:
        self.says("assistant", text)
        return self.tells("end", last_message=text)

    def spoken(self, path: Path | None = None) -> list[str]:
        lines = (path or self.transcript).read_text().splitlines()
        return [json.loads(each)["message"]["content"] for each in lines]

    def files(self) -> dict[str, str]:
        return {
            each.relative_to(self.directory).as_posix(): each.read_text()
            for each in sorted(self.directory.rglob("*"))
            if each.is_file() and ".holdfast" not in each.parts
        }


STEPS = ("first", "write", "broke", "end", "second", "blue", "push", "last")


@pytest.fixture(autouse=True)
def talks_are_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The hook of these tests runs in their own process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(programs, "transcript", lambda name: TRANSCRIPT)


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    """A session of two prompts."""
    project = tmp_path / "project"
    project.mkdir()
    talk = Talk(project)
    page = project / "page.html"
    talk.points = points = {}  # type: ignore[attr-defined]
    talk.ok("init")
    (project / "mine.txt").write_text("mine\n")
    points["first"] = talk.asks(FIRST)
    page.write_text("one\ntwo\n")
    points["write"] = talk.calls("Write", "page.html", "c1")
    (project / "half").write_text("x\n")
    points["broke"] = talk.calls("bash", "npm test", "c2", error="exit 3")
    points["end"] = talk.ends("It is made.")
    points["second"] = talk.asks(SECOND)
    page.write_text("one\nblue\nthree\n")
    points["blue"] = talk.calls("Edit", "page.html", "c3")
    (project / "half").unlink()
    points["push"] = talk.calls("bash", "git push origin main", "c4")
    points["last"] = talk.ends("It is blue.")
    return talk


def at(talk: Talk, name: str) -> str:
    return str(talk.points[name])  # type: ignore[attr-defined]


EXPECTED: dict[str, tuple[dict[str, str], list[str]]] = {
    "first": ({}, []),
    "write": ({"page.html": "one\ntwo\n"}, [FIRST, "Write page.html", "did page.html"]),
    "broke": (
        {"page.html": "one\ntwo\n", "half": "x\n"},
        [FIRST, "Write page.html", "did page.html", "bash npm test", "did npm test"],
    ),
}
EXPECTED["end"] = (EXPECTED["broke"][0], [*EXPECTED["broke"][1], "It is made."])
EXPECTED["second"] = EXPECTED["end"]


@pytest.mark.parametrize("point", list(EXPECTED))
def test_files_and_conversation_go_back_together(talk: Talk, point: str) -> None:
    files, spoken = EXPECTED[point]
    before = talk.files()
    old = talk.transcript.read_bytes()

    done = talk.json("rewind", at(talk, point), "--yes")

    check("rewind", json.dumps(done))
    assert talk.files() == {"mine.txt": "mine\n", **files}
    new = done["new_session_id"]
    assert done["conversation"]["entries"] == len(spoken)
    if spoken:
        assert done["resume"] == ["talk", "--resume", new]
        assert talk.spoken(Path(done["conversation"]["path"])) == spoken
    else:
        assert done["resume"] == ["talk", "--new", new]
        assert done["conversation"]["path"] is None
    assert done["prompt"] == {"first": FIRST, "second": SECOND}.get(point)
    assert (done["session_id"], done["target"]) == ("s1", at(talk, point))
    assert talk.transcript.read_bytes() == old
    kept = talk.json("show", done["from"])
    assert (kept["checkpoint"]["step_name"], kept["checkpoint"]["session_id"]) == (
        "before rewind",
        "s1",
    )
    talk.ok("restore", done["from"], "--to", "../as-it-was")
    assert Talk(talk.directory.parent / "as-it-was").files() == before


def test_the_next_events_join_the_fork_and_the_log_draws_it(talk: Talk) -> None:
    done = talk.json("rewind", at(talk, "write"), "--yes")
    new = Talk(talk.directory, done["new_session_id"])
    new.asks("Make it red")

    log = new.json("log")
    assert log["session"]["session_id"] == new.session
    assert [each["step_name"] for each in log["checkpoints"]] == [
        "you: Make it red",
        "rewound to Write page.html",
    ]
    fork = log["checkpoints"][1]
    assert (fork["parent_id"], fork["forked_from"]) == (at(talk, "write"), "s1")
    assert fork["metadata"]["rewound_from"] == done["from"]
    graph = talk.ok("log", "--graph")
    assert re.search(r"─╯", graph)
    assert "forked from s1@" in graph
    assert "before rewind" in graph


def test_a_rewind_says_what_it_does_and_how_to_go_on(talk: Talk) -> None:
    said = talk.ok("rewind", at(talk, "second"), "--yes")

    assert "another program, session s1, goes back to you: Now make it blue (" in said
    assert f"  files         2 written, 0 removed in {talk.directory}\n" in said
    assert "    write  page.html  +1 −2\n" in said
    assert "    write  half  +1 −0\n" in said
    assert (
        "  conversation  ends before you: Now make it blue, as a new session; 6 messages are left "
        "out, 1 prompt among them\n"
    ) in said
    assert "  stays done    what 1 shell command since then did outside of the directory\n" in said
    assert "    bash git push origin main\n" in said
    assert "still at work" not in said
    assert re.search(r"\ngo on with: talk --resume [0-9a-f-]{36}\n", said)
    assert f"the prompt was:\n  {SECOND}\n" in said


def test_the_command_that_goes_on_is_quoted_and_leads_there(talk: Talk) -> None:
    elsewhere = talk.directory.parent / "else where"
    elsewhere.mkdir()
    store = str(talk.directory / ".holdfast" / "holdfast.db")
    here = Talk(elsewhere)

    said = here.ok("rewind", at(talk, "write"), "--yes", "--store", store)

    assert f"go on with: cd {talk.directory} && talk --resume " in said


def test_a_program_that_was_started_below_goes_on_there(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "web app").mkdir(parents=True)
    (project / "web app" / "x").write_text("x")
    talk = Talk(project)
    talk.ok("init")
    below = {"cwd": str(project / "web app")}
    talk.tells("prompt", prompt=FIRST, **below)
    talk.says("user", FIRST)
    made = talk.calls("Write", "x", "c1", **below)

    said = talk.ok("rewind", made, "--yes")

    assert f"go on with: cd '{project}/web app' && talk --resume " in said
    new = next(each for each in talk.talks.iterdir() if each != talk.transcript)
    assert json.loads(new.read_text().splitlines()[0])["in"] == str(project / "web app")


@pytest.mark.parametrize("how", [[], ["--files"], ["--conversation"], ["--to", "../second"]])
def test_a_dry_run_changes_nothing(talk: Talk, how: list[str]) -> None:
    files, known = talk.files(), talk.json("stats")["checkpoints"]

    done = talk.json("rewind", at(talk, "write"), "--dry-run", *how)
    said = talk.ok("rewind", at(talk, "write"), "--dry-run", *how)

    check("rewind", json.dumps(done))
    assert (done["dry_run"], done["checkpoint_id"], done["new_session_id"]) == (True, None, None)
    assert "goes back to Write page.html" in said
    assert (talk.files(), talk.json("stats")["checkpoints"]) == (files, known)
    assert list(talk.talks.iterdir()) == [talk.transcript]
    assert not (talk.directory.parent / "second").exists()


def test_without_yes_nothing_is_done(talk: Talk) -> None:
    files = talk.files()

    refused = talk("rewind", at(talk, "write"))

    assert refused.code == 5
    assert "goes back to Write page.html" in refused.out
    assert "pass --yes" in refused.err
    assert talk.files() == files
    assert list(talk.talks.iterdir()) == [talk.transcript]


def test_files_alone_go_back_in_the_session_as_it_is(talk: Talk) -> None:
    before = talk.files()

    done = talk.json("rewind", at(talk, "write"), "--files", "--yes")

    check("rewind", json.dumps(done))
    assert talk.files() == {"mine.txt": "mine\n", **EXPECTED["write"][0]}
    assert (done["new_session_id"], done["conversation"], done["resume"]) == (None, None, None)
    assert list(talk.talks.iterdir()) == [talk.transcript]
    assert talk.json("log")["checkpoints"][0]["step_name"] == "files of Write page.html"
    talk.ends("Where am I?")
    assert talk.json("sessions")["sessions"][0]["session_id"] == "s1"
    check("undo", talk.ok("undo", "--yes", "--json"))
    assert talk.files() == before


def test_the_conversation_alone_goes_back(talk: Talk) -> None:
    (talk.directory / "new.txt").write_text("by hand\n")
    before = talk.files()

    done = talk.json("rewind", at(talk, "write"), "--conversation", "--yes")

    assert talk.files() == before
    assert done["files"] is None
    assert talk.spoken(Path(done["conversation"]["path"])) == EXPECTED["write"][1]
    # What is done next is compared with the files as they are, not as they were there.
    new = Talk(talk.directory, done["new_session_id"])
    new.asks("Go on")
    assert new.json("log")["checkpoints"][0]["files"] is None


def test_all_of_it_in_a_new_directory(talk: Talk, state_of_the_user: Path) -> None:
    before = talk.files()

    done = talk.json("rewind", at(talk, "write"), "--to", "../second try", "--yes")

    second = talk.directory.parent / "second try"
    assert talk.files() == before
    assert (done["files"], done["workspace"]) == (None, str(second))
    new = Talk(second, done["new_session_id"])
    assert new.files() == {"mine.txt": "mine\n", **EXPECTED["write"][0]}
    assert talk.json("log", "s1")["checkpoints"][0]["step_name"] == "agent: It is blue."
    first = json.loads(Path(done["conversation"]["path"]).read_text().splitlines()[0])
    assert first["in"] == str(second)
    new.asks("Go on there")
    joined = talk.json("log", new.session)["checkpoints"]
    assert [each["step_name"] for each in joined] == [
        "you: Go on there",
        "rewound to Write page.html",
    ]
    assert talk("rewind", at(talk, "write"), "--to", "../second try", "--yes").code == 2
    refused = new("undo", "--yes")
    assert (refused.code, "a directory of its own" in refused.err) == (5, True)


def test_a_session_forked_into_a_directory_begins_at_the_fork(talk: Talk) -> None:
    fork = talk.json("fork", at(talk, "write"), "--as", "bolder", "--to", "../bolder")
    assert fork["linked"] is True
    there = Talk(talk.directory.parent / "bolder", "s2")

    there.asks("Be bold")
    later = Talk(there.directory, "s3")
    later.asks("Another one")

    begun = talk.json("log", "s2")["checkpoints"][0]
    assert begun["parent_id"] == fork["checkpoint_id"]
    assert talk.json("log", "s3")["checkpoints"][0]["parent_id"] is None


def test_what_is_edited_by_hand_is_kept_and_comes_back(talk: Talk) -> None:
    (talk.directory / "mine.txt").write_text("edited\n")
    (talk.directory / "new.txt").write_text("new\n")
    before = talk.files()

    talk.ok("rewind", at(talk, "write"), "--yes")
    assert "new.txt" not in talk.files()
    said = talk.ok("undo", "--yes")

    assert talk.files() == before
    assert "go on with: talk --resume s1\n" in said


def test_an_undo_is_undone_too(talk: Talk) -> None:
    before = talk.files()
    new = talk.json("rewind", at(talk, "write"), "--yes")["new_session_id"]
    rewound = talk.files()

    back = talk.json("undo", "--yes")
    check("undo", json.dumps(back))
    assert (talk.files(), back["resume"]) == (before, ["talk", "--resume", "s1"])
    again = talk.json("undo", "--yes")
    assert (talk.files(), again["resume"]) == (rewound, ["talk", "--resume", new])
    third = talk.json("undo", "--yes")
    assert (talk.files(), third["resume"]) == (before, ["talk", "--resume", "s1"])


def test_an_undo_keeps_what_the_new_session_did(talk: Talk) -> None:
    done = talk.json("rewind", at(talk, "write"), "--yes")
    new = Talk(talk.directory, done["new_session_id"])
    new.asks("Make it red")
    (talk.directory / "page.html").write_text("red\n")
    new.calls("Edit", "page.html", "n1")

    talk.ok("undo", "--yes")
    assert "red" not in talk.files()["page.html"]
    talk.ok("undo", "--yes")

    assert talk.files()["page.html"] == "red\n"


def test_a_rewind_is_undone_though_the_session_that_it_left_has_gone_on(talk: Talk) -> None:
    before = talk.files()
    talk.ok("rewind", at(talk, "write"), "--yes")
    talk.ends("Please go on with that command.")  # an agent that rewinds itself ends its turn

    done = talk.json("undo", "--yes")

    assert (talk.files(), done["resume"]) == (before, ["talk", "--resume", "s1"])
    talk.ends("Here I am again.")
    assert talk.json("log")["checkpoints"][0]["step_name"] == "agent: Here I am again."
    talk.ok("undo", "--yes")
    assert talk.files() == {"mine.txt": "mine\n", **EXPECTED["write"][0]}


def test_the_session_that_was_rewound_names_the_rewind_too(talk: Talk) -> None:
    before = talk.files()
    talk.ok("rewind", at(talk, "write"), "--session", "s1", "--yes")
    rewound = talk.files()
    other = Talk(talk.directory, "other")
    other.asks("Something else")

    for expected in (before, rewound, before):
        talk.ok("undo", "--session", "s1", "--yes")
        assert talk.files() == expected
    refused = talk("undo", "--session", "other", "--yes")
    assert (refused.code, talk.files()) == (5, before)
    assert "session 'other' has no rollback or rewind to undo" in refused.err


def test_the_newest_rewind_in_a_directory_is_undone_whoever_works_there(talk: Talk) -> None:
    before = talk.files()
    talk.ok("rewind", at(talk, "write"), "--yes")
    other = Talk(talk.directory, "other")
    other.asks("Something else")

    talk.ok("undo", "--yes")
    assert talk.files() == before

    (talk.directory / "theirs").write_text("1\n")
    first = other.calls("Write", "theirs", "o1")
    (talk.directory / "theirs").write_text("2\n")
    other.calls("Write", "theirs", "o2")
    talk.ok("rollback", first, "--yes")
    talk.asks("And more")
    talk.ok("undo", "--yes")
    assert talk.files() == {**before, "theirs": "2\n"}


def test_a_rewind_into_another_directory_is_not_undone_in_this_one(talk: Talk) -> None:
    talk.ok("rewind", at(talk, "write"), "--to", "../second", "--yes")

    for named in ((), ("--session", "s1")):
        refused = talk("undo", *named, "--yes")
        assert refused.code == 5
        assert "session 's1' has no rollback or rewind to undo" in refused.err


def test_a_conversation_that_the_program_removed_is_written_anew(talk: Talk) -> None:
    whole = talk.spoken()
    talk.ok("rewind", at(talk, "write"), "--yes")
    talk.transcript.unlink()

    dry = talk.ok("undo", "--dry-run")
    done = talk.json("undo", "--yes")

    assert "it is written as a new session" in dry
    assert talk.spoken(Path(done["conversation"]["path"])) == whole
    assert done["resume"] == ["talk", "--resume", done["new_session_id"]]
    assert not talk.transcript.exists()
    joined = Talk(talk.directory, done["new_session_id"])
    joined.ends("Here I am again.")
    steps = [each["step_name"] for each in joined.json("log")["checkpoints"]]
    assert steps == ["agent: Here I am again.", "rewind undone"]


def test_a_conversation_is_written_anew_as_often_as_it_is_gone(talk: Talk) -> None:
    before, whole = talk.files(), talk.spoken()
    talk.transcript.unlink()
    resumed = set()

    for _ in range(3):
        talk.ok("rewind", at(talk, "write"), "--session", "s1", "--yes")
        done = talk.json("undo", "--yes")
        assert talk.files() == before
        assert talk.spoken(Path(done["conversation"]["path"])) == whole
        resumed.add(done["new_session_id"])

    assert len(resumed) == 3


def test_an_undo_that_cannot_write_the_conversation_says_how_to_have_the_files(talk: Talk) -> None:
    before = talk.files()
    talk.ok("rewind", at(talk, "write"), "--yes")
    rewound = talk.files()
    shutil.rmtree(talk.talks)

    refused = talk("undo", "--yes")

    assert (refused.code, talk.files()) == (1, rewound)
    assert "the conversation cannot be written" in refused.err
    alone = re.search(
        "The files are as they were found.*: holdfast (rewind .* --files)", refused.err
    )
    assert alone is not None, refused.err
    talk.ok(*alone[1].split(), "--yes")
    assert talk.files() == before


def test_a_conversation_whose_file_is_gone_is_rewound_from_what_was_kept(talk: Talk) -> None:
    talk.transcript.unlink()

    done = talk.json("rewind", at(talk, "broke"), "--yes")

    assert talk.spoken(Path(done["conversation"]["path"])) == EXPECTED["broke"][1]


def test_a_result_that_was_never_written_is_said(talk: Talk) -> None:
    talk.says("assistant", "Write last")
    made = talk.tells("call", tool="Write", input={"path": "last"}, call_id="c9")

    done = talk.json("rewind", made, "--yes")

    assert done["note"] == "the result of the call was never written"
    assert "never written" in talk.ok("rewind", made, "--session", "s1", "--dry-run")


def test_rewinds_go_on_from_rewinds(talk: Talk) -> None:
    one = talk.json("rewind", at(talk, "second"), "--yes")
    new = Talk(talk.directory, one["new_session_id"])
    new.asks("Make it red")
    two = talk.json("rewind", at(talk, "write"), "--yes")

    assert talk.json("rewind", "Write page.html", "--dry-run")["target"] == at(talk, "write")
    assert two["session_id"] == new.session  # the one that is at work, which came from there
    assert talk.spoken(Path(two["conversation"]["path"])) == EXPECTED["write"][1]
    three = talk.json("rewind", one["checkpoint_id"], "--yes")
    assert talk.files() == {"mine.txt": "mine\n", **EXPECTED["second"][0]}
    assert talk.spoken(Path(three["conversation"]["path"])) == EXPECTED["second"][1]
    assert three["prompt"] == SECOND


def test_each_directory_has_its_own_newest_session(talk: Talk) -> None:
    done = talk.json("rewind", at(talk, "write"), "--to", "../second", "--yes")
    second = Talk(talk.directory.parent / "second", done["new_session_id"])
    second.asks("Go on there")

    assert talk.json("rewind", "@-", "--dry-run")["session_id"] == "s1"
    assert second.json("rewind", "@-", "--dry-run")["session_id"] == second.session
    talk.ok("rewind", at(talk, "end"), "--yes")
    second.asks("And more")
    talk.ok("undo", "--yes")
    assert talk.files()["page.html"] == "one\nblue\nthree\n"


@pytest.fixture
def helped(talk: Talk) -> str:
    """A subagent did something; returns its checkpoint."""
    talk.asks("Get help")
    (talk.directory / "own.txt").write_text("own\n")
    talk.calls("Write", "own.txt", "c5")
    helper = Talk(talk.directory, "s1")
    helper.transcript = talk.talks / "helper.jsonl"
    (talk.directory / "helper.txt").write_text("helped\n")
    made = helper.calls("Write", "helper.txt", "h1", subagent_id="a7", subagent_type="Explore")
    (talk.directory / "own.txt").unlink()
    talk.calls("bash", "rm own.txt", "c6")
    return made


def test_a_subagents_files_come_with_its_parents_conversation(talk: Talk, helped: str) -> None:
    said = talk.ok("rewind", helped, "--dry-run")
    done = talk.json("rewind", helped, "--yes")

    assert "those of a subagent: it is called anew" in said
    assert done["session_id"] == "s1"
    assert {"own.txt", "helper.txt"} <= talk.files().keys()
    spoken = talk.spoken(Path(done["conversation"]["path"]))
    assert spoken[-3:] == ["Get help", "Write own.txt", "did own.txt"]


def test_subagents_stand_beside_their_parents(talk: Talk, helped: str) -> None:
    shown = talk("rewind").err

    assert "Write helper.txt" in shown
    assert shown.index("bash rm own.txt") < shown.index("Write helper.txt")
    sessions = talk.ok("sessions").splitlines()
    assert re.match(r"s1 .*bash rm own.txt", sessions[0])
    assert re.match(r" {2}s1\.a7 .*Explore.*Write helper.txt", sessions[1])


def test_without_a_terminal_the_points_are_named(talk: Talk) -> None:
    refused = talk("rewind")

    assert refused.code == 2
    lines = refused.err.splitlines()
    assert "holdfast rewind ID with one of" in lines[0]
    assert [each.split("  ", 2)[2] for each in lines[1:]] == [
        "agent: It is blue.",
        "bash git push origin main",
        "Edit page.html",
        "you: Now make it blue",
        "agent: It is made.",
        "bash npm test (failed)",
        "Write page.html",
        "you: Make the page",
    ]
    for line in lines[1:]:
        assert talk("rewind", line.split()[0], "--dry-run").code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nonsense"], 3, "there is no checkpoint"),
        (["0190aaaaaaaa"], 3, "there is no checkpoint"),
        (["@~99"], 3, "goes back too far"),
        (["@-", "--session", "nobody"], 3, "there is no session"),
        (["@-", "--to", "x", "--files"], 2, "--to takes files and conversation"),
        (["@-", "--to", "."], 2, "a new directory lies outside of"),
        (["@-", "--to", ".."], 2, "is not empty"),
        (["@-", "--workspace", "nowhere"], 2, "there is no such directory"),
        (["@-", "--nonsense"], 2, "takes no --nonsense"),
        (["--json"], 2, "say where to"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(
    talk: Talk, words: list[str], code: int, said: str
) -> None:
    files = talk.files()

    refused = talk("rewind", *words, "--yes")

    assert (refused.code, said in refused.err) == (code, True), refused.err
    assert talk.files() == files


def test_a_checkpoint_of_another_session_is_not_mixed_up(talk: Talk) -> None:
    other = Talk(talk.directory, "s2")
    theirs = other.asks("Something else")

    refused = talk("rewind", theirs, "--session", "s1", "--yes")
    said = talk.ok("rewind", at(talk, "write"), "--dry-run")
    done = talk.json("rewind", at(talk, "write"), "--yes")

    assert refused.code == 2
    assert "is a checkpoint of session 's2'" in refused.err
    assert "1 checkpoint of session s2, which works in the same directory" in said
    assert done["session_id"] == "s1"


def test_a_session_that_is_still_at_work_is_said(talk: Talk) -> None:
    talk.asks("One more thing")

    assert re.search(
        r"still at work\? its last event came \d+s ago", talk.ok("rewind", "@~3", "--dry-run")
    )


def test_a_session_of_another_kind_is_rolled_back(talk: Talk) -> None:
    with SyncClient.sqlite(talk.directory / ".holdfast" / "holdfast.db") as client:
        made = client.save("coder", execution_state={"x": 1}, session_id="fix-42")

    for words in ([made], ["@", "--session", "fix-42"]):
        refused = talk("rewind", *words, "--yes")
        assert refused.code == 5
        assert f"`holdfast rollback {made}` takes it back" in refused.err


def test_a_store_without_coding_agents_says_how_to_get_there(project: Holdfast) -> None:
    refused = project("rewind")

    assert refused.code == 5
    assert "holdfast hook install" in refused.err


def damaged(talk: Talk, conversation: Any) -> str:
    """A checkpoint whose conversation is not as it should be."""
    with SyncClient.sqlite(talk.directory / ".holdfast" / "holdfast.db") as client:
        last = client.restore(at(talk, "last"))
        state = {**last.execution_state, "conversation": conversation}
        built = CheckpointBuilder("generic").session("s1").execution_state(state)
        built = built.parent(last.checkpoint_id).workspace(last.workspace)
        return client.put(built.tag(program="generic", event="end").build())


@pytest.mark.parametrize(
    ("conversation", "said"),
    [
        ({"format": "talk/9", "entries": []}, "of the format 'talk/9'"),
        ({"format": "talk/1", "entries": 7}, "without entries: 7"),
        ({"format": "talk/1", "entries": ["nonsense"]}, "an entry is 'nonsense'"),
        ("nonsense", "of the format 'str'"),
    ],
)
def test_a_conversation_that_is_not_as_known_is_refused_and_files_offered(
    talk: Talk, conversation: Any, said: str
) -> None:
    made = damaged(talk, conversation)
    files = talk.files()

    refused = talk("rewind", made, "--yes", "--session", "s1")

    assert (refused.code, said in refused.err) == (1, True), refused.err
    assert f"holdfast rewind {made} --files" in refused.err
    assert talk.files() == files
    assert list(talk.talks.iterdir()) == [talk.transcript]


def test_a_program_whose_conversations_are_not_known_has_its_files(talk: Talk) -> None:
    told = {"conversation_id": "c", "hook_event_name": "stop", "workspace_roots": ["."]}
    done = talk("hook", "--from", "cursor", "--json", given=json.dumps(told))
    (talk.directory / "page.html").write_text("worse\n")
    checkpoint = done.json["checkpoint_id"]

    refused = talk("rewind", checkpoint, "--yes")
    assert refused.code == 1
    assert "how Cursor keeps its conversations is not known" in refused.err
    talk.ok("rewind", checkpoint, "--files", "--yes")
    assert talk.files()["page.html"] == "one\nblue\nthree\n"
    talk.ok("undo", "--yes")
    assert talk.files()["page.html"] == "worse\n"


def test_a_directory_that_is_gone_is_said(talk: Talk, tmp_path: Path) -> None:
    store = shutil.copytree(talk.directory / ".holdfast", tmp_path / "kept" / ".holdfast")
    shutil.rmtree(talk.directory)
    here = Talk(store.parent)

    refused = here("rewind", at(talk, "write"), "--yes")
    assert refused.code == 5
    assert "--workspace DIR" in refused.err
    assert "--to DIR" in refused.err
    done = here.json("rewind", at(talk, "write"), "--yes", "--to", "../again")
    assert Talk(tmp_path / "again").files() == {"mine.txt": "mine\n", **EXPECTED["write"][0]}
    assert talk.spoken(Path(done["conversation"]["path"])) == EXPECTED["write"][1]


@pytest.mark.parametrize("point", REWIND_POINTS)
def test_a_rewind_that_is_killed_loses_nothing_and_is_done_again(talk: Talk, point: str) -> None:
    (talk.directory / "mine.txt").write_text("edited\n")
    before, old = talk.files(), talk.transcript.read_bytes()

    killed = talk("rewind", at(talk, "write"), "--yes", KILL_AT=point)
    assert killed.code == -signal.SIGKILL
    assert talk.transcript.read_bytes() == old
    done = talk.json("rewind", at(talk, "write"), "--yes")

    assert talk.files() == {"mine.txt": "mine\n", **EXPECTED["write"][0]}
    assert talk.spoken(Path(done["conversation"]["path"])) == EXPECTED["write"][1]
    joined = talk.json("log", done["new_session_id"])["checkpoints"]
    assert [each["step_name"] for each in joined] == ["rewound to Write page.html"]
    kept = [each["step_name"] for each in talk.json("log", "s1")["checkpoints"]]
    assert kept.count("before rewind") == 1
    talk.ok("undo", "--yes")
    assert talk.files() == before


@pytest.mark.parametrize("point", ["rewind:kept", "rewind:written", "rewind:restored"])
def test_an_undo_that_is_killed_is_done_again(talk: Talk, point: str) -> None:
    before = talk.files()
    talk.ok("rewind", at(talk, "write"), "--yes")
    talk.transcript.unlink()

    assert talk("undo", "--yes", KILL_AT=point).code == -signal.SIGKILL
    done = talk.json("undo", "--yes")

    assert talk.files() == before
    assert done["resume"] == ["talk", "--resume", done["new_session_id"]]
    assert talk.spoken(Path(done["conversation"]["path"]))[-1] == "It is blue."


class Screen:
    """The command on a real terminal, driven key by key."""

    def __init__(self, talk: Talk, *words: str, columns: int = 90, lines: int = 30, **more: str):
        self.said = b""
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(talk.directory)
            command = [sys.executable, "-m", "tests.cli.talks", *words]
            os.execve(sys.executable, command, talk._variables({"NO_COLOR": "1", **more}))
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)

    def wait_for(self, text: str) -> str:
        """Read until a text has come; return what came since the last time, up to there."""
        deadline = time.monotonic() + SECONDS
        while text.encode() not in self.said:
            left = max(deadline - time.monotonic(), 0)
            part = b""
            if select.select([self.terminal], [], [], left)[0]:
                with suppress(OSError):  # the other side was closed
                    part = os.read(self.terminal, 65536)
            if not part:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"{text!r} never came: {self.end()}")
            self.said += part
        end = self.said.index(text.encode()) + len(text.encode())
        said, self.said = self.said[:end].decode(), self.said[end:]
        return said

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def end(self) -> tuple[int, str]:
        """Return how it ended, and what it said last."""
        with suppress(OSError):
            while part := os.read(self.terminal, 65536):
                self.said += part
        _, status = os.waitpid(self.pid, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status), self.said.decode()


HELP = "q leaves\r\n"


def test_a_point_is_chosen_with_arrows(talk: Talk) -> None:
    screen = Screen(talk, "rewind")
    shown = screen.wait_for(HELP)

    lines = [each.strip() for each in shown.splitlines()]
    assert re.search(r"> @ \d\d:\d\d:\d\d {2}agent: It is blue\.", shown)
    assert any(re.search(r"bash npm test \(failed\) .* 1 file \+1 −0$", each) for each in lines)
    assert any(re.search(r"Edit page.html .* 1 file \+2 −1$", each) for each in lines)
    prompts = [each for each in lines if "you: " in each]
    assert prompts[0].endswith("you: Now make it blue")
    screen.type("\x1b[B")
    assert re.search(r">   \S+ {2}bash git push", screen.wait_for(HELP))
    screen.type("jjjk")
    while not re.search(r">   \S+ {2}you: Now", shown := screen.wait_for(HELP)):
        pass
    screen.type("\n")
    screen.wait_for("Rewind s1? [y/N]")
    screen.type("y\n")
    code, said = screen.end()

    assert code == 0
    assert "go on with: talk --resume" in said
    assert talk.files() == {"mine.txt": "mine\n", **EXPECTED["second"][0]}


def test_points_are_filtered_by_what_is_typed(talk: Talk) -> None:
    screen = Screen(talk, "rewind", "--dry-run")
    screen.wait_for(HELP)

    screen.type("/page make")
    shown = screen.wait_for("/page make\r\n").split("\x1b[J")[-1]
    assert "you: Make the page" in shown
    assert "Edit page.html" not in shown
    screen.type("\n")
    code, said = screen.end()

    assert code == 0
    assert "goes back to you: Make the page" in said


@pytest.mark.parametrize("keys", ["q", "\x1b", "\x04"])
def test_leaving_the_choice_changes_nothing(talk: Talk, keys: str) -> None:
    files = talk.files()
    screen = Screen(talk, "rewind")
    screen.wait_for(HELP)
    before = termios.tcgetattr(screen.terminal)
    assert not before[3] & termios.ICANON

    screen.type(keys)
    code, said = screen.end()

    assert (code, "nothing was changed" in said) == (5, True)
    assert talk.files() == files


def test_an_interrupt_leaves_the_terminal_as_it_was(talk: Talk) -> None:
    screen = Screen(talk, "rewind")
    screen.wait_for(HELP)

    screen.type("\x03")
    screen.wait_for("holdfast: interrupted")

    assert termios.tcgetattr(screen.terminal)[3] & termios.ICANON
    assert screen.end()[0] == 130


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_no_line_of_the_choice_is_wrapped(talk: Talk, columns: int) -> None:
    talk.asks("日本語の名前がとても長いチェックポイント😀と続き" * 4)
    screen = Screen(talk, "rewind", columns=columns, lines=8)
    shown = screen.wait_for("\n> @")
    shown += screen.wait_for("arrows")
    screen.type("q")
    screen.end()

    lines = re.sub(r"\x1b\[\d*[A-Z]", "", shown).splitlines()
    assert max(map(width, lines)) < columns
    assert len(lines) <= 8


def test_a_plain_terminal_has_numbers(talk: Talk) -> None:
    screen = Screen(talk, "rewind", "--dry-run", TERM="dumb")
    shown = screen.wait_for("q leaves)")

    assert re.search(r"\n +2 {4}\S+ {2}bash git push", shown)
    assert "\x1b" not in shown
    screen.type("99\n")
    screen.wait_for("q leaves)")
    screen.type("7\n")
    code, said = screen.end()
    assert code == 0
    assert "goes back to Write page.html" in said


def test_names_cannot_steer_the_terminal(talk: Talk) -> None:
    made = talk.asks("\x1b]0;owned\x07\x1b[2J\u202e evil")
    screen = Screen(talk, "rewind")
    shown = screen.wait_for(HELP)
    screen.type("q")
    screen.end()
    said = talk.ok("rewind", made, "--yes")

    for text in (shown, said):
        assert "\x1b]0" not in text
        assert "\x07" not in text
        assert "\u202e" not in text


def test_a_diff_has_files_first_and_then_what_was_said(talk: Talk) -> None:
    said = talk.ok("diff", at(talk, "second"), at(talk, "last"))

    assert talk.ok("diff", at(talk, "second")) == "+ user: Now make it blue\n"
    assert said.splitlines() == [
        "D half  +0 −1",
        "M page.html  +2 −1",
        "+ assistant: Edit page.html",
        "+ tool: did page.html",
        "+ assistant: bash git push origin main",
        "+ tool: did git push origin main",
        "+ assistant: It is blue.",
    ]
    assert "-two\n+blue\n+three\n" in talk.ok(
        "diff", at(talk, "second"), at(talk, "last"), "--text"
    )
    assert "$.conversation" in talk.ok("diff", at(talk, "second"), at(talk, "last"), "--all")
    check("diff", talk.ok("diff", at(talk, "second"), at(talk, "last"), "--json"))


def test_messages_of_a_coding_agent_are_shown(talk: Talk) -> None:
    shown = talk.ok("show", at(talk, "last"), "--messages")

    assert "user: Make the page" in shown
    assert "assistant: It is blue." in shown
    assert "+ assistant: It is blue." in talk.ok("log", "s1", "--messages")


@pytest.mark.parametrize("rules", [".gitignore", ".holdfastignore"])
@pytest.mark.parametrize("scope", [["--files"], []])
def test_what_is_ignored_since_is_there_again_after_an_undo(
    talk: Talk, rules: str, scope: list[str]
) -> None:
    secret = talk.directory / ".env"
    secret.write_text("v1\n")
    (talk.directory / "data").mkdir()
    (talk.directory / "data" / "x").write_text("v1\n")
    then = talk.calls("bash", "make .env", "c5")
    (talk.directory / rules).write_text(".env\ndata/\n")
    secret.write_text("mine\n")
    (talk.directory / "data" / "x").unlink()
    (talk.directory / "data" / "y").write_text("mine too\n")
    talk.calls("bash", "ignore", "c6")
    before = talk.files()

    talk.ok("rewind", then, *scope, "--yes")
    rewound = talk.files()
    assert (rewound[".env"], rewound["data/x"], rewound["data/y"]) == ("v1\n", "v1\n", "mine too\n")
    assert rules not in rewound

    for expected in (before, rewound, before):
        talk.ok("undo", "--yes")
        assert talk.files() == expected
