"""What children of the file store's tests of notes do: commit once, or write many at once."""

import os
import signal
from dataclasses import replace
from itertools import count
from pathlib import Path

from holdfast.errors import NoteExistsError
from holdfast.stores.base import Commit, Note, NotesOnly
from holdfast.stores.file.store import FileStore
from holdfast.system import crash_points
from holdfast.testing.samples import keep_notes, make_commit, make_note
from tests.integration.fork_server import tell

ID = "01900000-0000-7000-8000-000000000001"
NOTES = (make_note("/a", "new", 1), make_note(ID, "new", 2), make_note("/b", "new", 3))
COMMITS: dict[str, Commit | NotesOnly] = {
    "one note": NotesOnly(NOTES[:1], {}),
    "several notes": NotesOnly(NOTES, {}),
    "a record with notes": replace(make_commit(checkpoint_id=ID), notes=NOTES),
}

KINDS_OF_DRAFTS: dict[str, Commit | NotesOnly] = {
    "a document": make_commit(checkpoint_id=ID),
    "a note": COMMITS["one note"],
    "a promise": COMMITS["several notes"],
    "a chunk": NotesOnly((), {bytes(20): b"data"}),
}
"""Commits that write such a draft first."""


def draft_and_be_killed(directory: str, kind: str, point: str) -> None:
    """Begin a commit, and be killed when its first draft has come to a point."""

    def on_reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    crash_points.install(on_reached)
    FileStore(directory).commit(KINDS_OF_DRAFTS[kind])


def commit_until_killed(directory: str, kind: str, point: int) -> None:
    """Make one commit, and be killed when it comes to its nth point."""
    passed = count()

    def on_reached(name: str) -> None:
        if next(passed) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    store = FileStore(directory)
    crash_points.install(on_reached)
    store.commit(COMMITS[kind])
    tell("committed")


def write_many(directory: str, number: int) -> None:
    """Write keys that all processes write, and some of one's own."""
    store = FileStore(Path(directory))
    for step in range(20):
        try:
            store.commit(NotesOnly((make_note("/log", f"shared {step}", number),), {}))
            tell(["won", step])
        except NoteExistsError:
            pass
        keep_notes(store, make_note("/log", f"{number} {step}"))


def key_of(note: Note) -> tuple[str, str]:
    """What names a note."""
    return note.scope, note.key
