"""How chunks get into object storage, and how to rely on those that are there; as plans."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from holdfast.core.chunk_format import compress
from holdfast.core.codec import pack
from holdfast.errors import NoteExistsError
from holdfast.stores.base import Note, NotesOnly
from holdfast.stores.objects.keys import Location, StoredObject, locations_in, tag_of
from holdfast.stores.objects.packs import SCOPE, Pack, claim_of, new_upload, sizes_of, use_of
from holdfast.stores.objects.reads import BlobReads
from holdfast.stores.objects.requests import (
    BlobPlan,
    LookAtObjects,
    UploadObjects,
    commit_within,
    fetch_within,
)

_AT_ONCE = 4
"""Packs that are uploaded side by side."""
_LOOKED_AT = 8
"""Objects that a save asks for; what lies elsewhere is sent again, all in one object."""


@dataclass(frozen=True, slots=True)
class Led:
    """What leads to chunks in object storage, to be committed together with the claims."""

    stubs: Mapping[bytes, bytes]
    claims: tuple[Note, ...]


class BlobUploads(BlobReads):
    """Plans that bring chunks into object storage, and all that only read."""

    def _new_owner_id(self) -> BlobPlan[bytes]:
        """Return the same; at the first save it is drawn."""
        while (owner := (yield from self._owner_id())) is None:
            note = Note.of(SCOPE, "owner", compress(pack(os.urandom(8))))
            try:
                yield commit_within(NotesOnly((note,), {}))
            except NoteExistsError:
                pass  # another was first
        return owner

    def _upload(self, packs: Sequence[Pack], chunks: Mapping[bytes, bytes]) -> BlobPlan[Led]:
        """Upload packs, some side by side: of a large save the chunks may be on disk."""
        stubs: dict[bytes, bytes] = {}
        for start in range(0, len(packs), _AT_ONCE):
            some = packs[start : start + _AT_ONCE]
            data = {name: chunks[name] for each in some for name in each.names}
            objects = [(each.object.path, [data[name] for name in each.names]) for each in some]
            said = yield UploadObjects(objects)
            sizes = sizes_of(data)
            for each, tag in zip(some, said, strict=True):
                stubs |= each.stubs(sizes, tag_of(tag))
        return Led(stubs, tuple(each.claim() for each in packs))

    def _relied_on(self, names: Collection[bytes]) -> BlobPlan[Led]:
        """Return what leads to those of the chunks that are stored, whole, and will stay.

        A save tells of itself before it reads the stubs that it commits once more. Whoever removes
        an object does so after its last stub is gone, and claims all such saves before: one that
        has read the stub is either refused, or has committed it and is seen.
        """
        found = locations_in((yield fetch_within(names)))
        whole = yield from self._whole(found)
        names = [name for name, place in found.items() if place.object in whole]
        if not names:
            return Led({}, ())
        upload = new_upload()
        yield commit_within(NotesOnly((use_of(upload),), {}))
        stored = yield fetch_within(names)
        places = locations_in(stored)
        stubs = {name: stored[name] for name in places if places[name].object in whole}
        return Led(stubs, (claim_of(upload),))

    def _whole(self, places: Mapping[bytes, Location]) -> BlobPlan[set[StoredObject]]:
        """Return those of the packs that are as they were uploaded; of many the largest parts.

        Chunks that are alone are packed instead. So nothing relies on what Holdfast 0.3 removes,
        which asks for no saves that do.
        """
        weights: dict[StoredObject, int] = defaultdict(int)
        for place in places.values():
            if place.object.alone is None:
                weights[place.object] += place.size
        if not weights:
            return set()
        heaviest = sorted(weights, key=weights.__getitem__, reverse=True)[:_LOOKED_AT]
        seen = yield LookAtObjects([each.path for each in heaviest])
        return {
            each
            for each, about in zip(heaviest, seen, strict=True)
            if about is not None and each.is_like(about[0], tag_of(about[1]))
        }
