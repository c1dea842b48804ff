"""What the store with large blobs apart writes, as plans; no I/O of their own."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from holdfast.core.chunk_format import compress
from holdfast.core.codec import pack
from holdfast.errors import (
    CheckpointConflictError,
    NoteExistsError,
    RefusedError,
    StoreError,
    StoreFullError,
)
from holdfast.stores.base import Collected, Commit, Note, NotesOnly
from holdfast.stores.objects.keys import STUB_BYTES, BlobLocation, locations_in
from holdfast.stores.objects.reads import ATTEMPTS, SCOPE, BlobReads
from holdfast.stores.objects.requests import (
    BlobPlan,
    RemoveDrafts,
    RemoveObjects,
    UploadObjects,
    Within,
    commit_within,
    fetch_within,
    notes_within,
)
from holdfast.system import crash_points

PAGE = 500
_AT_ONCE = 8 * 2**20
"""Bytes that are uploaded at once, or a little more."""
_CLAIM_LASTS = timedelta(days=7)
"""Longer than any save takes from its first upload to its commit."""


class BlobWrites(BlobReads):
    """Plans that change what is kept, and all that only read."""

    def _new_owner_id(self) -> BlobPlan[bytes]:
        """Return the same; at the first save it is drawn."""
        while (owner := (yield from self._owner_id())) is None:
            note = Note.of(SCOPE, "owner", compress(pack(os.urandom(8))))
            try:
                yield commit_within(NotesOnly((note,), {}))
            except NoteExistsError:
                pass  # another was first
        return owner

    def commit(self, commit: Commit | NotesOnly) -> BlobPlan[None]:
        """Upload what is large, and then commit the rest with stubs in its stead.

        What the store has already is uploaded all the same, which mends it where it was lost.
        The commit claims its uploads, with a note that is there once. gc does the same before it
        takes what no stub leads to: if it was first, the commit is refused and uploads anew.
        """
        sizes = {name: len(data) for name, data in commit.chunks.items()}
        large = {name: size for name, size in sizes.items() if size > self.above}
        if not large:
            yield commit_within(commit)
            return
        owner = yield from self._new_owner_id()
        before = locations_in((yield fetch_within(list(large))))
        for _ in range(ATTEMPTS):
            upload = os.urandom(8)
            locations = [BlobLocation(owner, name, upload, size) for name, size in large.items()]
            try:
                for part in _by_bytes(locations):
                    yield UploadObjects([(each.path, commit.chunks[each.name]) for each in part])
            except StoreFullError:
                yield from self._tidy(locations)  # the space that the others took
                raise
            crash_points.reach("objects:uploaded")
            stubs = {location.name: location.stub() for location in locations}
            small = {name: commit.chunks[name] for name in sizes if name not in large}
            chunks, claim = small | stubs, _claim(upload)
            notes = (*commit.notes, claim)
            try:
                yield commit_within(replace(commit, chunks=chunks, notes=notes))
            except (CheckpointConflictError, RefusedError) as refusal:
                yield from self._tidy(locations)
                if not (isinstance(refusal, NoteExistsError) and refusal.note.scope == claim.scope):
                    raise
            else:
                yield from self._tidy(list(before.values()))
                return
        raise StoreError("gc takes the objects of this save again and again: save later")

    def _tidy(self, locations: list[BlobLocation]) -> BlobPlan[None]:
        """Remove objects that a commit made useless; what became of that matters more."""
        try:
            for part in _pages(locations):
                yield from self._take(part)
        except StoreError:
            pass  # gc takes what is left

    def collect(
        self, live: Container[bytes], before: datetime, dry_run: bool
    ) -> BlobPlan[Collected]:
        """Remove stray objects, then what is dead in the store within, then the objects of that."""
        owner = yield from self._owner_id()
        if owner is not None and not dry_run:
            yield RemoveDrafts(owner.hex())
        strays, size = 0, 0
        going: list[BlobLocation] = []
        listing = yield from self._list()
        while (page := (yield from self._next(listing))) is not None:
            referred = yield from self._referred([location for location, _ in page])
            old = {location for location, written in page if written < before}
            dead = (location for location in referred if location.name not in live)
            # What is spared is known only afterwards, so a dry run goes by the age of the object.
            going += (location for location in dead if not dry_run or location in old)
            stray = [location for location in old if location not in referred]
            taken = stray if dry_run else (yield from self._take(stray))
            strays += len(taken)
            size += _size(taken)
        collected = yield Within(lambda store: store.collect(live, before, dry_run))
        for part in _pages(going):
            taken = part if dry_run else (yield from self._take(part))
            size += _size(taken) - STUB_BYTES * len(taken)
        return Collected(collected.chunks + strays, collected.bytes + size)

    def _take(self, locations: list[BlobLocation]) -> BlobPlan[list[BlobLocation]]:
        """Remove those of the objects that no stub leads to and none ever will."""
        if not locations:
            return []
        yield from self._claim({location.upload for location in locations})
        referred = yield from self._referred(locations)
        dead = [location for location in locations if location not in referred]
        if dead:
            yield RemoveObjects([location.path for location in dead])
        return dead

    def _claim(self, uploads: Iterable[bytes]) -> BlobPlan[None]:
        """See that each upload is claimed: a save that has not claimed it by now never will."""
        claims = {claim.scope: claim for claim in map(_claim, uploads)}
        for note in (yield notes_within(list(claims), 0, None)):
            claims.pop(note.scope, None)
        while claims:
            try:
                yield commit_within(NotesOnly(tuple(claims.values()), {}))
                return
            except NoteExistsError as taken:
                del claims[taken.note.scope]

    def _referred(self, locations: Collection[BlobLocation]) -> BlobPlan[set[BlobLocation]]:
        """Return those that a stub leads to."""
        stored = yield fetch_within(list({location.name for location in locations}))
        return set(locations_in(stored).values()) & set(locations)

    def delete(self, checkpoint_ids: Collection[str]) -> BlobPlan[int]:
        """Ask the store within."""
        return (yield Within(lambda store: store.delete(checkpoint_ids)))  # type: ignore[no-any-return]

    def sweep(self, now: datetime) -> BlobPlan[int]:
        """Ask the store within."""
        return (yield Within(lambda store: store.sweep(now)))  # type: ignore[no-any-return]


def _claim(upload: bytes) -> Note:
    """Return the note that who commits or removes the objects of an upload has to be first with."""
    until = datetime.now(UTC) + _CLAIM_LASTS
    return Note.of(f"{SCOPE}/{upload.hex()}", "claim", compress(pack(None)), until)


def _size(locations: Iterable[BlobLocation]) -> int:
    return sum(location.size for location in locations)


def _by_bytes(locations: list[BlobLocation]) -> Iterator[list[BlobLocation]]:
    """Yield what is uploaded at once: all of it may be a large state."""
    part: list[BlobLocation] = []
    room = _AT_ONCE
    for location in locations:
        part.append(location)
        room -= location.size
        if room < 0:
            yield part
            part, room = [], _AT_ONCE
    if part:
        yield part


def _pages(locations: list[BlobLocation]) -> Iterator[list[BlobLocation]]:
    for start in range(0, len(locations), PAGE):
        yield locations[start : start + PAGE]
