"""Full and read-only disks, foreign files: a clear error, nothing lost, and on it goes."""

import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    CheckpointIntegrityError,
    HoldfastError,
    InvalidArgumentError,
    StoreConnectionError,
    StoreFormatError,
    StoreReadOnlyError,
    SyncClient,
)
from tests.clients import FACES, PERSISTENT, Face, end
from tests.disks import own_disk, run_module

JOBS = "tests.acceptance.fault_jobs"


@pytest.fixture(params=FACES)
def face_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("store", PERSISTENT)
@pytest.mark.parametrize("job", ["full_disk", "full_disk_while_opening", "full_disk_for_a_bundle"])
def test_a_full_disk_is_an_error_that_leaves_nothing_and_passes(
    job: str, store: str, face_name: str, tmp_path: Path
) -> None:
    within = own_disk(tmp_path / "disk", "6m")

    run_module(JOBS, job, face_name, store, tmp_path / "disk", within=within)


@pytest.mark.parametrize("store", PERSISTENT)
def test_a_limit_on_the_size_of_files_is_an_error_that_leaves_nothing_and_passes(
    store: str, face_name: str, tmp_path: Path
) -> None:
    run_module(JOBS, "limited_files", face_name, store, tmp_path, within=[])


@pytest.mark.parametrize("store", PERSISTENT)
def test_a_read_only_disk_is_an_error_that_passes(
    store: str, face_name: str, tmp_path: Path
) -> None:
    within = own_disk(tmp_path / "disk", "6m")

    run_module(JOBS, "read_only_disk", face_name, store, tmp_path / "disk", within=within)


@pytest.mark.parametrize("store", PERSISTENT)
def test_a_directory_without_permission_is_an_error_that_passes(store: str, face_name: str) -> None:
    # Not below a directory that only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as directory:
        run_module(JOBS, "read_only_permissions", face_name, store, directory, within=[])


@pytest.fixture
def refused(face: Face) -> Callable[[Path, type[HoldfastError]], str]:
    """Opens what cannot be opened, and gives the message."""

    def refuse(path: Path, error: type[HoldfastError]) -> str:
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(error) as caught:
            end(face.use(face.cls.sqlite(path)))
        assert before is None or path.read_bytes() == before
        assert str(path) in str(caught.value)
        return str(caught.value)

    return refuse


def test_a_directory_where_the_file_should_be(refused: Any, tmp_path: Path) -> None:
    assert "it is a directory, not a file" in refused(tmp_path, StoreConnectionError)


def test_a_file_where_the_directory_should_be(refused: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")

    refused(tmp_path / "file" / "holdfast.db", StoreConnectionError)
    refused(tmp_path / "file" / "below" / "holdfast.db", StoreConnectionError)


@pytest.mark.parametrize("data", [b"text", b"SQLite format 4\x00" * 100, os.urandom(5000)])
def test_a_file_that_is_no_database(refused: Any, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)

    assert "is not an SQLite file; choose another path" in refused(path, StoreFormatError)


def test_a_database_of_another_program(refused: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE notes (text)")
        db.execute("INSERT INTO notes VALUES ('mine')")
    db.close()

    assert "of another program; choose another path" in refused(path, StoreFormatError)


def test_a_database_that_another_program_marked_as_its_own(refused: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA application_id = 1234")
    db.execute("VACUUM")
    db.close()

    refused(path, StoreFormatError)


def test_a_database_of_a_newer_format(refused: Any, tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    with SyncClient.sqlite(path) as client:
        client.save("coder")
    db = sqlite3.connect(path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.execute(f"PRAGMA user_version = {version + 1}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()

    assert "upgrade Holdfast" in refused(path, StoreFormatError)


def moved(path: Path, to: Path) -> None:
    """Move a database away with all that belongs to it."""
    to.mkdir()
    for each in path.parent.glob(f"{path.name}*"):
        each.rename(to / each.name)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_takes_nothing_more_and_goes_on_when_it_is_back(
    face: Face, tmp_path: Path, replaced: bool
) -> None:
    path = tmp_path / "agent.db"
    client = face.open(f"sqlite:///{path}")
    saved = client.save("agent", execution_state={"n": 1}, session_id="s")
    moved(path, tmp_path / "away")
    if replaced:
        with SyncClient.sqlite(path) as other:
            other.save("other", execution_state={}, session_id="new")

    for _ in range(2):
        with pytest.raises(StoreConnectionError, match="was removed or replaced while it was open"):
            client.save("agent", execution_state={"n": 2}, session_id="s")
        with pytest.raises(StoreConnectionError, match="was removed or replaced while it was open"):
            client.restore(saved)

    assert path.exists() == replaced
    if replaced:
        with SyncClient.sqlite(path) as other:
            assert [each.agent_id for each in other.find()] == ["other"]
        moved(path, tmp_path / "other")
    for each in (tmp_path / "away").iterdir():
        each.rename(tmp_path / each.name)
    assert client.restore(saved).execution_state == {"n": 1}
    client.save("agent", execution_state={"n": 3}, session_id="s")
    end(client)


def test_a_store_stays_where_it_was_opened_when_the_program_goes_elsewhere(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    client = face.open("sqlite:///agent.db")
    monkeypatch.chdir(tmp_path / "there")

    saved = client.save("agent", execution_state={"n": 1}, session_id="s")

    assert client.restore(saved).execution_state == {"n": 1}
    end(client)
    assert not any((tmp_path / "there").iterdir())


def test_an_empty_file_becomes_a_store(face: Face, tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()

    client = face.use(face.cls.sqlite(path))
    saved = client.save("coder", execution_state={"a": 1})

    assert client.restore(saved).execution_state == {"a": 1}
    end(client)


def test_a_store_is_usable_again_after_it_was_mended(face: Face, tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    with SyncClient.sqlite(path) as client:
        saved = client.save("coder", execution_state={"a": 1})
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    client = face.use(face.cls.sqlite(path))
    with pytest.raises(CheckpointIntegrityError):
        client.restore(saved)
    end(client)

    path.write_bytes(whole)

    client = face.use(face.cls.sqlite(path))
    assert client.restore(saved).execution_state == {"a": 1}
    end(client)


@pytest.mark.parametrize("path", ["", ":memory:", 5, None, "a\x00b"])
def test_a_path_that_makes_no_sense_is_refused(face: Face, path: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"path|memory"):
        face.cls.sqlite(path)
    if path != ":memory:":
        with pytest.raises(InvalidArgumentError, match="path"):
            face.cls.file(path)


def test_a_durability_that_does_not_exist_is_refused(face: Face, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match='"full" or "normal"'):
        face.cls.sqlite(tmp_path / "holdfast.db", durability="none")  # type: ignore[arg-type]


def test_a_store_that_is_read_only_says_so_and_is_read(face: Face, tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    client = face.use(face.cls.sqlite(path))
    saved = client.save("coder", execution_state={"a": 1})
    client.store._db.writer().execute("PRAGMA query_only = ON")  # type: ignore[attr-defined]

    with pytest.raises(StoreReadOnlyError, match="permissions"):
        client.save("coder", execution_state={"a": 2})

    assert client.restore(saved).execution_state == {"a": 1}
    client.store._db.writer().execute("PRAGMA query_only = OFF")  # type: ignore[attr-defined]
    assert client.save("coder", execution_state={"a": 2})
    end(client)
