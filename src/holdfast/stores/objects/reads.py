"""What the store with large blobs apart reads, as plans; no I/O of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.core.chunk_format import decompress
from holdfast.core.codec import unpack
from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo
from holdfast.stores.base import Note, Query, Record, SessionInfo, Stats, end_of_page, given, unfold
from holdfast.stores.objects.keys import Location, StoredObject, locations_in
from holdfast.stores.objects.packs import SCOPE
from holdfast.stores.objects.ranges import ranges_of
from holdfast.stores.objects.requests import (
    BlobPlan,
    DownloadRanges,
    ListObjects,
    NextPage,
    Within,
    fetch_within,
    notes_within,
)

ATTEMPTS = 5


class BlobReads:
    """Plans that change nothing, of a store with chunks of more than so many bytes apart."""

    def __init__(self, above: int) -> None:
        self.above = above
        self._owner: bytes | None = None

    def _owner_id(self) -> BlobPlan[bytes | None]:
        """Return what the paths of this store's objects begin with, so that gc takes no other's."""
        if self._owner is None:
            for note in (yield notes_within([SCOPE], 0, None)):
                if not note.is_intact():
                    raise CheckpointIntegrityError(None, "the note that names its objects' owner")
                self._owner = unpack(decompress(note.body))
        return self._owner

    def load(self, checkpoint_id: str, verify: bool = True) -> BlobPlan[Record | None]:
        """Return the record, and then one fetch for each level of its chunks."""
        query = Query(ids=[checkpoint_id])
        infos = yield Within(lambda store: store.query(query))
        if not infos:
            return None
        try:
            root = bytes.fromhex(infos[0].content_id)
            return Record(infos[0], (yield from unfold({root: True}, {}, self.fetch, verify)))
        except CheckpointIntegrityError as error:
            if not (yield Within(lambda store: store.query(query))):
                return None  # removed and collected while it was read
            raise CheckpointIntegrityError(checkpoint_id, error.reason) from None

    def fetch(self, names: Collection[bytes]) -> BlobPlan[dict[bytes, bytes]]:
        """Return chunks by name, wherever they lie."""
        found: dict[bytes, bytes] = {}
        tried: dict[bytes, Location] = {}
        for _ in range(ATTEMPTS):
            stored = yield fetch_within(names)
            places = locations_in(stored)
            found.update((name, data) for name, data in stored.items() if name not in places)
            # One that was moved meanwhile has another location, and gc may have taken the first.
            fresh = {name: place for name, place in places.items() if tried.get(name) != place}
            if not fresh:
                break
            tried.update(fresh)
            found.update((yield from self._download(fresh)))
            names = [name for name in fresh if name not in found]
            if not names:
                break
        return found

    def _download(self, places: Mapping[bytes, Location]) -> BlobPlan[dict[bytes, bytes]]:
        """Return those of the chunks whose objects are whole."""
        found: dict[bytes, bytes] = {}
        ranges = ranges_of(places)
        for each, data in zip(ranges, (yield DownloadRanges(ranges)), strict=True):
            if data is not None:
                found.update(each.cut(data))
        return found

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> BlobPlan[list[Note]]:
        """Return notes, without those that this store writes for itself."""
        if scopes is not None:
            return (yield notes_within(scopes, after, limit))  # type: ignore[no-any-return]
        found: list[Note] = []
        while True:
            page = yield notes_within(None, after, limit)
            found += [note for note in page if not _is_ours(note.scope)]
            if limit is None or len(page) < limit or len(found) >= limit:
                return found[:limit]
            after = end_of_page(page, after)

    def match(self, prefix: str, limit: int, after: str) -> BlobPlan[list[str]]:
        """Ask the store within."""
        return (yield Within(lambda store: store.match(prefix, limit, after)))  # type: ignore[no-any-return]

    def query(self, query: Query) -> BlobPlan[list[CheckpointInfo]]:
        """Ask the store within."""
        return (yield Within(lambda store: store.query(query)))  # type: ignore[no-any-return]

    def heads(
        self,
        agent_id: str | None,
        session_id: str | None,
        limit: int | None,
        before: str | None,
    ) -> BlobPlan[list[SessionInfo]]:
        """Ask the store within."""
        asked = given({"session_id": session_id, "limit": limit, "before": before})
        return (yield Within(lambda store: store.heads(agent_id, **asked)))  # type: ignore[no-any-return]

    def stats(self) -> BlobPlan[Stats]:
        """Return what the store within holds, with the sizes of objects instead of stubs."""
        stats: Stats = yield Within(lambda store: store.stats())
        apart = 0
        listing = yield from self._list()
        while (page := (yield from self._next(listing))) is not None:
            apart += sum(stored.size - stored.stub_bytes for stored, _ in page)
        return replace(stats, stored_bytes=stats.stored_bytes + apart)

    def _list(self) -> BlobPlan[Any]:
        """Begin to list all objects of this store; None if it never had one."""
        owner = yield from self._owner_id()
        return None if owner is None else (yield ListObjects(owner.hex()))

    def _next(self, listing: Any) -> BlobPlan[list[tuple[StoredObject, datetime]] | None]:
        """Return objects of ours, each with when it was written; None at the end."""
        page = [] if listing is None else (yield NextPage(listing))
        if not page:
            return None
        found = ((StoredObject.of_path(path, size), written) for path, size, written in page)
        return [(stored, written) for stored, written in found if stored is not None]


def _is_ours(scope: str) -> bool:
    return scope == SCOPE or scope.startswith(SCOPE + "/")
