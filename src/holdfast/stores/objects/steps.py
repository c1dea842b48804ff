"""What the store with large blobs apart does, as steps; no I/O of its own.

A method is a generator that yields what it wants done, of the store within or of object storage,
and is sent the answer, or thrown the error.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from holdfast.core.chunk_format import ID_BYTES, compress, decompress
from holdfast.core.codec import pack, unpack
from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    StoreError,
    StoreFullError,
)
from holdfast.model import CheckpointInfo
from holdfast.stores.base import (
    Collected,
    Commit,
    Note,
    NoteExists,
    NotesOnly,
    Query,
    Record,
    Refused,
    SessionInfo,
    Stats,
    Store,
    unfold,
)
from holdfast.system import crash_points

T = TypeVar("T")

PAGE = 500
_ATTEMPTS = 5
_SCOPE = "/objects"
_CLAIM_LASTS = timedelta(days=7)
"""Longer than any save takes from its first upload to its commit."""


@dataclass(frozen=True, slots=True)
class Inner:
    """Ask the store within."""

    ask: Callable[[Store], Any]


@dataclass(frozen=True, slots=True)
class Upload:
    """Put objects, each by its path."""

    objects: Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Download:
    """Get objects; the answer is the data of each, None for one that is lost."""

    places: Sequence[Place]


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete objects, where they are still there."""

    paths: Sequence[str]


@dataclass(frozen=True, slots=True)
class List:
    """Begin to list the objects below a path; the answer is for ``NextPage``."""

    below: str


@dataclass(frozen=True, slots=True)
class NextPage:
    """Go on with a listing; the answer is a list, empty at its end."""

    listing: Any


Step = Inner | Upload | Download | Remove | List | NextPage
Steps = Generator[Step, Any, T]


def _commit(commit: Commit | NotesOnly) -> Inner:
    return Inner(lambda store: store.commit(commit))


def _fetch(names: Collection[bytes]) -> Inner:
    return Inner(lambda store: store.fetch(names))


def _notes(scopes: Collection[str] | None, after: int, limit: int | None) -> Inner:
    return Inner(lambda store: store.notes(scopes, after, limit))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk lies in object storage. Each upload has a place of its own, used once."""

    owner: bytes
    name: bytes
    upload: bytes
    size: int = field(compare=False)

    @property
    def path(self) -> str:
        """The path of the object."""
        name = self.name.hex()
        return f"{self.owner.hex()}/{name[:2]}/{name}-{self.upload.hex()}"

    @classmethod
    def of_path(cls, path: str, size: int) -> Place | None:
        """The place that has this path, or None if it is none of ours."""
        owner, _, last = path.partition("/")
        name, _, upload = last.rpartition("/")[2].partition("-")
        try:
            place = cls(bytes.fromhex(owner), bytes.fromhex(name), bytes.fromhex(upload), size)
        except ValueError:
            return None
        return place if place.path == path and len(place.name) == ID_BYTES else None

    def stub(self) -> bytes:
        """What the store within keeps in the chunk's stead."""
        return _STUB.pack(_MARK, self.owner, self.upload, self.size)

    @classmethod
    def of_stub(cls, name: bytes, stored: bytes) -> Place | None:
        """The place that a stub leads to, or None if this is a chunk."""
        if len(stored) != _STUB.size or stored[:1] != _MARK:
            return None
        _, owner, upload, size = _STUB.unpack(stored)
        return cls(owner, name, upload, size)


_MARK = b"\x02"
_STUB = struct.Struct(">c8s8sQ")


class Methods:
    """The methods of a store that keeps chunks of more than so many bytes in object storage."""

    def __init__(self, above: int) -> None:
        self.above = above
        self._owner: bytes | None = None

    def _owner_id(self) -> Steps[bytes | None]:
        """What the paths of this store's objects begin with, so that gc takes no other's."""
        if self._owner is None:
            for note in (yield _notes([_SCOPE], 0, None)):
                if not note.is_intact():
                    raise CheckpointIntegrityError(None, "the note that names its objects' owner")
                self._owner = unpack(decompress(note.body))
        return self._owner

    def _new_owner_id(self) -> Steps[bytes]:
        """The same; at the first save it is drawn."""
        while (owner := (yield from self._owner_id())) is None:
            note = Note.of(_SCOPE, "owner", compress(pack(os.urandom(8))))
            try:
                yield _commit(NotesOnly((note,), {}))
            except NoteExists:
                pass  # another was first
        return owner

    def commit(self, commit: Commit | NotesOnly) -> Steps[None]:
        """Upload what is large, and then commit the rest with stubs in its stead.

        What the store has already is uploaded all the same, which mends it where it was lost.
        The commit claims its uploads, with a note that is there once. gc does the same before it
        takes what no stub leads to: if it was first, the commit is refused and uploads anew.
        """
        large = {name: data for name, data in commit.chunks.items() if len(data) > self.above}
        if not large:
            yield _commit(commit)
            return
        owner = yield from self._new_owner_id()
        before = _places((yield _fetch(list(large))))
        for _ in range(_ATTEMPTS):
            upload = os.urandom(8)
            places = [Place(owner, name, upload, len(data)) for name, data in large.items()]
            try:
                yield Upload([(place.path, large[place.name]) for place in places])
            except StoreFullError:
                yield from self._tidy(places)  # the space that the others took
                raise
            crash_points.reach("objects:uploaded")
            stubs = {place.name: place.stub() for place in places}
            chunks, claim = {**commit.chunks, **stubs}, _claim(upload)
            notes = (*commit.notes, claim)
            try:
                yield _commit(replace(commit, chunks=chunks, notes=notes))
            except (CheckpointConflictError, *Refused) as refusal:
                yield from self._tidy(places)
                if not (isinstance(refusal, NoteExists) and refusal.note.scope == claim.scope):
                    raise
            else:
                yield from self._tidy(list(before.values()))
                return
        raise StoreError("gc takes the objects of this save again and again: save later")

    def _tidy(self, places: list[Place]) -> Steps[None]:
        """Remove objects that a commit made useless; what became of that matters more."""
        try:
            for part in _pages(places):
                yield from self._take(part)
        except StoreError:
            pass  # gc takes what is left

    def load(self, checkpoint_id: str, verify: bool = True) -> Steps[Record | None]:
        """The record, and then one fetch for each level of its chunks."""
        query = Query(ids=[checkpoint_id])
        infos = yield Inner(lambda store: store.query(query))
        if not infos:
            return None
        try:
            root = bytes.fromhex(infos[0].content_id)
            return Record(infos[0], (yield from unfold({root: True}, {}, self.fetch, verify)))
        except CheckpointIntegrityError as error:
            if not (yield Inner(lambda store: store.query(query))):
                return None  # removed and collected while it was read
            raise CheckpointIntegrityError(checkpoint_id, error.reason) from None

    def fetch(self, names: Collection[bytes]) -> Steps[dict[bytes, bytes]]:
        """Chunks by name, wherever they lie."""
        found: dict[bytes, bytes] = {}
        tried: dict[bytes, Place] = {}
        for _ in range(_ATTEMPTS):
            stored = yield _fetch(names)
            places = _places(stored)
            found.update((name, data) for name, data in stored.items() if name not in places)
            # One saved again meanwhile has another place, and gc may have taken the first.
            fresh = [place for name, place in places.items() if tried.get(name) != place]
            if not fresh:
                break
            for place, data in zip(fresh, (yield Download(fresh)), strict=True):
                tried[place.name] = place
                if data is not None:
                    found[place.name] = data
            names = [place.name for place in fresh if place.name not in found]
            if not names:
                break
        return found

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> Steps[list[Note]]:
        """Notes, without those that this store writes for itself."""
        if scopes is not None:
            return (yield _notes(scopes, after, limit))  # type: ignore[no-any-return]
        found: list[Note] = []
        while True:
            page = yield _notes(None, after, limit)
            found += [note for note in page if not _is_ours(note.scope)]
            if limit is None or len(page) < limit or len(found) >= limit:
                return found[:limit]
            after = page[-1].seq

    def collect(self, live: Collection[bytes], before: datetime, dry_run: bool) -> Steps[Collected]:
        """Remove stray objects, then what is dead in the store within, then the objects of that."""
        live = frozenset(live)
        strays, size = 0, 0
        going: list[Place] = []
        listing = yield from self._list()
        while (page := (yield from self._next(listing))) is not None:
            referred = yield from self._referred([place for place, _ in page])
            old = {place for place, written in page if written < before}
            dead = (place for place in referred if place.name not in live)
            # What is spared is known only afterwards, so a dry run goes by the age of the object.
            going += (place for place in dead if not dry_run or place in old)
            stray = [place for place in old if place not in referred]
            taken = stray if dry_run else (yield from self._take(stray))
            strays += len(taken)
            size += _size(taken)
        collected = yield Inner(lambda store: store.collect(live, before, dry_run))
        for part in _pages(going):
            taken = part if dry_run else (yield from self._take(part))
            size += _size(taken) - _STUB.size * len(taken)
        return Collected(collected.chunks + strays, collected.bytes + size)

    def _take(self, places: list[Place]) -> Steps[list[Place]]:
        """Remove those of the objects that no stub leads to and none ever will."""
        if not places:
            return []
        yield from self._claim({place.upload for place in places})
        referred = yield from self._referred(places)
        dead = [place for place in places if place not in referred]
        if dead:
            yield Remove([place.path for place in dead])
        return dead

    def _claim(self, uploads: Iterable[bytes]) -> Steps[None]:
        """See that each upload is claimed: a save that has not claimed it by now never will."""
        claims = {claim.scope: claim for claim in map(_claim, uploads)}
        for note in (yield _notes(list(claims), 0, None)):
            claims.pop(note.scope, None)
        while claims:
            try:
                yield _commit(NotesOnly(tuple(claims.values()), {}))
                return
            except NoteExists as taken:
                del claims[taken.note.scope]

    def _referred(self, places: Collection[Place]) -> Steps[set[Place]]:
        """Those that a stub leads to."""
        stored = yield _fetch(list({place.name for place in places}))
        return set(_places(stored).values()) & set(places)

    def match(self, prefix: str, limit: int, after: str) -> Steps[list[str]]:
        """Ask the store within."""
        return (yield Inner(lambda store: store.match(prefix, limit, after)))  # type: ignore[no-any-return]

    def query(self, query: Query) -> Steps[list[CheckpointInfo]]:
        """Ask the store within."""
        return (yield Inner(lambda store: store.query(query)))  # type: ignore[no-any-return]

    def heads(self, agent_id: str | None) -> Steps[list[SessionInfo]]:
        """Ask the store within."""
        return (yield Inner(lambda store: store.heads(agent_id)))  # type: ignore[no-any-return]

    def delete(self, checkpoint_ids: Collection[str]) -> Steps[int]:
        """Ask the store within."""
        return (yield Inner(lambda store: store.delete(checkpoint_ids)))  # type: ignore[no-any-return]

    def sweep(self, now: datetime) -> Steps[int]:
        """Ask the store within."""
        return (yield Inner(lambda store: store.sweep(now)))  # type: ignore[no-any-return]

    def stats(self) -> Steps[Stats]:
        """What the store within holds, with the sizes of objects instead of those of stubs."""
        stats: Stats = yield Inner(lambda store: store.stats())
        apart = 0
        listing = yield from self._list()
        while (page := (yield from self._next(listing))) is not None:
            apart += sum(place.size - _STUB.size for place, _ in page)
        return replace(stats, stored_bytes=stats.stored_bytes + apart)

    def _list(self) -> Steps[Any]:
        """Begin to list all objects of this store; None if it never had one."""
        owner = yield from self._owner_id()
        return None if owner is None else (yield List(owner.hex()))

    def _next(self, listing: Any) -> Steps[list[tuple[Place, datetime]] | None]:
        """Objects of ours, each with when it was written; None at the end."""
        page = [] if listing is None else (yield NextPage(listing))
        if not page:
            return None
        places = ((Place.of_path(path, size), written) for path, size, written in page)
        return [(place, written) for place, written in places if place is not None]


def _claim(upload: bytes) -> Note:
    """The note that whoever commits or removes the objects of an upload has to be first with."""
    until = datetime.now(UTC) + _CLAIM_LASTS
    return Note.of(f"{_SCOPE}/{upload.hex()}", "claim", compress(pack(None)), until)


def _is_ours(scope: str) -> bool:
    return scope == _SCOPE or scope.startswith(_SCOPE + "/")


def _places(stored: dict[bytes, bytes]) -> dict[bytes, Place]:
    """Where those of the chunks are that lie in object storage."""
    places = ((name, Place.of_stub(name, data)) for name, data in stored.items())
    return {name: place for name, place in places if place is not None}


def _size(places: Iterable[Place]) -> int:
    return sum(place.size for place in places)


def _pages(places: list[Place]) -> Iterator[list[Place]]:
    for start in range(0, len(places), PAGE):
        yield places[start : start + PAGE]
