"""An SQLite file may come from anybody: reading it ends, and runs nothing that is in it."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import CheckpointIntegrityError, StoreFormatError, SyncClient
from holdfast.stores.sqlite.guard import Allowance
from tests.hostile.child import AGENT, SESSION
from tests.hostile.kit import crashes, fill, judged, judged_one
from tests.hostile.sqlite_files import (
    ROWS,
    SCHEMAS,
    editing,
    flipped,
    rollback_journal,
    sharing_tree,
)

pytestmark = pytest.mark.timeout(900)  # each case has limits of its own
MUTATIONS = int(os.environ.get("HOLDFAST_MUTATIONS", "200"))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "good.db"
    with SyncClient.sqlite(path) as client:
        fill(client)
    with editing(path):
        pass  # no log beside it any more
    return path


@pytest.fixture
def copied(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(good, tmp_path / "bad.db"))


def test_a_good_file_is_read_by_every_verb(copied: Path) -> None:
    said = judged_one(url=f"sqlite:///{copied}")

    assert all(what.startswith("ok") for what in said.values()), said
    assert said["verify"].endswith(" verified, 0 damaged")


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_whose_tables_are_not_ours_is_refused_when_it_is_opened(
    name: str, copied: Path
) -> None:
    with editing(copied) as db:
        SCHEMAS[name](db)

    with pytest.raises((StoreFormatError, CheckpointIntegrityError), match=r"bad\.db"):
        SyncClient.sqlite(copied)


def test_the_error_names_what_was_added_and_not_by_whom(copied: Path) -> None:
    with editing(copied) as db:
        db.execute('CREATE VIEW "\x1b[31mred" AS SELECT 1')

    with pytest.raises(StoreFormatError, match=r"it has a view \\x1b\[31mred"):
        SyncClient.sqlite(copied)


def test_tables_that_other_tools_keep_in_the_file_are_left_alone(copied: Path) -> None:
    with editing(copied) as db:
        db.execute("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)")
        db.execute("CREATE INDEX their_index ON _litestream_seq (seq)")
        db.execute("ANALYZE")

    said = judged_one(url=f"sqlite:///{copied}")

    assert all(what.startswith("ok") for what in said.values()), said


def test_a_view_that_comes_while_the_store_is_open_is_noticed(copied: Path) -> None:
    with SyncClient.sqlite(copied) as client:
        assert client.timeline(AGENT, SESSION)
        with sqlite3.connect(copied) as db:
            db.execute("CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM checkpoints; END")

        with pytest.raises(StoreFormatError, match="trigger"):
            client.timeline(AGENT, SESSION)
        with pytest.raises(StoreFormatError, match="trigger"):
            client.save(AGENT, execution_state={}, session_id="new")


def test_rows_that_no_save_writes_are_named_or_left_out(good: Path, tmp_path: Path) -> None:
    cases = {}
    for number, (name, make) in enumerate(ROWS.items()):
        path = Path(shutil.copy(good, tmp_path / f"{number}.db"))
        with editing(path) as db:
            make(db)
        cases[name] = {"url": f"sqlite:///{path}"}

    said = judged(cases)

    assert not crashes(said), crashes(said)


def test_a_tree_of_pages_that_lead_to_the_same_page_again_and_again_is_not_walked(
    copied: Path,
) -> None:
    sharing_tree(copied)

    said = judged_one(url=f"sqlite:///{copied}")

    assert said["open"].startswith("ok")
    assert "more steps than a file of its size can need" in said["stats"]


def test_a_journal_that_names_a_file_does_not_have_it_deleted(copied: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("precious")
    journal = Path(f"{copied}-journal")
    journal.write_bytes(rollback_journal(copied.read_bytes(), names=theirs))

    with pytest.raises(StoreFormatError, match="names another file"):
        SyncClient.sqlite(copied)

    assert theirs.read_text() == "precious"


def test_a_journal_beside_a_linked_file_is_looked_at_where_sqlite_looks(
    copied: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("precious")
    Path(f"{copied}-journal").write_bytes(rollback_journal(copied.read_bytes(), names=theirs))
    (tmp_path / "link.db").symlink_to(copied)

    with pytest.raises(StoreFormatError, match="names another file"):
        SyncClient.sqlite(tmp_path / "link.db")

    assert theirs.exists()


def test_a_file_with_changed_bytes_gives_an_answer_or_an_error(good: Path, tmp_path: Path) -> None:
    whole = good.read_bytes()
    cases = {}
    for seed in range(MUTATIONS):
        path = tmp_path / f"{seed}.db"
        path.write_bytes(flipped(whole, seed))
        cases[f"seed {seed}"] = {"url": f"sqlite:///{path}"}

    said = judged(cases)

    assert not crashes(said), crashes(said)


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_a_hostile_log_beside_a_file_gives_an_answer_or_an_error(
    suffix: str, good: Path, tmp_path: Path
) -> None:
    log = a_log(good, tmp_path / "logged.db")
    cases = {}
    for seed in range(40):
        path = Path(shutil.copy(tmp_path / "logged.db", tmp_path / f"{seed}.db"))
        Path(f"{path}{suffix}").write_bytes(flipped(log * 3, seed))
        cases[f"{suffix}, seed {seed}"] = {"url": f"sqlite:///{path}"}

    said = judged(cases)

    assert not crashes(said), crashes(said)


def a_log(good: Path, path: Path) -> bytes:
    """The log of writes that were not yet brought into the file."""
    shutil.copy(good, path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    with SyncClient.sqlite(path) as client:
        client.save(AGENT, execution_state={"more": "x" * 20_000}, session_id="more")
        return Path(f"{path}-wal").read_bytes()


def test_no_more_is_read_from_a_file_than_it_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "small.db"
    path.write_bytes(bytes(4096))
    rows = ((n, b"x" * 2**20) for n in range(1000))

    with pytest.raises(CheckpointIntegrityError, match="more is read from it than it can hold"):
        list(Allowance(path).measured(rows, 1))


def test_a_file_may_be_read_whole_however_large_it_is(tmp_path: Path) -> None:
    path = tmp_path / "large.db"
    path.touch()
    os.truncate(path, 2**30)
    rows = [(n, bytes(2**20)) for n in range(40)]

    assert len(list(Allowance(path).measured(rows, 1))) == 40
