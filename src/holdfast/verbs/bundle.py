"""Bundles: one self-describing, checksummed file that moves checkpoints between any two stores.

A bundle is a line of JSON that says what it is, then frames: each record after the chunks that no
record before it needed. The last frame is the SHA-256 of all that precedes it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from holdfast._version import __version__
from holdfast.core.codec import pack, unpack
from holdfast.core.format import ID_BYTES, MAX_CHUNK, compress
from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    InvalidArgumentError,
    StoreFormatError,
    StoreFullError,
)
from holdfast.model import CheckpointInfo, as_framework, microseconds, moment
from holdfast.stores.base import Commit, MissingBase, Query, gather
from holdfast.verbs import plan
from holdfast.verbs.checks import check_record
from holdfast.verbs.engine import Engine
from holdfast.verbs.plan import Plan
from holdfast.verbs.read import find, resolve, verify_record
from holdfast.verbs.upkeep import Progress

FORMAT = "holdfast-bundle"
VERSION = 1
_CHUNK, _RECORD, _END = b"c", b"r", b"e"
_LENGTH = 4
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Exported:
    """What went into a bundle."""

    path: Path
    checkpoints: int
    chunks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What a bundle brought: new checkpoints, and those that were there already."""

    checkpoints: int
    skipped: int


def export(
    engine: Engine,
    file: str | Path,
    agent_id: str | None,
    session_id: str | None,
    ids: Collection[str] | None,
    progress: Progress | None,
) -> Plan[Exported]:
    """Write checkpoints with all their chunks to a bundle, oldest first."""
    infos = yield from _chosen(agent_id, session_id, ids)
    path = _path(file)
    writer = yield from plan.do(lambda: _Writer(path, len(infos)))
    try:
        for done, info in enumerate(reversed(infos), 1):
            record = yield from plan.load(info.checkpoint_id)
            if record is not None:  # one may expire while they are read
                verify_record(record.info)
                yield from plan.do(lambda r=record: writer.add(r.info, r.chunks))  # type: ignore[misc]
            if progress is not None:
                progress(done, len(infos))
        return (yield from plan.do(writer.finish))
    finally:
        writer.abandon()


def _chosen(
    agent_id: str | None, session_id: str | None, ids: Collection[str] | None
) -> Plan[list[CheckpointInfo]]:
    if ids is None:
        if agent_id is None and session_id is None:
            return (yield from plan.query(Query()))
        return (yield from find(agent_id=agent_id, session_id=session_id, limit=None))
    if isinstance(ids, str):
        raise InvalidArgumentError("ids is a list of checkpoint ids, not one string")
    whole: list[str] = []
    for checkpoint_id in ids:
        whole += [(yield from resolve(checkpoint_id))]
    infos = yield from plan.query(Query(ids=whole))
    missing = set(whole) - {info.checkpoint_id for info in infos}
    if missing:
        raise CheckpointNotFoundError(min(missing))
    return infos


def _path(file: object) -> Path:
    if not isinstance(file, (str, os.PathLike)) or not os.fspath(file):
        raise InvalidArgumentError(f"a bundle is named by a path, not {file!r}")
    return Path(file)


class _Writer:
    """Writes a bundle beside its path and moves it there when it is whole."""

    def __init__(self, path: Path, checkpoints: int) -> None:
        if path.is_dir():
            raise InvalidArgumentError(f"{path} is a directory: name the bundle's file")
        self.path = path
        with self._errors():
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        self._part = Path(name)
        self._file = os.fdopen(descriptor, "wb")
        self._hash = hashlib.sha256()
        self._written: set[bytes] = set()
        self._records = 0
        header = {
            "format": FORMAT,
            "version": VERSION,
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

    def add(self, info: CheckpointInfo, chunks: dict[bytes, bytes]) -> None:
        with self._errors():
            for name, raw in chunks.items():
                if name not in self._written:
                    self._frame(_CHUNK, name + compress(raw))
                    self._written.add(name)
            self._frame(_RECORD, pack(_as_plain(info)))
        self._records += 1

    def finish(self) -> Exported:
        with self._errors():
            self._frame(_END, b"")
            self._file.write(self._hash.digest())
            self._file.flush()
            os.fsync(self._file.fileno())
            size = self._file.tell()
            self._file.close()
            self._part.replace(self.path)
        return Exported(self.path, self._records, len(self._written), size)

    def abandon(self) -> None:
        """Remove what was written if it was not finished."""
        with suppress(OSError):  # what it could not write is not wanted any more
            self._file.close()
        self._part.unlink(missing_ok=True)


def _as_plain(info: CheckpointInfo) -> dict[str, Any]:
    plain = {f.name: getattr(info, f.name) for f in fields(info)}
    return {**plain, "framework": info.framework.value, "created_at": microseconds(info.created_at)}


def _from_plain(data: bytes) -> CheckpointInfo:
    try:
        plain = unpack(data, "raw")
        framework, created_at = as_framework(plain["framework"]), moment(plain["created_at"])
        info = CheckpointInfo(**{**plain, "framework": framework, "created_at": created_at})
        check_record(info)
        return info
    except (KeyError, OverflowError, TypeError, InvalidArgumentError) as error:
        raise CheckpointIntegrityError(None, f"unreadable record in the bundle ({error})") from None


def import_(engine: Engine, file: str | Path, progress: Progress | None) -> Plan[Imported]:
    """Bring the checkpoints of a bundle into this store; those it has are left as they are."""
    reader = yield from plan.do(lambda: _Reader(_path(file)))
    try:
        known = yield from _known(reader.records)
        new = 0
        last: tuple[str | None, Collection[bytes]] = (None, ())
        for done, info in enumerate(reader.records, 1):
            if info.checkpoint_id not in known and not info.is_expired():
                chunks = yield from plan.do(lambda i=info: reader.chunks_of(i))  # type: ignore[misc]
                new += yield from _bring(info, chunks, *last)
                if engine.shares_chunks:
                    last = info.checkpoint_id, chunks.keys()
            if progress is not None:
                progress(done, len(reader.records))
        return Imported(new, len(reader.records) - new)
    finally:
        reader.close()


def _known(records: list[CheckpointInfo]) -> Plan[set[str]]:
    """Those that the store has already; one of other content is a conflict."""
    checksums = {info.checkpoint_id: info.checksum for info in records}
    known: set[str] = set()
    for start in range(0, len(records), _PAGE):
        ids = [info.checkpoint_id for info in records[start : start + _PAGE]]
        for info in (yield from plan.query(Query(ids=ids, include_expired=True))):
            if info.checksum != checksums[info.checkpoint_id]:
                raise CheckpointConflictError(info.checkpoint_id)
            known.add(info.checkpoint_id)
    return known


def _bring(
    info: CheckpointInfo, chunks: dict[bytes, bytes], base: str | None, sent: Collection[bytes]
) -> Plan[bool]:
    """Commit a record, without the chunks sent with the one before it; False if it is there."""
    fresh = {name: data for name, data in chunks.items() if name not in sent}
    try:
        try:
            yield from plan.commit(Commit(info, fresh, base, needs_parent=False))
        except MissingBase:  # removed meanwhile, and its chunks perhaps too
            yield from plan.commit(Commit(info, chunks, None, needs_parent=False))
    except CheckpointConflictError:
        yield from _known([info])  # another process may be importing the same bundle
        return False
    return True


class _Reader:
    """Reads a bundle: checks it as a whole first, then gives records and their chunks."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise InvalidArgumentError(
                f"no bundle can be read at {path}: {error.strerror}"
            ) from error
        self._places: dict[bytes, tuple[int, int]] = {}
        self.records: list[CheckpointInfo] = []
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
        except (ValueError, KeyError, TypeError):
            version = None
        if version is None:
            raise StoreFormatError(f"{path} is not a Holdfast bundle")
        if version != VERSION:
            raise StoreFormatError(
                f"{path} is a bundle of version {version}, this Holdfast reads {VERSION}: upgrade"
            )
        for kind, data, at in self._frames(digest):
            if kind == _CHUNK:
                self._places[data[:ID_BYTES]] = (at + ID_BYTES, len(data) - ID_BYTES)
            elif kind == _RECORD:
                self.records.append(_from_plain(data))
                verify_record(self.records[-1])
        if self._file.read(digest.digest_size + 1) != digest.digest():
            raise CheckpointIntegrityError(None, "the bundle does not match its checksum")
        if len({info.checkpoint_id for info in self.records}) != len(self.records):
            raise CheckpointIntegrityError(None, "the bundle holds a checkpoint twice")

    def _frames(self, digest: Any) -> Iterator[tuple[bytes, bytes, int]]:
        while True:
            head = self._file.read(1 + _LENGTH)
            kind, length = head[:1], int.from_bytes(head[1:], "big")
            if len(head) != 1 + _LENGTH or kind not in (_CHUNK, _RECORD, _END):
                raise CheckpointIntegrityError(None, "the bundle is cut short or damaged")
            if length > 2 * MAX_CHUNK:
                raise CheckpointIntegrityError(None, f"a frame of the bundle claims {length} bytes")
            at = self._file.tell()
            data = self._file.read(length)
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
                at, length = self._places[name]
                self._file.seek(at)
                found[name] = self._file.read(length)
        return found

    def chunks_of(self, info: CheckpointInfo) -> dict[bytes, bytes]:
        """The chunks a record needs, as they are stored, each checked against its name."""
        try:
            names = gather(bytes.fromhex(info.content_id), self._stored)
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None
        except ValueError:
            raise CheckpointIntegrityError(info.checkpoint_id, "it names no content") from None
        return self._stored(names)

    def close(self) -> None:
        self._file.close()
