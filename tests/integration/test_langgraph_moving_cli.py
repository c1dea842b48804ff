"""Moving in by ``holdfast import``."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, move_in
from holdfast.cli import main
from holdfast.system import progress_bar
from tests.graphs import line, thread
from tests.integration.moving_kit import assert_same, sqlite_saver, write_chat

pytest_plugins = ["tests.integration.moving_fixtures"]


def holdfast(directory: Path, *arguments: str, **variables: str) -> Any:
    """Run the command line."""
    environment = {k: v for k, v in os.environ.items() if k != "HOLDFAST_URL"} | variables
    return subprocess.run(
        [sys.executable, "-m", "holdfast", "import", *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_the_command_line_brings_a_file_into_the_embedded_store(
    source: Path, tmp_path: Path
) -> None:
    write_chat(source, turns=2)

    first = holdfast(tmp_path, "langgraph-sqlite", source.name)
    second = holdfast(tmp_path, "langgraph-sqlite", source.name)

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("6 checkpoints of 1 thread and ")
    assert second.stdout.startswith("0 checkpoints of 0 threads and 0 writes brought into the ")
    assert second.stdout.endswith("; 6 checkpoints there already\n")
    with (
        SyncClient.sqlite(tmp_path / ".holdfast" / "holdfast.db") as client,
        sqlite_saver(source) as theirs,
    ):
        assert_same(HoldfastSaver(client), theirs)


def test_the_command_line_takes_a_store_and_an_agent_and_answers_in_json(
    source: Path, tmp_path: Path
) -> None:
    write_chat(source)
    named, default = (f"sqlite:///{tmp_path}/{name}.db" for name in ("named", "default"))

    done = holdfast(
        tmp_path,
        *("langgraph-sqlite", str(source), "--store", named, "--agent", "helper", "--json"),
        HOLDFAST_URL=default,
    )
    other = holdfast(tmp_path, "langgraph-sqlite", str(source), HOLDFAST_URL=default)

    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said == {"threads": 1, "checkpoints": 3, "skipped": 0, "writes": said["writes"]}
    with SyncClient.open(named) as client:
        assert {each.agent_id for each in client.sessions()} == {"helper"}
    assert other.stdout.startswith("3 checkpoints of 1 thread ")
    with SyncClient.open(default) as client:
        assert {each.agent_id for each in client.sessions()} == {"langgraph"}


def test_the_command_line_brings_a_postgres_database(
    dsn: str, theirs: PostgresSaver, tmp_path: Path
) -> None:
    line("one", "two").compile(checkpointer=theirs).invoke({}, thread("line"))
    url = f"sqlite:///{tmp_path}/moved.db"

    done = holdfast(tmp_path, "langgraph-postgres", dsn, "--store", url)

    assert (done.returncode, done.stderr) == (0, "")
    with SyncClient.open(url) as client:
        assert_same(HoldfastSaver(client), theirs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["langgraph-sqlite", "nowhere.db"], "there is no file nowhere.db"),
        (["langgraph-sqlite", "text"], "text is not an SQLite file"),
        (["langgraph-sqlite", "postgresql://me:hunter2@h/d"], "takes the path of an SQLite file"),
        (["langgraph-postgres", "host=h password=hunter2"], "takes a URL such as postgresql://"),
        (
            ["langgraph-postgres", "postgresql://me:hunter2@127.0.0.1:1/d"],
            "the PostgreSQL server cannot be reached",
        ),
    ],
)
def test_the_command_line_says_what_is_wrong_and_leaves_no_store_behind(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "text").write_text("hello " * 1000)

    done = holdfast(tmp_path, *arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("holdfast: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_the_command_line_shows_how_far_it_is_on_a_terminal(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    write_chat(source, turns=9)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress_bar, "_PATIENCE", 0)

    with redirect_stderr(Screen()) as screen:
        assert main(["import", "langgraph-sqlite", source.name]) == 0

    assert screen.getvalue() == "\r\x1b[K[#################.......] 20/27 importing\r\x1b[K"


def test_a_postgres_database_needs_psycopg_and_says_so(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ImportError, match=r"psycopg: pip install 'holdfast\[postgres\]'"):
        move_in("postgresql://127.0.0.1/agents", client)
