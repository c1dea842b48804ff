"""The file of a bundle: how it is written, and how it is read without trusting it.

A bundle is a line of JSON that says what it is, then frames: each record after the chunks that no
record before it needed, then the notes of that checkpoint with theirs. The last frame is the
SHA-256 of all that precedes it. A bundle is of version 2 if there are notes in it, else of version
1, which Holdfast 0.1.0 reads too.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from holdfast._version import __version__
from holdfast.core.chunk_decoder import decode, references
from holdfast.core.chunk_format import (
    ID_BYTES,
    MAX_CHUNK,
    chunk_id,
    compress,
    decompress,
    uncompressed,
)
from holdfast.core.codec import pack, unpack
from holdfast.core.json_form import state_to_json, unrevived
from holdfast.errors import (
    CheckpointIntegrityError,
    InvalidArgumentError,
    StoreFormatError,
    StoreFullError,
)
from holdfast.model import CheckpointInfo, check_record, checked_name, microseconds, moment
from holdfast.model.decoding import info_of_plain
from holdfast.model.record import plain_of
from holdfast.stores.base import Note, NotesOnly, gather
from holdfast.system.atomic_files import Draft
from holdfast.system.directories import sync_directory
from holdfast.system.unfinished import Unfinished
from holdfast.verbs.chains import circle_error, circles, is_next, next_in
from holdfast.verbs.links import Walk, links_of
from holdfast.verbs.notes import check
from holdfast.verbs.read import verify_record

FORMAT = "holdfast-bundle"
WITHOUT_NOTES, WITH_NOTES = 1, 2
_CHUNK, _RECORD, _NOTE, _END = b"c", b"r", b"n", b"e"
_LENGTH = 4
_LONGEST_NAME = 100
_CONTENT_ID = re.compile(r"[0-9a-f]{40}")


class Writer:
    """Writes a bundle beside its path and moves it there when it is whole."""

    def __init__(
        self, path: Path, version: int, checkpoints: int, files: Collection[str] = ()
    ) -> None:
        path = path.resolve() if path.is_symlink() else path
        if path.is_dir():
            raise InvalidArgumentError(f"{path} is a directory: name the bundle's file")
        if path.exists() and not path.is_file():
            raise InvalidArgumentError(f"{path} is no regular file: name the bundle's file")
        self.path = path
        start = f".{path.name[:_LONGEST_NAME]}.holdfast-part-"
        self._unfinished = Unfinished(files, os.fsencode(path.parent), os.fsencode(start))
        try:
            with self._errors():
                self._draft = Draft(os.fspath(path.parent), os.fsdecode(self._unfinished.name))
                self._file = os.fdopen(self._draft.fd, "wb", closefd=False)
        except BaseException:
            self._unfinished.close()
            raise
        self._hash = hashlib.sha256()
        self._written: set[bytes] = set()
        self.linked: set[bytes] = set()
        """Chunks that links lead to, and that are written with all they lead to."""
        self.records = 0
        self.notes = 0
        header = {
            "format": FORMAT,
            "version": version,
            "holdfast": __version__,
            "created_at": datetime.now(UTC).isoformat(),
            "checkpoints": checkpoints,
        }
        self._write(json.dumps(header).encode() + b"\n")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise StoreFullError(
                    f"no space is left for the bundle {self.path}: free some and export again"
                ) from error
            raise InvalidArgumentError(
                f"no bundle can be written at {self.path}: {error.strerror}"
            ) from error

    def _write(self, data: bytes) -> None:
        self._hash.update(data)
        self._file.write(data)

    def _frame(self, kind: bytes, data: bytes) -> None:
        self._write(kind + len(data).to_bytes(_LENGTH, "big"))
        self._write(data)

    def add(self, info: CheckpointInfo, chunks: Mapping[bytes, bytes]) -> None:
        with self._errors():
            self._add_chunks(chunks)
            self._frame(_RECORD, pack(plain_of(info.__dict__)))
        self.records += 1

    def add_note(self, note: Note, chunks: Mapping[bytes, bytes]) -> None:
        with self._errors():
            self._add_chunks(chunks)
            self._frame(_NOTE, _note_as_plain(note))
        self.notes += 1

    def _add_chunks(self, chunks: Mapping[bytes, bytes]) -> None:
        for name, raw in chunks.items():
            if name not in self._written:
                self._frame(_CHUNK, name + compress(raw))
                self._written.add(name)

    def add_linked(self, stored: Mapping[bytes, bytes]) -> None:
        with self._errors():
            for name, data in stored.items():
                if name not in self._written:
                    self._frame(_CHUNK, name + data)
                    self._written.add(name)

    @property
    def chunks(self) -> int:
        """How many have been written."""
        return len(self._written)

    def finish(self) -> int:
        """Move the bundle to its place; returns how many bytes it has."""
        with self._errors():
            self._frame(_END, b"")
            self._file.write(self._hash.digest())
            size = self._file.tell()
            self._file.close()
            self._draft.sync()
            self._draft.replace(os.fspath(self.path))
            sync_directory(os.fspath(self.path.parent))
        return size

    def close(self) -> None:
        """Let go of everything, and remove what was written if it was not finished."""
        with suppress(OSError):  # what it could not write is not wanted any more
            self._file.close()
        self._draft.close()
        self._unfinished.close()


def _from_plain(data: bytes) -> CheckpointInfo:
    try:
        info = info_of_plain(unpack(data, "raw"))
        check_record(info)
        if not _CONTENT_ID.fullmatch(info.content_id):
            raise ValueError("it names no content")
        return info
    except (LookupError, OverflowError, TypeError, ValueError) as error:
        raise CheckpointIntegrityError(None, f"unreadable record in the bundle ({error})") from None


def _note_as_plain(note: Note) -> bytes:
    until = None if note.expires_at is None else microseconds(note.expires_at)
    return pack([note.scope, note.key, until, note.body, note.checksum])


def _note_from_plain(data: bytes) -> Note:
    try:
        scope, key, until, body, checksum = unpack(data, "raw")
        if type(body) is not bytes or type(checksum) is not bytes:
            raise TypeError("its body is of another type")
        expires_at = None if until is None else moment(until)
        note = Note(checked_name("scope", scope), checked_name("key", key), body, checksum)
        note = replace(note, expires_at=expires_at)
    except (OverflowError, TypeError, ValueError) as error:
        raise CheckpointIntegrityError(None, f"unreadable note in the bundle ({error})") from None
    check(note)
    return note


def _opened(path: Path) -> BinaryIO:
    """Return the file of a bundle; a pipe would keep its reader waiting, a device has no end."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError as error:
        raise InvalidArgumentError(f"no bundle can be read at {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InvalidArgumentError(f"no bundle can be read at {path}: it is no regular file")
    return file


class Reader:
    """Reads a bundle: checks it as a whole first, then gives records and their chunks."""

    def __init__(self, path: Path) -> None:
        self._file = _opened(path)
        self._size = os.fstat(self._file.fileno()).st_size
        self._places: dict[bytes, tuple[int, int]] = {}
        self._brought: set[bytes] = set()
        self.records: list[CheckpointInfo] = []
        self.noted: dict[str, dict[str, tuple[int, int]]] = {}
        """Where the notes of each checkpoint are, by key."""
        self.problems: list[str] = []
        """What is whole and yet leads nowhere, in words."""
        try:
            self._read_all(path)
        except BaseException:
            self.close()
            raise

    def _read_all(self, path: Path) -> None:
        digest = hashlib.sha256()
        line = self._file.readline(4096)
        digest.update(line)
        try:
            header = json.loads(line)
            version = header["version"] if header["format"] == FORMAT else None
        except (ValueError, KeyError, TypeError, RecursionError):
            version = None  # whatever it is
        if type(version) is not int:
            raise StoreFormatError(f"{path} is not a Holdfast bundle")
        if version not in (WITHOUT_NOTES, WITH_NOTES):
            raise StoreFormatError(
                f"{path} is a bundle of version {str(version)[:20]}, this Holdfast reads up to "
                f"{WITH_NOTES}: upgrade"
            )
        for kind, data, at in self._frames(digest):
            if kind == _CHUNK:
                self._places[data[:ID_BYTES]] = (at + ID_BYTES, len(data) - ID_BYTES)
            elif kind == _RECORD:
                self.records.append(_from_plain(data))
                verify_record(self.records[-1])
            elif kind == _NOTE and version == WITH_NOTES:
                self._place_note(data, at)
            else:
                raise CheckpointIntegrityError(None, "the bundle holds what its version has not")
        if self._file.read(digest.digest_size + 1) != digest.digest():
            raise CheckpointIntegrityError(None, "the bundle does not match its checksum")
        if len({info.checkpoint_id for info in self.records}) != len(self.records):
            raise CheckpointIntegrityError(None, "the bundle holds a checkpoint twice")
        self.problems = [*self._circles(), *self._led_astray()]

    def _circles(self) -> Iterator[str]:
        for ids in circles({info.checkpoint_id: info.parent_id for info in self.records}):
            yield str(circle_error(ids))

    def _led_astray(self) -> Iterator[str]:
        """Notes of what followed a checkpoint that no session could have."""
        sessions = {info.checkpoint_id: (info.agent_id, info.session_id) for info in self.records}
        following: dict[str, str | None] = {}
        for scope, places in self.noted.items():
            for key, place in places.items():
                if is_next(key):
                    named = following[scope] = self._followed_by(scope, place)
                    if sessions.get(named, sessions[scope]) != sessions[scope]:
                        yield f"checkpoint {scope!r}: its note {key!r} leads to another session"
        for ids in circles(following):
            yield str(circle_error(ids, "the notes of what followed it lead"))

    def _followed_by(self, scope: str, place: tuple[int, int]) -> str:
        root, chunks = self._chunks_of_note(_note_from_plain(self._at(*place)))
        try:
            return next_in(decode(root, chunks, on_unknown="raw"))
        except ValueError as error:
            raise CheckpointIntegrityError(scope, str(error)) from None

    def _place_note(self, data: bytes, at: int) -> None:
        note = _note_from_plain(data)
        if not self.records or self.records[-1].checkpoint_id != note.scope:
            raise CheckpointIntegrityError(note.scope, "its notes do not follow it in the bundle")
        places = self.noted.setdefault(note.scope, {})
        if note.key in places:
            raise CheckpointIntegrityError(note.scope, "the bundle holds a note of it twice")
        if any(name not in self._places for name, _ in references(decompress(note.body))):
            raise CheckpointIntegrityError(
                note.scope, "the chunks of its notes are not before them"
            )
        places[note.key] = (at, len(data))

    def _frames(self, digest: Any) -> Iterator[tuple[bytes, bytes, int]]:
        while True:
            head = self._file.read(1 + _LENGTH)
            kind, length = head[:1], int.from_bytes(head[1:], "big")
            if len(head) != 1 + _LENGTH or kind not in (_CHUNK, _RECORD, _NOTE, _END):
                raise CheckpointIntegrityError(None, "the bundle is cut short or damaged")
            if length > 2 * MAX_CHUNK:
                raise CheckpointIntegrityError(None, f"a frame of the bundle claims {length} bytes")
            at = self._file.tell()
            data = self._file.read(length) if length <= self._size - at else b""
            if len(data) != length:
                raise CheckpointIntegrityError(None, "the bundle is cut short")
            digest.update(head)
            digest.update(data)
            if kind == _END:
                return
            yield kind, data, at

    def _stored(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        found = {}
        for name in names:
            if name in self._places:
                found[name] = self._at(*self._places[name])
        return found

    def _at(self, at: int, length: int) -> bytes:
        self._file.seek(at)
        return self._file.read(length)

    def chunks_of(self, info: CheckpointInfo) -> dict[bytes, bytes]:
        """Return the chunks a record needs, as they are stored, each checked against its name."""
        try:
            names = gather(bytes.fromhex(info.content_id), self._stored)
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None
        except ValueError:
            raise CheckpointIntegrityError(info.checkpoint_id, "it names no content") from None
        return self._stored(names)

    def linked_of(self, info: CheckpointInfo) -> Iterator[dict[bytes, bytes]]:
        """Yield what the links of a checkpoint and its notes lead to, as stored, page by page."""
        try:
            root = bytes.fromhex(info.content_id)
            level = links_of(root, gather(root, self._stored))
            for place in self.noted.get(info.checkpoint_id, {}).values():
                level.update(links_of(*self._chunks_of_note(_note_from_plain(self._at(*place)))))
            walk = Walk(level, self._brought)
            while names := walk.wanted():
                stored = self._stored(names)
                walk.give(stored)
                yield stored
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None
        except ValueError:
            raise CheckpointIntegrityError(info.checkpoint_id, "it names no content") from None

    def notes_of(self, checkpoint_id: str, there: Collection[str], in_chunks: bool) -> NotesOnly:
        """Return a checkpoint's notes that are not there and have not expired, with their chunks.

        Where a store keeps no chunks, each holds all it needs.
        """
        notes: list[Note] = []
        stored: dict[bytes, bytes] = {}
        for key, place in self.noted[checkpoint_id].items():
            note = _note_from_plain(self._at(*place))
            if key in there or note.is_expired(datetime.now(UTC)):
                continue
            root, chunks = self._chunks_of_note(note)
            if in_chunks:
                stored.update(self._stored(chunks.keys() - {root}))
            elif len(chunks) > 1:
                note = Note.of(note.scope, key, _in_one(root, chunks), note.expires_at)
            notes.append(note)
        return NotesOnly(tuple(notes), stored)

    def _chunks_of_note(self, note: Note) -> tuple[bytes, Mapping[bytes, bytes]]:
        """Return the name of a note's body, and the body and all chunks it needs, unpacked."""
        try:
            root = chunk_id(decompress(note.body))
            return root, gather(root, lambda names: {**self._stored(names), root: note.body})
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(note.scope, error.reason) from None

    def close(self) -> None:
        self._file.close()


def _in_one(root: bytes, chunks: Mapping[bytes, bytes]) -> bytes:
    """Return what a root and all its chunks say, as one body; nothing is revived."""
    return uncompressed(pack(unrevived(state_to_json(root, chunks))))
