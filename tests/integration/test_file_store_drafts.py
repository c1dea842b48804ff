"""What a killed writer left in a file store before it had its name goes with the next gc."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.system.atomic_files import remove_drafts
from tests.integration.file_store_kit import start
from tests.integration.fork_server import ForkServer

JOBS = "tests.integration.file_note_jobs"
POINTS = {
    "a document": ("file:begun", "file:written", "file:synced"),
    "a note": ("file:begun", "file:written", "file:synced"),
    "a promise": ("file:begun", "file:written", "file:synced"),
    "a chunk": ("file:chunk_begun", "file:chunk_written"),
}
MOMENTS = [(kind, point) for kind, points in POINTS.items() for point in points]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(JOBS, "holdfast.stores.file.store") as server:
        yield server


def drafts(directory: Path) -> list[Path]:
    found = (path for path in directory.rglob(".*") if path.is_file())
    return [path for path in found if path.name.startswith((".holdfast-tmp-file-", ".tmp-"))]


def documents(directory: Path) -> set[Path]:
    """All files but those that keep no content: locks and hints at what was written last."""
    return {path for path in directory.rglob("*") if path.is_file() and path.name[0] != "."}


@pytest.mark.parametrize(("kind", "point"), MOMENTS)
def test_gc_removes_the_draft_of_a_writer_that_was_killed(
    kind: str, point: str, server: ForkServer, tmp_path: Path
) -> None:
    with SyncClient.file(tmp_path) as client:
        kept = client.save("coder", execution_state={"step": 1})
        before = documents(tmp_path)

        ended = server.killed(f"{JOBS}:draft_and_be_killed", str(tmp_path), kind, point)

        assert ended.signal == signal.SIGKILL, ended.error
        assert len(drafts(tmp_path)) == 1
        client.gc()
        assert drafts(tmp_path) == []
        assert documents(tmp_path) == before
        assert client.restore(kept).execution_state == {"step": 1}
        assert client.verify().ok


@pytest.mark.parametrize(("kind", "point"), MOMENTS)
def test_gc_leaves_the_draft_of_a_writer_that_lives(kind: str, point: str, tmp_path: Path) -> None:
    script = """
from tests.integration.file_note_jobs import KINDS_OF_DRAFTS

def wait(name):
    if name == sys.argv[3]:
        crash_points.clear()
        wait_for_the_others()

crash_points.install(wait)
store.commit(KINDS_OF_DRAFTS[sys.argv[2]])
"""
    writer = start(script, tmp_path, kind, point)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    (draft,) = drafts(tmp_path)
    os.utime(draft, (time.time() - 3600,) * 2)

    if kind in ("a document", "a chunk"):  # who writes notes holds the lock that gc waits for
        with SyncClient.file(tmp_path) as client:
            client.gc()
    else:
        remove_drafts_of_notes(tmp_path)

    assert drafts(tmp_path) == [draft]
    writer.communicate("go\n")
    assert writer.returncode == 0
    assert drafts(tmp_path) == []
    assert documents(tmp_path)


def remove_drafts_of_notes(directory: Path) -> None:
    """Remove drafts as gc does, without the lock that keeps it from those of notes."""
    for folder in (directory / ".notes", *(directory / ".notes").iterdir()):
        if folder.is_dir():
            remove_drafts(str(folder), of_old_versions=True)


def test_a_draft_of_an_old_version_goes_once_nobody_can_write_to_it(tmp_path: Path) -> None:
    with SyncClient.file(tmp_path) as client:
        client.save("coder", session_id="s", execution_state=1)
        young = tmp_path / "coder" / "s" / ".tmp-0123456789abcdef"
        old = tmp_path / "coder" / "s" / ".tmp-0123456789abcdee"
        young.write_bytes(b"half")
        old.write_bytes(b"half")
        os.utime(old, (time.time() - 3600,) * 2)

        client.gc()

        assert drafts(tmp_path) == [young]


def test_what_is_not_a_draft_stays(tmp_path: Path) -> None:
    with SyncClient.file(tmp_path) as client:
        client.save("coder", session_id="s", execution_state=1)
        mine = tmp_path / "coder" / "s" / ".tmp-of-mine"
        aside = tmp_path / "coder" / "s" / ".holdfast-tmp-file-0123456789abcdef"
        mine.write_bytes(b"mine")
        aside.mkdir()

        client.gc()

        assert mine.exists()
        assert aside.exists()
