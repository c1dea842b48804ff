"""Notes of the file store: ``<root>/.notes/<scope>/<seq>-<key>.json``, one document each.

No agent's folder begins with a dot, so the two never meet. Whoever writes holds a lock, in which
places are given out and keys compared; readers share it while they list names.

**All or nothing.** A single note is made whole and durable before it gets its name. Where a commit
has more, a *promise* is kept first, ``.notes/.promise-*``: which documents belong together. With a
record among them the record comes last, and the notes of a promise count once it is there; without
one they count once the promise is removed. What a killed writer left behind is therefore never
seen, and the next writer removes it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count, islice
from operator import attrgetter
from typing import NamedTuple

from holdfast.core.json_form import dumps, loads
from holdfast.errors import CheckpointIntegrityError, NoteExistsError, StoreFormatError
from holdfast.model import CheckpointInfo, microseconds
from holdfast.stores.base import NOTE_TIES, Note
from holdfast.stores.file.folders import (
    JSON,
    LONGEST_LINE,
    DocumentFolders,
    directories,
    hashed,
    is_hashed,
    open_document,
    quoted,
    remove_if_empty,
    tidy_folder,
    unquoted,
)
from holdfast.stores.file.note_document import compose_note, read_note
from holdfast.system.atomic_files import remove_drafts
from holdfast.system.crash_points import reach
from holdfast.system.directories import entries, sync_directory, unlink
from holdfast.system.file_lock import LockFile, locked
from holdfast.system.private_files import make_directory

_PROMISE = ".promise-"
_DIGITS = 20


class NotePosition(NamedTuple):
    """Where a note lies; sorts by ``seq``."""

    seq: int
    scope: str
    key: str
    """As far as the name of its document tells it."""
    path: str

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def stem(self) -> str:
        """Return the part of its document's name that stands for the key."""
        return os.path.basename(self.path)[_DIGITS + 1 : -len(JSON)]


class Notes:
    """The notes below a root; safe for many threads and processes."""

    def __init__(self, folders: DocumentFolders) -> None:
        self.folders = folders
        self.root = os.path.join(folders.root, ".notes")
        self._lock = os.path.join(self.root, ".lock")

    def changing(self) -> LockFile:
        """Keep all others from notes until it is closed; see that nothing half done is left."""
        with suppress(FileExistsError):
            make_directory(self.root)
        held = LockFile(self._lock)
        try:
            for promise in list(self._promises()):
                promise.settle()
        except BaseException:
            held.close()
            raise
        return held

    def any(self) -> bool:
        """Return whether notes were ever written."""
        return bool(entries(self.root))

    def find(
        self, scopes: Collection[str] | None, after: int, limit: int | None, now: datetime
    ) -> list[Note]:
        """Return notes past a place that have not expired, by ``seq``."""
        places = sorted(place for place in self._kept(scopes) if place.seq > after)
        return list(islice(_unexpired(places, now), limit))

    def find_last(self, scopes: Collection[str], count: int, now: datetime) -> list[Note]:
        """Return of each scope the last notes that have not expired, by ``seq``."""
        by_scope: dict[str, list[NotePosition]] = {}
        for place in self._kept(scopes):
            by_scope.setdefault(place.scope, []).append(place)
        found: list[Note] = []
        for places in by_scope.values():
            found += islice(_unexpired(sorted(places, reverse=True), now), count)
        return sorted(found, key=attrgetter("seq"))

    def _kept(self, scopes: Collection[str] | None) -> list[NotePosition]:
        """Return where the notes of some scopes are, but for those that do not count yet."""
        if not self.any():
            return []
        with locked(self._lock, shared=True):
            places = list(self._places(scopes))
            unkept = [promise for promise in self._promises() if not promise.is_kept()]
        hidden = {place.path for promise in unkept for place in promise.places}
        return [place for place in places if place.path not in hidden]

    def add(self, notes: Collection[Note], record: CheckpointInfo | None = None) -> Promise:
        """Write notes, while ``changing``; they count when the promise is kept."""
        self._check_keys(notes)
        seqs = count(self._reserve(len(notes)))
        places = [self.place(note.scope, note.key, next(seqs)) for note in notes]
        documents = list(map(compose_note, notes, [place.seq for place in places]))
        promise = Promise(self, places, None if record is None else _names(record))
        try:
            if record is not None or len(places) > 1:
                promise.write()
            for place, document in zip(places, documents, strict=True):
                with self.folders.drafted(place.folder, document) as draft:
                    draft.link(place.path)
                    reach("file:linked")
            for folder in {place.folder for place in places}:
                sync_directory(folder)
            self.sync()
        except BaseException:
            promise.take_back()
            raise
        return promise

    def has(self, scope: str, key: str) -> bool:
        """Return whether a scope has a note, while ``changing``."""
        return _part(key) in {place.stem for place in _in_folder(self._folder(scope), scope)}

    def remove(self, scopes: Iterable[str]) -> None:
        """Remove all notes of these scopes, while ``changing``."""
        for scope in scopes:
            self.unlink(place.path for place in _in_folder(self._folder(scope), scope))

    def sweep(self, now: datetime) -> None:
        """Remove expired notes and what dead writers left, while ``changing``."""
        found = ((place, _read(place)) for place in self._places(None))
        self.unlink(place.path for place, note in found if note and note.is_expired(now))
        for folder in directories(self.root):
            tidy_folder(folder)
        remove_drafts(self.root, of_old_versions=True)

    def place(self, scope: str, key: str, seq: int) -> NotePosition:
        """Return where a note belongs."""
        name = f"{seq:0{_DIGITS}}-{_part(key)}{JSON}"
        return NotePosition(seq, scope, key, os.path.join(self._folder(scope), name))

    def sync(self) -> None:
        """Make durable which scopes and promises there are."""
        sync_directory(self.root)
        sync_directory(self.folders.root)

    def unlink(self, paths: Iterable[str]) -> None:
        """Remove documents, durably."""
        for folder in {os.path.dirname(path) for path in paths if unlink(path)}:
            sync_directory(folder)
            remove_if_empty(folder)

    def _folder(self, scope: str) -> str:
        return os.path.join(self.root, _part(scope))

    def _places(self, scopes: Collection[str] | None) -> Iterator[NotePosition]:
        if scopes is None:
            for folder in directories(self.root):
                yield from _in_folder(folder, _name(os.path.basename(folder)))
        else:
            for scope in set(scopes):
                yield from _in_folder(self._folder(scope), scope)

    def _check_keys(self, notes: Collection[Note]) -> None:
        taken: dict[str, set[str]] = {}
        for note in notes:
            if note.scope not in taken:
                places = _in_folder(self._folder(note.scope), note.scope)
                taken[note.scope] = {place.stem for place in places}
            stem = _part(note.key)
            if stem in taken[note.scope]:
                raise NoteExistsError(note)
            taken[note.scope].add(stem)

    def _reserve(self, number: int) -> int:
        """Return the first of that many places no note has had; the lock's file has the last."""
        with open(self._lock, "r+b") as file:
            text = file.read(_DIGITS + 1).strip()
            if text.isdigit() and len(text) <= _DIGITS:
                last = int(text)
            else:  # new, or lost with the machine's power
                last = max((place.seq for place in self._places(None)), default=0)
            first = max(microseconds(datetime.now(UTC)) * NOTE_TIES, last + 1)
            file.seek(0)
            file.write(b"%d\n" % (first + number - 1))
        return first

    def _promises(self) -> Iterator[Promise]:
        for entry in entries(self.root):
            if entry.name.startswith(_PROMISE):
                yield Promise.read(self, entry.path)


class Promise:
    """Which notes of a commit belong together, and the names of the record that comes with them."""

    def __init__(
        self,
        notes: Notes,
        places: list[NotePosition],
        record: list[str] | None = None,
        path: str | None = None,
    ) -> None:
        self.places = places
        self._notes = notes
        self._record = record
        self._path = path

    @classmethod
    def read(cls, notes: Notes, path: str) -> Promise:
        """Return the promise that a writer left."""
        with open_document(path) as file:
            data = loads(file.read())
        try:
            places = [notes.place(*place) for place in data["places"]]
            record = data["record"]
            if record is not None and [*map(type, record)] != [str] * 4:
                raise TypeError
            return cls(notes, places, record, path)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise CheckpointIntegrityError(
                None, f"{path} cannot be read: remove it, and notes half written are seen"
            ) from None

    def write(self) -> None:
        """Say durably what is going to be written."""
        places = [[place.scope, place.key, place.seq] for place in self.places]
        document = dumps({"record": self._record, "places": places}).encode()
        with self._notes.folders.drafted(self._notes.root, document) as draft:
            self._path = os.path.join(self._notes.root, _PROMISE + secrets.token_hex(8))
            draft.link(self._path)
        self._notes.sync()

    def is_kept(self) -> bool:
        """Return whether all is there: the record comes last."""
        return self._record_folder() is not None

    def _record_folder(self) -> str | None:
        """Return where the record is, if it is there."""
        if self._record is None:
            return None
        agent_id, session_id, checkpoint_id, checksum = self._record
        folders = self._notes.folders
        path = folders.find(checkpoint_id, folders.folder(agent_id, session_id))
        if path is None:
            return None
        with open_document(path) as file:  # another record may have got the same id
            return (
                os.path.dirname(path) if checksum.encode() in file.readline(LONGEST_LINE) else None
            )

    def settle(self) -> None:
        """Finish what a writer left, or undo it."""
        folder = self._record_folder()
        if folder is None:
            self.take_back()
        else:
            self._notes.folders.sync_up(folder)  # its writer may not have come to that
            self.keep()

    def keep(self) -> None:
        """Let the notes count."""
        if self._path is not None and unlink(self._path) and self._record is None:
            sync_directory(self._notes.root)

    def take_back(self) -> None:
        """Remove the notes."""
        self._notes.unlink(place.path for place in self.places)
        if self._path is not None:
            unlink(self._path)


def _names(record: CheckpointInfo) -> list[str]:
    return [record.agent_id, record.session_id, record.checkpoint_id, record.checksum]


def _unexpired(places: Iterable[NotePosition], now: datetime) -> Iterator[Note]:
    """Read notes one by one, and yield those that are there and have not expired."""
    found = map(_read, places)
    return (note for note in found if note is not None and not note.is_expired(now))


def _in_folder(folder: str, scope: str) -> Iterator[NotePosition]:
    for entry in entries(folder):
        seq, _, name = entry.name.partition("-")
        stem, suffix = os.path.splitext(name)
        if suffix == JSON and len(seq) == _DIGITS and seq.isdecimal():
            yield NotePosition(int(seq), scope, _name(stem), entry.path)


def _read(place: NotePosition) -> Note | None:
    """Return a note; None if it was removed just now. A damaged one does not fit its checksum."""
    try:
        with open_document(place.path) as file:
            note = read_note(file.read())
    except FileNotFoundError:
        return None
    except StoreFormatError as error:
        raise StoreFormatError(f"{place.path} cannot be read: {error}") from None
    except CheckpointIntegrityError:
        return _damaged(place)
    named = (note.seq, _part(note.scope), _part(note.key))
    is_there = named == (place.seq, os.path.basename(place.folder), place.stem)
    return note if is_there else _damaged(place)


def _damaged(place: NotePosition) -> Note:
    return Note(place.scope, place.key, b"", b"", seq=place.seq)


def _part(name: str) -> str:
    """Return a name as one part of a path, unique also where letters have no case."""
    part = quoted(name)
    return part if part and name == name.lower() else hashed(name, part)


def _name(part: str) -> str:
    return part if is_hashed(part) else unquoted(part)
