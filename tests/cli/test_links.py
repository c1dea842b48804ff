"""A directory that holdfast fork --to made belongs to the store of the fork."""

import json
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from holdfast.cli.access.links import link
from tests.cli.kit import Holdfast, environment

FIND = "from holdfast.stores.discovery import find; where = find(); print(where and where.url)"


@pytest.fixture
def forked(repo: Path) -> tuple[Holdfast, Holdfast]:
    """A project with a store, and a directory that was forked from it."""
    holdfast = Holdfast(repo)
    holdfast.ok("init")
    holdfast.ok("snapshot", "-m", "good")
    holdfast.ok("fork", "--as", "bolder", "--to", "../bolder")
    return holdfast, Holdfast(repo.parent / "bolder")


def links(state: Path) -> list[Path]:
    return sorted((state / "holdfast" / "linked").iterdir())


def library_in(directory: Path) -> str:
    """Which store the library means in a directory."""
    done = subprocess.run(
        [sys.executable, "-c", FIND],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_command_line_and_library_mean_the_store_of_the_fork(
    forked: tuple[Holdfast, Holdfast],
) -> None:
    old, new = forked
    (new.directory / "below").mkdir()
    below = Holdfast(new.directory / "below")

    assert new.json("status")["url"] == below.json("status")["url"] == old.json("status")["url"]
    assert library_in(new.directory) == library_in(old.directory)
    assert new.json("sessions")["sessions"][0]["session_id"] == "bolder"
    assert f"from the link of {new.directory}" in new.ok("status")
    assert not (new.directory / ".holdfast").exists()


def test_what_is_kept_in_the_fork_has_the_fork_as_its_project(
    forked: tuple[Holdfast, Holdfast],
) -> None:
    old, new = forked
    (new.directory / "main.py").write_text("bolder")

    kept = new.json("snapshot", "-m", "bolder")

    assert kept["files"] == 1
    assert old.json("show", kept["checkpoint_id"])["workspace"]["files"] == 1
    assert (old.directory / "main.py").read_text() == "print('one')"


def test_a_file_in_the_directory_links_nothing(repo: Path, state_of_the_user: Path) -> None:
    """It could come with a repository, and would send what is saved to whoever wrote it."""
    old = Holdfast(repo)
    old.ok("init")
    old.ok("snapshot")
    old.ok("fork", "--to", "../bolder")
    hostile = repo.parent / "hostile"
    hostile.mkdir()
    shutil.copytree(state_of_the_user / "holdfast", hostile / "holdfast")
    shutil.copytree(state_of_the_user / "holdfast", hostile / ".local" / "state" / "holdfast")
    shutil.copytree(state_of_the_user / "holdfast", hostile / "state" / "holdfast")

    for state in ("", "state", "."):
        done = Holdfast(hostile)("status", XDG_STATE_HOME=state, HOME="/nonexistent")
        assert (done.code, "there is no store here" in done.err) == (3, True)


def test_a_directory_that_is_made_anew_is_not_linked(
    forked: tuple[Holdfast, Holdfast], state_of_the_user: Path
) -> None:
    old, new = forked
    kept = new.directory.rename(new.directory.with_name("kept"))
    new.directory.mkdir()

    assert new("status").code == 3
    assert Holdfast(kept)("status").code == 3
    old.ok("fork", "--to", "../other")
    assert [json.loads(each.read_text())["directory"] for each in links(state_of_the_user)] == [
        str(new.directory.with_name("other"))
    ]


def test_a_store_of_its_own_takes_the_place_of_the_link(
    forked: tuple[Holdfast, Holdfast], state_of_the_user: Path
) -> None:
    _, new = forked

    new.ok("init")

    assert new.json("status")["checkpoints"] == 0
    assert links(state_of_the_user) == []


def test_a_link_to_a_store_that_is_gone_is_said(forked: tuple[Holdfast, Holdfast]) -> None:
    old, new = forked
    shutil.rmtree(old.directory / ".holdfast")

    for done in (new("log"), new("hook", given=json.dumps({"session_id": "s", "cwd": "."}))):
        assert done.code in (1, 7)
        assert "belongs to the store" in done.err
        assert "holdfast init" in done.err
    assert not (old.directory / ".holdfast").exists()
    new.ok("init")


@pytest.mark.parametrize("what", ["mode", "folder", "symlink", "nonsense", "fifo"])
def test_a_link_that_others_could_have_written_is_refused(
    forked: tuple[Holdfast, Holdfast], state_of_the_user: Path, what: str
) -> None:
    old, new = forked
    (file,) = links(state_of_the_user)
    if what == "mode":
        file.chmod(0o622)
    elif what == "folder":
        file.parent.chmod(0o777)
    elif what == "symlink":
        file.rename(old.directory / "real.json")
        file.symlink_to(old.directory / "real.json")
    elif what == "fifo":
        file.unlink()
        os.mkfifo(file, 0o600)
    else:
        file.write_text(json.dumps({**json.loads(file.read_text()), "url": 7}))

    done = new("status")

    assert done.code == (3 if what == "fifo" else 7)
    if what != "fifo":
        assert str(file.parent) in done.err


def test_links_are_the_users_alone(
    forked: tuple[Holdfast, Holdfast], state_of_the_user: Path
) -> None:
    (file,) = links(state_of_the_user)

    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_hook_in_the_fork_records_into_the_store_of_the_fork(
    forked: tuple[Holdfast, Holdfast],
) -> None:
    old, new = forked
    new.ok("hook", "install", "claude-code")
    (new.directory / "below").mkdir()
    told = {
        "session_id": "s1",
        "hook_event_name": "UserPromptSubmit",
        "prompt": "Be bold",
        "cwd": str(new.directory / "below"),
    }

    done = new("hook", "--json", given=json.dumps(told))

    assert done.code == 0, done.err
    log = old.json("log", "s1")["checkpoints"]
    assert [each["step_name"] for each in log] == ["you: Be bold"]
    assert not (new.directory / ".holdfast").exists()
    assert done.json["files"] == 2  # all of the fork, though the agent has gone below


def test_a_password_is_not_written_down(repo: Path, state_of_the_user: Path) -> None:
    options = Namespace(store="postgresql://me:hunter2@db/agents")

    assert link(options, repo) is False
    assert not (state_of_the_user / "holdfast").exists()
