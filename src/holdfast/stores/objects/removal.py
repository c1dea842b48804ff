"""How objects that nothing leads to are removed, and packs that waste space are made anew.

As plans, each in parts that may be cut short: objects are uploaded, then led to, then no longer
led to, then removed, so what a killed one leaves is found by the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TypeVar

from holdfast.core.chunk_format import checked
from holdfast.errors import CheckpointIntegrityError, NoteExistsError
from holdfast.stores.base import Collected, Note, NotesOnly, end_of_page
from holdfast.stores.objects.keys import Location, StoredObject, locations_in
from holdfast.stores.objects.packs import (
    PACK_BYTES,
    PACK_CHUNKS,
    USES,
    Pack,
    claim_of,
    names_in,
    packs_of,
    scope_of,
    sizes_of,
)
from holdfast.stores.objects.requests import (
    BlobPlan,
    RemoveDrafts,
    RemoveObjects,
    Within,
    commit_within,
    fetch_within,
    notes_within,
)
from holdfast.stores.objects.uploads import BlobUploads
from holdfast.system import crash_points

T = TypeVar("T")

PAGE = 500
_SMALL = PACK_BYTES // 16
_ENOUGH = 16
"""So many small packs become few: a chunk is written again once for each time it grows so much."""


@dataclass(slots=True)
class Holding:
    """An object, and how much of it is still needed."""

    object: StoredObject
    names: tuple[bytes, ...]
    """The chunks in it; none where no commit said what they are."""
    is_committed: bool
    is_old: bool = True
    kept: int = 0
    """Chunks that are needed."""
    kept_bytes: int = 0

    @classmethod
    def of_listed(cls, stored: StoredObject, is_old: bool) -> Holding:
        """Return what is known of an object that is listed: of a pack not yet what is in it."""
        names = () if stored.alone is None else (stored.alone,)
        return cls(stored, names, bool(names), is_old)

    @classmethod
    def of_new(cls, pack: Pack) -> Holding:
        """Return what is known of a pack whose commit was refused."""
        return cls(pack.object, pack.names, is_committed=False)

    @property
    def is_gone(self) -> bool:
        """Whether nothing needs it, and no save that is under way will lead to it."""
        return not self.kept and (self.is_old or self.is_known)

    @property
    def is_wasteful(self) -> bool:
        """Whether half of it is in vain."""
        return self._may_move and 2 * self.kept_bytes <= self.object.size

    @property
    def is_small(self) -> bool:
        """Whether it is one of those that are better put together."""
        return self._may_move and self.object.size <= _SMALL

    @property
    def _may_move(self) -> bool:
        return self.is_known and self.is_old and self.kept > 0

    @property
    def is_known(self) -> bool:
        """Whether it is a pack of which is noted what is in it, until it is removed."""
        return self.is_committed and self.object.alone is None

    @property
    def unneeded(self) -> int:
        """How many of its chunks are not needed; none where no commit ever led to them."""
        return len(self.names) - self.kept if self.is_committed else 0

    @property
    def freed(self) -> int:
        """Bytes of objects that there are less without it."""
        return self.object.size - self.kept_bytes


@dataclass(slots=True)
class _Chosen:
    """What is to be done about the objects of a page."""

    gone: list[Holding] = field(default_factory=list)
    moving: list[Holding] = field(default_factory=list)

    @classmethod
    def of(cls, holdings: Sequence[Holding]) -> _Chosen:
        """Return what nothing needs, and what wastes space or is one of many small ones."""
        small = sum(each.is_small for each in holdings)
        enough = small >= _ENOUGH
        return cls(
            [each for each in holdings if each.is_gone],
            [each for each in holdings if each.is_wasteful or (enough and each.is_small)],
        )


class BlobRemoval(BlobUploads):
    """Plans that remove what is not needed, and all that upload and read."""

    def __init__(self, above: int) -> None:
        super().__init__(above)
        self._refused = dict.fromkeys(USES, 0)
        """Up to which place saves that rely on what is stored have been claimed."""

    def collect(
        self, live: Container[bytes], before: datetime, dry_run: bool
    ) -> BlobPlan[Collected]:
        """Remove what is dead in the store within, then the objects that nothing leads to."""
        owner = yield from self._owner_id()
        if owner is not None and not dry_run:
            yield RemoveDrafts(owner.hex())
        collected = yield Within(lambda store: store.collect(live, before, dry_run))
        chunks, size, died = collected.chunks, collected.bytes, collected.chunks
        listing = yield from self._list()
        while (page := (yield from self._next(listing))) is not None:
            # What the store within spared is known only afterwards, so a dry run asks what is live.
            asked = live if dry_run else None
            chosen = _Chosen.of((yield from self._holdings(page, before, asked)))
            removed = [*chosen.gone, *chosen.moving]
            if not dry_run:
                removed = yield from self._take(chosen.gone)
                for some in _parts(chosen.moving):
                    removed += yield from self._move(some)
            chunks += sum(each.object.chunks for each in removed if not each.is_committed)
            size += sum(each.freed for each in removed)
            for each in removed:  # what is told are the sizes of chunks: without their stubs
                stubs = min(each.unneeded, died)
                died -= stubs
                size -= stubs * each.object.stub_bytes // each.object.chunks
        return Collected(chunks, max(size, 0))

    def _holdings(
        self,
        page: Sequence[tuple[StoredObject, datetime]],
        before: datetime,
        live: Container[bytes] | None,
    ) -> BlobPlan[list[Holding]]:
        """Return what is known of objects; given what is live, as if all else were removed."""
        found = [Holding.of_listed(stored, written < before) for stored, written in page]
        yield from self._learn(found)
        yield from self._count(found, live)
        return found

    def _learn(self, holdings: Sequence[Holding]) -> BlobPlan[None]:
        """Find out which of the packs were committed, and what is in them."""
        packs: dict[str, list[Holding]] = defaultdict(list)
        for each in holdings:
            if not each.is_committed:
                packs[scope_of(each.object.upload)].append(each)
        for scopes in _pages(packs, PAGE // 5):
            for claim in (yield notes_within(scopes, 0, None)):
                names = names_in(claim) or ()
                for each in packs[claim.scope]:
                    if len(names) == each.object.chunks:  # else a copy under another name
                        each.names, each.is_committed = names, True

    def _count(
        self, holdings: Sequence[Holding], live: Container[bytes] | None = None
    ) -> BlobPlan[None]:
        """Count which of the chunks a stub leads to, and some need."""
        for each in holdings:
            each.kept = each.kept_bytes = 0
        asked = ((name, each) for each in holdings for name in each.names)
        for some in _pages(asked, PAGE):
            places = locations_in((yield fetch_within(list({name for name, _ in some}))))
            for name, each in some:
                place = places.get(name)
                if place is None or place.object != each.object:
                    continue
                if live is None or name in live or not each.is_old:
                    each.kept += 1
                    each.kept_bytes += place.size

    def _take(self, holdings: Sequence[Holding]) -> BlobPlan[list[Holding]]:
        """Remove those of the objects that no stub leads to and none ever will.

        Saves that may have read a stub are claimed first, and so are uploads that nobody committed:
        what has not been committed by now never will be.
        """
        if not holdings:
            return []
        yield from self._refuse_uses()
        new = {each.object.upload for each in holdings if not each.is_known}
        yield from self._claim(claim_of(upload) for upload in new)
        yield from self._learn(holdings)  # some have been committed meanwhile
        yield from self._count(holdings)
        dead = [each for each in holdings if not each.kept]
        for some in _pages(dead, PAGE):
            # First what says what is in it: without, it is an upload that nobody committed.
            yield _delete_within([scope_of(each.object.upload) for each in some if each.is_known])
            crash_points.reach("objects:forgotten")
            yield RemoveObjects([each.object.path for each in some])
            crash_points.reach("objects:removed")
        return dead

    def _move(self, holdings: Sequence[Holding]) -> BlobPlan[list[Holding]]:
        """Put what is needed of some packs into new ones, and remove them; those removed.

        One that lost a chunk stays as it is, for verify to find it.
        """
        owner = yield from self._new_owner_id()
        moving = {each.object for each in holdings}
        places: dict[bytes, Location] = {}
        for names in _pages((name for each in holdings for name in each.names), PAGE):
            found = locations_in((yield fetch_within(names)))
            places |= {name: place for name, place in found.items() if place.object in moving}
        chunks = yield from self._download(places)
        hurt = {place.object for name, place in places.items() if not _is_whole(name, chunks)}
        chunks = {name: chunks[name] for name, place in places.items() if place.object not in hurt}
        packs = packs_of(owner, sizes_of(chunks))
        led = yield from self._upload(packs, chunks)
        crash_points.reach("objects:moved")
        try:
            if packs:
                yield commit_within(NotesOnly(led.claims, led.stubs))
        except NoteExistsError:  # another gc took them, so long did this stand still
            return []
        crash_points.reach("objects:led")
        before = {each.object: (each.kept, each.kept_bytes) for each in holdings}
        taken = yield from self._take([each for each in holdings if each.object not in hurt])
        for each in taken:  # what was moved was not freed
            each.kept, each.kept_bytes = before[each.object]
        return taken

    def _refuse_uses(self) -> BlobPlan[None]:
        """See that no save commits what it read before now."""
        for scope in USES:
            while page := (yield notes_within([scope], self._refused[scope], PAGE)):
                yield from self._claim(claim_of(bytes.fromhex(use.key)) for use in page)
                self._refused[scope] = max(self._refused[scope], end_of_page(page, 0))

    def _claim(self, claims: Iterable[Note]) -> BlobPlan[None]:
        """See that each upload is claimed: a save that has not claimed it by now never will."""
        for some in _pages(claims, PAGE):
            left = {claim.scope: claim for claim in some}
            for note in (yield notes_within(list(left), 0, None)):
                left.pop(note.scope, None)
            while left:
                try:
                    yield commit_within(NotesOnly(tuple(left.values()), {}))
                    break
                except NoteExistsError as taken:
                    del left[taken.note.scope]


def _is_whole(name: bytes, chunks: dict[bytes, bytes]) -> bool:
    try:
        return name in chunks and checked(name, chunks[name]) is not None
    except CheckpointIntegrityError:
        return False


def _delete_within(scopes: Collection[str]) -> Within:
    return Within(lambda store: store.delete(scopes))


def _parts(holdings: Sequence[Holding]) -> Iterator[list[Holding]]:
    """Yield packs so that what is needed of them goes into one."""
    part: list[Holding] = []
    size = chunks = 0
    for each in holdings:
        if part and (size + each.kept_bytes > PACK_BYTES or chunks + each.kept > PACK_CHUNKS):
            yield part
            part, size, chunks = [], 0, 0
        part.append(each)
        size, chunks = size + each.kept_bytes, chunks + each.kept
    if part:
        yield part


def _pages(items: Iterable[T], count: int) -> Iterator[list[T]]:
    left = iter(items)
    while page := list(islice(left, count)):
        yield page
