"""Which parts of which objects to ask for, so that few requests bring many chunks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.stores.objects.keys import Location, StoredObject

_WORTH_A_REQUEST = 2**18
"""Bytes between two chunks that are sooner read along than left out by another request."""


@dataclass(slots=True)
class Range:
    """A part of an object, with the chunks in it."""

    object: StoredObject
    start: int
    end: int
    chunks: dict[bytes, Location] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the object."""
        return self.start == 0 and self.end == self.object.size

    def cut(self, data: bytes) -> dict[bytes, bytes]:
        """Return the chunks, given the bytes of the range."""
        if len(self.chunks) == 1:
            return dict.fromkeys(self.chunks, data)
        view = memoryview(data)
        return {
            name: bytes(view[place.start - self.start : place.end - self.start])
            for name, place in self.chunks.items()
        }


def ranges_of(locations: Mapping[bytes, Location]) -> list[Range]:
    """Return what to ask for; chunks that lie over each other, as none do, are left out."""
    by_object: dict[StoredObject, list[tuple[bytes, Location]]] = defaultdict(list)
    for name, place in locations.items():
        by_object[place.object].append((name, place))
    found: list[Range] = []
    for stored, places in by_object.items():
        places.sort(key=lambda each: each[1].start)
        run = Range(stored, places[0][1].start, places[0][1].start)
        found.append(run)
        for name, place in places:
            if not place.size or place.start < run.end or place.end > place.object.size:
                continue
            if place.start - run.end > _WORTH_A_REQUEST:
                run = Range(stored, place.start, place.start)
                found.append(run)
            run.chunks[name] = place
            run.end = place.end
    return [run for run in found if run.chunks]
