"""What the file store reads: documents, by their first lines or whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from holdfast.errors import CheckpointIntegrityError, SerializationError, StoreFormatError
from holdfast.model import CheckpointInfo
from holdfast.stores.base import Query, Record, Stats
from holdfast.stores.file.document import Head, read_chunks, read_head
from holdfast.stores.file.errors import naming
from holdfast.stores.file.folders import LONGEST_LINE, DocumentFolders, open_document
from holdfast.stores.file.order import Last


class DocumentSummary(NamedTuple):
    """What is told of a document without its payload; sorts by its place."""

    seq: int
    checkpoint_id: str
    info: CheckpointInfo
    size: int


class FileReads:
    """Reads the documents below a root."""

    def __init__(self, folders: DocumentFolders, allow_pickle: bool) -> None:
        self._folders = folders
        self._allow_pickle = allow_pickle

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        """Return a record with everything it needs, or None; expired ones are not there."""
        with naming(checkpoint_id):
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
            if not head.is_json and not self._allow_pickle:
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

    def read(self, checkpoint_id: str, path: str) -> DocumentSummary | None:
        """Return what is told of a document, no payload read; None if it was removed just now."""
        with naming(checkpoint_id):
            try:
                with open_document(path) as file:
                    line, size = file.readline(LONGEST_LINE), os.fstat(file.fileno()).st_size
            except FileNotFoundError:
                return None
            head = self._head(checkpoint_id, path, line)
            if size != len(line) + head.rest_bytes:
                raise CheckpointIntegrityError(checkpoint_id, "its payload was cut off or altered")
            return DocumentSummary(head.seq, checkpoint_id, head.info, size)

    def match(self, prefix: str, limit: int, after: str) -> list[str]:
        """Return ids that begin so, in order."""
        documents = self._folders.documents()
        return sorted({i for i, _ in documents if i.startswith(prefix) and i > after})[:limit]

    def query(self, query: Query) -> list[CheckpointInfo]:
        """Return the records asked for, in the order asked for."""
        now = datetime.now(UTC)
        if query.ids is not None:
            places = self.places(set(query.ids))
        else:
            places = self._folders.documents(query.agent_id, query.session_id)
        found = sorted(f for f in self.summaries(places) if query.admits(f.info, now))
        if query.before is not None:
            last = next(self.summaries(self.places([query.before])), None)
            found = [each for each in found if last is not None and each < last]
        ordered = found if query.oldest_first else found[::-1]
        return [each.info for each in ordered[: query.limit]]

    def places(self, checkpoint_ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield those of the ids that have a document, each with its path."""
        for checkpoint_id in checkpoint_ids:
            path = self._folders.find(checkpoint_id)
            if path is not None:
                yield checkpoint_id, path

    def summaries(self, places: Iterable[tuple[str, str]]) -> Iterator[DocumentSummary]:
        """Yield what is told of the documents at these places that are still there."""
        found = (self.read(checkpoint_id, path) for checkpoint_id, path in places)
        return (read for read in found if read is not None)

    def in_order(self, folder: str) -> Iterator[Last]:
        """Yield the place and id of each document of a session, but for those that are damaged."""
        for checkpoint_id, path in self._folders.documents_in(folder):
            try:
                read = self.read(checkpoint_id, path)
            except (CheckpointIntegrityError, StoreFormatError):
                continue
            if read is not None:
                yield read.seq, read.checkpoint_id

    def expired(self, now: datetime) -> list[str]:
        """Return the ids of documents that have expired."""
        found: list[str] = []
        for checkpoint_id, path in self._folders.documents():
            try:
                read = self.read(checkpoint_id, path)
            except CheckpointIntegrityError:
                continue  # listings and verify() tell of it; damage is never removed unasked
            if read is not None and read.info.is_expired(now):
                found.append(checkpoint_id)
        return found

    def stats(self, chunks: list[int]) -> Stats:
        """Return what there is, given the sizes of the chunks that stand on their own."""
        found = self.summaries(self._folders.documents())
        shown = [read for read in found if not read.info.is_expired()]
        stats = Stats.of([read.info for read in shown], chunks)
        return replace(stats, stored_bytes=stats.stored_bytes + sum(read.size for read in shown))
