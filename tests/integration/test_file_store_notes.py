"""Notes of the file store: readable documents that are there with all of their commit or not."""

import errno
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.core.chunk_format import uncompressed
from holdfast.core.codec import pack
from holdfast.errors import StoreConnectionError, StoreFormatError, StoreFullError
from holdfast.stores.base import Note, NotesOnly
from holdfast.stores.file.store import FileStore
from holdfast.system import crash_points
from holdfast.testing.samples import keep_notes, make_note
from tests.integration.file_note_jobs import COMMITS, ID, key_of
from tests.integration.file_store_kit import files_below, save
from tests.integration.fork_server import ForkServer

JOBS = "tests.integration.file_note_jobs"
OLD = [("/old", "kept"), (ID, "kept")]


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(JOBS, "holdfast.stores.file.store") as server:
        yield server


@pytest.fixture(autouse=True)
def no_handler() -> Iterator[None]:
    yield
    crash_points.clear()


def documents(directory: Path) -> list[Path]:
    return [path for path in files_below(directory / ".notes") if path.name[0] != "."]


def test_a_note_is_a_document_to_be_read_by_people(store: FileStore, tmp_path: Path) -> None:
    note = Note.of("/events", "it ran", uncompressed(pack({"tests": (3, "passed")})))

    keep_notes(store, note)

    (path,) = documents(tmp_path)
    (kept,) = store.notes(None)
    assert path.relative_to(tmp_path).as_posix() == f".notes/%2Fevents/0{kept.seq}-it ran.json"
    data = json.loads(path.read_text())
    assert (data["note"]["scope"], data["note"]["key"]) == ("/events", "it ran")
    assert data["value"] == {"tests": {"$type": "tuple", "value": [3, "passed"]}}


def test_a_note_that_is_no_json_is_kept_as_bytes(store: FileStore, tmp_path: Path) -> None:
    notes = [make_note(key="compressed", value="x" * 9000), Note.of("/log", "bytes", b"\x09\xff")]

    keep_notes(store, *notes)

    assert [note.body for note in store.notes(None)] == [note.body for note in notes]
    assert all("body" in json.loads(path.read_text()) for path in documents(tmp_path))


def test_an_agent_may_be_called_like_the_directory_of_notes(store: FileStore) -> None:
    checkpoint_id = save(store, 1, agent_id=".notes", session_id="%2Flog")
    keep_notes(store, make_note("/log"))

    store.delete(["/log"])

    assert store.match("", 10) == [checkpoint_id]
    assert store.notes(None) == []


def test_a_store_without_notes_is_as_it_ever_was(store: FileStore, tmp_path: Path) -> None:
    save(store)
    store.delete(["nothing"])
    store.sweep(datetime.now(UTC))
    store.commit(NotesOnly((), {}))
    assert store.notes(None) == []

    assert not (tmp_path / ".notes").exists()


def test_sweeping_leaves_the_directory_of_the_store(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    (tmp_path / "store" / ".notes").mkdir()  # as a writer leaves it that is killed at once

    store.sweep(datetime.now(UTC))

    keep_notes(store, make_note())
    assert len(store.notes(None)) == 1


def test_nothing_is_left_of_notes_that_were_removed(store: FileStore, tmp_path: Path) -> None:
    keep_notes(store, make_note("/a"), make_note("/b"))
    store.delete(["/a", "/b"])

    assert [path.name for path in (tmp_path / ".notes").iterdir()] == [".lock"]


def test_a_document_of_a_newer_format_is_told_apart(store: FileStore, tmp_path: Path) -> None:
    keep_notes(store, make_note())
    (path,) = documents(tmp_path)
    path.write_text(path.read_text().replace('"holdfast": 1', '"holdfast": 2', 1))

    with pytest.raises(StoreFormatError, match=r"note.json.*format 2.*upgrade Holdfast"):
        store.notes(None)


@pytest.mark.parametrize(
    "text",
    ["", "\x00" * 99, "{}", "[]", "5", '{"holdfast": 1}', "[" * 9999, '{"holdfast": 1, "note": 5}'],
    ids=lambda text: text[:12],
)
def test_a_document_of_another_shape_is_shown_as_damaged(
    store: FileStore, tmp_path: Path, text: str
) -> None:
    keep_notes(store, make_note(key="damaged"), make_note(key="whole"))
    documents(tmp_path)[0].write_text(text)

    damaged, whole = store.notes(["/log"])

    assert (damaged.scope, damaged.key, damaged.is_intact()) == ("/log", "damaged", False)
    assert (whole.key, whole.is_intact()) == ("whole", True)
    store.sweep(datetime.now(UTC))
    assert len(store.notes(None)) == 2
    store.delete(["/log"])
    assert store.notes(None) == []


def test_a_document_in_another_place_is_shown_as_damaged(store: FileStore, tmp_path: Path) -> None:
    keep_notes(store, make_note("/a", "first"), make_note("/b", "second"))
    first, second = documents(tmp_path)
    whole = first.read_bytes()

    for place in (second, first.with_name(first.name.replace("first", "other"))):
        place.write_bytes(whole)
        found = store.notes(None)
        assert [note.is_intact() for note in found].count(False) == 1
        place.unlink()


def test_a_directory_where_a_document_should_be(store: FileStore, tmp_path: Path) -> None:
    keep_notes(store, make_note())
    (path,) = documents(tmp_path)
    path.unlink()
    path.mkdir()

    with pytest.raises(StoreConnectionError, match=r"note\.json"):
        store.notes(None)


@pytest.mark.parametrize("text", ["", "lost\n", "9" * 500, "-5"])
def test_places_go_on_where_the_last_one_was_lost(
    store: FileStore, tmp_path: Path, text: str
) -> None:
    keep_notes(store, make_note(key="first"))
    (tmp_path / ".notes" / ".lock").write_text(text)

    keep_notes(store, make_note(key="second"))

    assert [note.key for note in store.notes(None)] == ["first", "second"]


@pytest.mark.parametrize("kind", COMMITS)
def test_a_killed_commit_with_notes_is_there_whole_or_not_at_all(
    kind: str, tmp_path: Path, server: ForkServer
) -> None:
    new = sorted(map(key_of, COMMITS[kind].notes))
    seen: list[bool] = []
    for point in range(100):
        place = tmp_path / str(point)
        store = FileStore(place)
        keep_notes(store, *(make_note(*name) for name in OLD))

        ended = server.killed(f"{JOBS}:commit_until_killed", str(place), kind, point)

        assert not ended.error
        before = files_below(place)
        found: list[Note] = []
        for reader in (store, FileStore(place)):
            found = [note for note in reader.notes(None) if key_of(note) not in OLD]
            assert sorted(map(key_of, found)) in ([], new)
            if kind == "a record with notes":
                assert bool(reader.match(ID, 1)) == bool(found)
        assert files_below(place) == before  # reading changes nothing
        seen.append(bool(found))
        keep_notes(store, make_note("/after"))
        store.sweep(datetime.now(UTC))
        assert not [path for path in files_below(place) if path.name[0] == "."]
        assert len(store.notes(None)) == len(OLD) + len(found) + 1
        if not ended.signal:
            assert ended.told == ["committed"]
            break
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (False, True)


def points_of(kind: str, directory: Path) -> list[str]:
    """The points that a commit passes."""
    reached: list[str] = []
    crash_points.install(reached.append)
    FileStore(directory).commit(COMMITS[kind])
    crash_points.clear()
    return reached


@pytest.mark.parametrize("kind", COMMITS)
def test_a_commit_with_notes_that_finds_the_disk_full_leaves_nothing(
    store: FileStore, tmp_path: Path, kind: str
) -> None:
    points = points_of(kind, tmp_path / "elsewhere")
    keep_notes(store, *(make_note(*name) for name in OLD))
    before = files_below(tmp_path)

    for full_at in (n for n, name in enumerate(points) if name == "file:written"):
        left = iter(range(full_at, -1, -1))

        def on_reached(_: str, left: Iterator[int] = left) -> None:
            if next(left) == 0:
                raise OSError(errno.ENOSPC, "full")

        crash_points.install(on_reached)
        with pytest.raises(StoreFullError):
            store.commit(COMMITS[kind])
        crash_points.clear()
        assert files_below(tmp_path) == before
        assert [key_of(note) for note in store.notes(None)] == OLD

    store.commit(COMMITS[kind])
    assert len(store.notes(None)) == len(OLD) + len(COMMITS[kind].notes)


def test_a_commit_removed_after_a_crash_does_not_take_other_notes_along(
    tmp_path: Path, server: ForkServer
) -> None:
    """The record was there, so its notes count, whatever becomes of it."""
    kind = "a record with notes"
    last = len(points_of(kind, tmp_path / "elsewhere")) - 1
    place = tmp_path / "store"
    store = FileStore(place)
    server.killed(f"{JOBS}:commit_until_killed", str(place), kind, last)
    assert list((place / ".notes").glob(".promise-*"))

    assert store.delete([ID]) == 1

    assert [key_of(note) for note in store.notes(None)] == [("/a", "new"), ("/b", "new")]
    keep_notes(store, make_note("/after"))
    assert len(store.notes(None)) == 3


def test_of_processes_that_write_one_key_exactly_one_wins(
    tmp_path: Path, server: ForkServer
) -> None:
    told = server.at_once(*((f"{JOBS}:write_many", str(tmp_path), n) for n in range(4)))

    won = sorted(step for one in told for _, step in one)
    assert won == list(range(20))
    found = FileStore(tmp_path).notes(["/log"])
    assert len(found) == len({note.seq for note in found}) == 20 * 5
    for number in range(4):
        own = [note.key for note in found if note.key.startswith(f"{number} ")]
        assert own == [f"{number} {step}" for step in range(20)]
