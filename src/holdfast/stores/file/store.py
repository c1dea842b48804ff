"""A store of plain files: one readable document for each checkpoint."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    FencedError,
    HoldfastError,
    InvalidArgumentError,
    MissingBaseError,
    MissingParentError,
    NotTheHeadError,
    SerializationError,
    StoreClosedError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
    StoreFullError,
    StoreReadOnlyError,
)
from holdfast.model import CheckpointInfo
from holdfast.stores.base import (
    Collected,
    Commit,
    Note,
    NotesOnly,
    Query,
    Record,
    SessionInfo,
    Stats,
    Store,
    checked_path,
    place_after,
    seq_of,
)
from holdfast.stores.file.chunks import Chunks
from holdfast.stores.file.document import Head, compose, read_chunks, read_head
from holdfast.stores.file.folders import BINARY, JSON, LONGEST_LINE, Folders, open_document
from holdfast.stores.file.notes import Notes
from holdfast.stores.file.order import Last, Order
from holdfast.system.crash_points import reach

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EROFS, errno.EACCES, errno.EPERM)


class Found(NamedTuple):
    """What is told of a document without its payload; sorts by its place."""

    seq: int
    checkpoint_id: str
    info: CheckpointInfo
    size: int


class FileStore(Store):
    """Keeps a checkpoint as ``<directory>/<agent>/<session>/<checkpoint id>.json``.

    Documents are made whole and durable before they get their name, and never change. With
    ``fmt="pickle"`` they are binary and end in ``.pkl``; only their first line is readable.
    Notes are documents of their own, in ``<directory>/.notes``, and so are the chunks of files.
    """

    shares_chunks = False
    files_apart: tuple[str, ...] = ()

    def __init__(
        self,
        directory: str | os.PathLike[str],
        fmt: Literal["json", "pickle"] = "json",
        allow_pickle: bool = False,
    ) -> None:
        if fmt not in ("json", "pickle"):
            raise InvalidArgumentError(f'fmt is "json" or "pickle", not {fmt!r}')
        self._root = os.path.abspath(checked_path(directory))
        self.files = (self._root,)
        self._as_json = fmt == "json"
        self.allow_pickle = allow_pickle or fmt == "pickle"
        self._closed = False
        with self._errors(writing=True):
            self._folders = Folders(self._root)
            self._notes = Notes(self._folders)
            self._chunks = Chunks(self._root)
            self._order = Order(self._folders, self._in_order)
            self._check()

    @property
    def name(self) -> str:
        return f"the file store {self._root}"

    def commit(self, commit: Commit | NotesOnly) -> None:
        with self._working(writing=True):
            if isinstance(commit, NotesOnly) and commit.chunks:
                self._chunks.put(commit.chunks)
            if not commit.notes and commit.unless is None:
                if isinstance(commit, Commit):
                    self._publish(commit, self._checked(commit))
                return
            with self._notes.changing():
                if commit.unless is not None and self._notes.has(*commit.unless):
                    raise FencedError(commit.unless)
                if isinstance(commit, Commit):
                    self._publish_with_notes(commit)
                elif commit.notes:
                    self._notes.add(commit.notes).keep()
                    reach("file:committed")

    def _publish_with_notes(self, commit: Commit) -> None:
        path = self._checked(commit)
        compose(commit, self._as_json)  # what cannot be kept is found before anything is written
        promise = self._notes.add(commit.notes, commit.info)
        try:
            self._publish(commit, path)
        except CheckpointConflictError:
            promise.take_back()
            raise
        except BaseException:  # an interrupt may come when the record is there already
            promise.settle()
            raise
        promise.keep()

    def _checked(self, commit: Commit) -> str:
        """The path of a record, if it may be kept."""
        info, folders = commit.info, self._folders
        suffix = JSON if self._as_json else BINARY
        path = folders.path(info.agent_id, info.session_id, info.checkpoint_id, suffix)
        folder = os.path.dirname(path)
        if folders.find(info.checkpoint_id, folder) is not None:
            raise CheckpointConflictError(info.checkpoint_id)
        if commit.base is not None:
            raise MissingBaseError  # a document holds all chunks it needs
        if commit.needs_parent and info.parent_id and not folders.find(info.parent_id, folder):
            raise MissingParentError
        return path

    def _publish(self, commit: Commit, path: str) -> None:
        info, folder = commit.info, os.path.dirname(path)

        def composed(seq: int | None) -> bytes:
            with _naming(info.checkpoint_id):
                return compose(commit, self._as_json, seq)

        def placed() -> int | None:
            last = self._order.last(folder)
            if commit.follows is not None and commit.follows != ("" if last is None else last[1]):
                raise NotTheHeadError
            after = None if last is None else last[0]
            if commit.behind is not None:
                before = self._found(self._places(commit.behind))
                after = max((each.seq for each in before), default=None)
            seq = place_after(info.created_at, after)
            if last is None or seq > last[0]:
                self._order.follow(folder, seq, info.checkpoint_id)
            return None if seq == seq_of(info.created_at) else seq

        self._folders.publish(info.checkpoint_id, path, composed, placed)

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        with self._working(), _naming(checkpoint_id):
            path = self._folders.find(checkpoint_id)
            if path is None:
                return None
            try:
                with open_document(path) as file:
                    line, rest = file.readline(LONGEST_LINE), file.read()
            except FileNotFoundError:  # removed just now
                return None
            head = self._head(checkpoint_id, path, line, verify)
            if head.info.is_expired():
                return None
            if not head.is_json and not self.allow_pickle:
                raise SerializationError(
                    "$",
                    f'checkpoint {checkpoint_id!r} was saved with fmt="pickle" and is only loaded '
                    "where the client was opened with allow_pickle=True",
                )
            root, chunks = read_chunks(head, rest, verify)
            return Record(replace(head.info, content_id=root.hex()), chunks)

    def _head(self, checkpoint_id: str, path: str, line: bytes, verify: bool = True) -> Head:
        try:
            head = read_head(line, verify)
        except StoreFormatError as error:
            raise StoreFormatError(f"{path} cannot be read: {error}") from None
        info = head.info
        # Without regard to case, which some file systems do not keep.
        place = self._folders.folder(info.agent_id, info.session_id).casefold()
        if info.checkpoint_id != checkpoint_id or os.path.dirname(path).casefold() != place:
            raise CheckpointIntegrityError(checkpoint_id, "its document belongs in another place")
        return head

    def _read(self, checkpoint_id: str, path: str) -> Found | None:
        """What is told of a document, no payload read; None if it was removed just now."""
        with _naming(checkpoint_id):
            try:
                with open_document(path) as file:
                    line, size = file.readline(LONGEST_LINE), os.fstat(file.fileno()).st_size
            except FileNotFoundError:
                return None
            head = self._head(checkpoint_id, path, line)
            if size != len(line) + head.rest_bytes:
                raise CheckpointIntegrityError(checkpoint_id, "its payload was cut off or altered")
            return Found(head.seq, checkpoint_id, head.info, size)

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        with self._working():
            return self._chunks.fetch(names)  # those of a document are in it alone

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        with self._working():
            return self._notes.find(scopes, after, limit, datetime.now(UTC))

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        with self._working():
            documents = self._folders.documents()
            return sorted({i for i, _ in documents if i.startswith(prefix) and i > after})[:limit]

    def query(self, query: Query) -> list[CheckpointInfo]:
        now = datetime.now(UTC)
        with self._working():
            if query.ids is not None:
                places = self._places(set(query.ids))
            else:
                places = self._folders.documents(query.agent_id, query.session_id)
            found = sorted(f for f in self._found(places) if query.admits(f.info, now))
            if query.before is not None:
                last = next(self._found(self._places([query.before])), None)
                found = [each for each in found if last is not None and each < last]
        return [each.info for each in found[::-1][: query.limit]]

    def _places(self, checkpoint_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        for checkpoint_id in checkpoint_ids:
            path = self._folders.find(checkpoint_id)
            if path is not None:
                yield checkpoint_id, path

    def _found(self, places: Iterable[tuple[str, str]]) -> Iterator[Found]:
        found = (self._read(checkpoint_id, path) for checkpoint_id, path in places)
        return (read for read in found if read is not None)

    def _in_order(self, folder: str) -> Iterator[Last]:
        """The documents of a session; one that cannot be read has no place."""
        for checkpoint_id, path in self._folders.documents_in(folder):
            try:
                read = self._read(checkpoint_id, path)
            except (CheckpointIntegrityError, StoreFormatError):
                continue
            if read is not None:
                yield read.seq, read.checkpoint_id

    def heads(self, agent_id: str | None = None) -> list[SessionInfo]:
        sessions: dict[tuple[str, str], list[CheckpointInfo]] = {}
        for info in self.query(Query(agent_id=agent_id)):
            sessions.setdefault((info.agent_id, info.session_id), []).append(info)
        return [SessionInfo(*key, infos[0], len(infos)) for key, infos in sessions.items()]

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        with self._working(writing=True), self._changing_notes():
            # Records first: notes without one are no harm, and gc removes them.
            removed = sum([self._folders.remove(i) for i in checkpoint_ids])
            self._notes.remove(checkpoint_ids)
            return removed

    def _changing_notes(self) -> AbstractContextManager[Any]:
        """So that no record is removed which notes half written wait for."""
        if not self._notes.any():
            return nullcontext()
        held = self._notes.changing()
        try:
            self._notes.sync()  # else a promise kept long ago may come back when the record is gone
        except BaseException:
            held.close()
            raise
        return held

    def sweep(self, now: datetime) -> int:
        expired = []
        with self._working(writing=True):
            for checkpoint_id, path in self._folders.documents():
                try:
                    read = self._read(checkpoint_id, path)
                except CheckpointIntegrityError:
                    continue  # listings and verify() tell of it; damage is never removed unasked
                if read is not None and read.info.is_expired(now):
                    expired.append(checkpoint_id)
            self._folders.tidy()
            self._chunks.tidy()
            with self._changing_notes():
                self._notes.sweep(now)
        return self.delete(expired)

    def collect(self, live: Collection[bytes], before: datetime, dry_run: bool) -> Collected:
        with self._working(writing=not dry_run):
            return self._chunks.collect(live, before, dry_run)

    def stats(self) -> Stats:
        with self._working():
            found = [self._read(*place) for place in self._folders.documents()]
            chunks = self._chunks.sizes()
        shown = [read for read in found if read is not None and not read.info.is_expired()]
        return Stats(
            checkpoints=len(shown),
            sessions=len({(read.info.agent_id, read.info.session_id) for read in shown}),
            chunks=len(chunks),
            logical_bytes=sum(read.info.size for read in shown),
            stored_bytes=sum(read.size for read in shown) + sum(chunks),
        )

    def close(self) -> None:
        self._closed = True

    def _check(self) -> None:
        # With a separator at its end, a path that is no directory is an error.
        os.stat(os.path.join(self._root, ""))

    @contextmanager
    def _working(self, writing: bool = False) -> Iterator[None]:
        if self._closed:
            raise StoreClosedError(self.name)
        with self._errors(writing):
            self._check()
            yield

    @contextmanager
    def _errors(self, writing: bool) -> Iterator[None]:
        """Say what went wrong in Holdfast's own words."""
        try:
            yield
        except HoldfastError:
            raise
        except OSError as error:
            raise self._translated(error, writing) from error

    def _translated(self, error: OSError, writing: bool) -> StoreError:
        if error.errno in _FULL:
            return StoreFullError(f"{self.name} has no space left: free some and save again")
        if writing and error.errno in _NOT_ALLOWED:
            return StoreReadOnlyError(f"{self.name} may not be written to: {error}")
        return StoreConnectionError(f"{self.name} cannot be used: {error}")


@contextmanager
def _naming(checkpoint_id: str) -> Iterator[None]:
    """Name the checkpoint in errors that do not know it."""
    try:
        yield
    except CheckpointIntegrityError as error:
        if error.checkpoint_id is not None:
            raise
        raise CheckpointIntegrityError(checkpoint_id, error.reason) from None
