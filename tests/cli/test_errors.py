"""Exit codes, suggestions, and where the store is looked for."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["lgo"], 2, "there is no command 'lgo'; did you mean log?"),
        (["log", "--grap"], 2, "did you mean --graph?"),
        (["log", "--limit", "x"], 2, "'x' is no number from 0"),
        (["log", "fix-24"], 3, "there is no session 'fix-24'; did you mean fix-42?"),
        (["show", "nothing-like-it"], 3, "there is no checkpoint 'nothing-like-it'"),
        (["approve", "abcdef"], 3, "no call 'abcdef' waits for approval"),
        (["prune", "--dry-run"], 2, "a policy without a rule would remove everything"),
        (["prune", "--within", "soon", "--dry-run"], 2, "'soon' is no time"),
        (["log", "--store", "nonsense://x"], 2, "no store is called 'nonsense'"),
        (["log", "--store", "sqlite:///typo.db"], 3, "holdfast init --store sqlite:///typo.db"),
        (["log", "--store", "redis://127.0.0.1:1/0"], 7, "cannot be reached"),
        (["import", "nothing.holdfast"], 3, "there is no file nothing.holdfast"),
        (["bisect", "fix-42", "--python", "1 +"], 2, "--python is no expression"),
        (["hook", "install"], 2, "holdfast hook install claude-code"),
    ],
)
def test_what_goes_wrong_has_a_code_and_a_remedy(
    project: Holdfast, arguments: list[str], code: int, message: str
) -> None:
    done = project(*arguments)

    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("holdfast: ")
    assert message in done.err
    assert not (project.directory / "typo.db").exists()


def test_an_error_in_json_goes_to_standard_error(project: Holdfast) -> None:
    done = project("log", "fix-24", "--json")

    assert done.out == ""
    error = json.loads(done.err)["error"]
    assert (error["code"], error["kind"], error["suggestions"]) == (3, "not_found", ["fix-42"])


def test_a_damaged_store_ends_with_six(project: Holdfast) -> None:
    with sqlite3.connect(project.directory / ".holdfast" / "holdfast.db") as db:
        db.execute("UPDATE chunks SET data = zeroblob(length(data)) WHERE seq % 2 = 0")
    db.close()

    done = project("verify")

    assert done.code == 6
    assert "damaged" in done.out
    assert project("verify", "--json").json["ok"] is False


def test_a_file_that_is_no_store_ends_with_six(holdfast: Holdfast) -> None:
    with sqlite3.connect(holdfast.directory / "other.db") as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()

    done = holdfast("log", "--store", "other.db")

    assert done.code == 6
    assert "another program" in done.err


def test_without_a_store_init_is_named(holdfast: Holdfast) -> None:
    done = holdfast("log")

    assert done.code == 3
    assert "Make one with `holdfast init`" in done.err
    assert list(holdfast.directory.iterdir()) == []


def test_the_store_is_the_nearest_upwards(project: Holdfast) -> None:
    below = project.directory / "src" / "deep"
    below.mkdir(parents=True)

    assert Holdfast(below).json("log", "fix-42")["checkpoints"]


def test_an_option_goes_before_the_environment_and_that_before_the_directory(
    project: Holdfast, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        with SyncClient.sqlite(tmp_path / f"{name}.db") as client:
            client.save(name, execution_state={}, session_id=name)
    variables = {"HOLDFAST_URL": f"sqlite:///{tmp_path}/a.db"}

    by_environment = project.ok("sessions", **variables)
    by_option = project.ok("sessions", "--store", "b.db", **variables)
    before_the_command = project.ok("--store", "b.db", "sessions", **variables)

    assert by_environment.split()[:2] == ["a", "a"]
    assert by_option.split()[:2] == ["b", "b"]
    assert before_the_command.split()[:2] == ["b", "b"]


def test_a_password_is_never_shown(holdfast: Holdfast) -> None:
    url = "redis://me:hunter2@127.0.0.1:1/0"

    for arguments in (["log"], ["doctor"], ["doctor", "--json"], ["status"]):
        done = holdfast(*arguments, "--store", url)
        assert done.code == 7
        assert "hunter2" not in done.out + done.err


def test_init_makes_a_store_that_git_ignores_and_leaves_one_that_is_there(
    holdfast: Holdfast,
) -> None:
    first = holdfast.json("init")
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        client.save("a", execution_state={})
    second = holdfast.json("init")

    assert (first["created"], second["created"], second["checkpoints"]) == (True, False, 1)
    assert (holdfast.directory / ".holdfast" / ".gitignore").read_text() == "*\n"


def test_help_lists_every_command_and_explains_each(holdfast: Holdfast) -> None:
    overview = holdfast.ok("--help")

    for name in ("log", "rollback", "approve", "doctor", "hook", "mcp"):
        assert f"\n  {name} " in overview
    assert "--graph" in holdfast.ok("log", "--help")
    assert holdfast.ok("help", "log") == holdfast.ok("log", "--help")
    assert holdfast().code == 2


def test_a_reader_that_goes_away_is_no_error(project: Holdfast) -> None:
    import subprocess
    import sys

    from tests.cli.kit import environment

    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "log", "fix-42"],
        cwd=project.directory,
        env=environment(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (141, "")
