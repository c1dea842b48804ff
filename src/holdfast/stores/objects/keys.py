"""Where chunks lie in object storage: objects by their paths, and the stubs that lead into them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.core.chunk_format import ID_BYTES

_ALONE, _PACKED = b"\x02", b"\x03"
_ALONE_STUB = struct.Struct(">c8s8sQ")
_PACKED_STUB = struct.Struct(">c8s14sHIII8s")
_PACKS = "packs"
UPLOAD_BYTES = 14
_TAG_BYTES = 8
_UNTAGGED = bytes(_TAG_BYTES)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object: a pack of chunks, or a chunk alone as older Holdfasts kept it.

    Each upload has a path of its own, used once; so nothing but the path says which object it is.
    """

    path: str
    upload: bytes = field(compare=False)
    chunks: int = field(compare=False)
    """How many chunks there are in it."""
    size: int = field(compare=False)
    tag: bytes = field(compare=False, default=_UNTAGGED)
    """What the storage said of it when it was uploaded, where that is known."""
    alone: bytes | None = field(compare=False, default=None)
    """The name of the chunk that it is; None for a pack."""

    @classmethod
    def of_pack(
        cls, owner: bytes, upload: bytes, chunks: int, size: int, tag: bytes = _UNTAGGED
    ) -> StoredObject:
        """Return the pack of an upload."""
        return cls(f"{owner.hex()}/{_PACKS}/{upload.hex()}-{chunks}", upload, chunks, size, tag)

    @classmethod
    def of_chunk(cls, owner: bytes, name: bytes, upload: bytes, size: int) -> StoredObject:
        """Return the object that is a chunk alone."""
        digits = name.hex()
        path = f"{owner.hex()}/{digits[:2]}/{digits}-{upload.hex()}"
        return cls(path, upload, 1, size, alone=name)

    @classmethod
    def of_path(cls, path: str, size: int) -> StoredObject | None:
        """Return the object that has this path, or None if it is none of ours."""
        owner, _, rest = path.partition("/")
        folder, _, last = rest.partition("/")
        first, _, second = last.partition("-")
        try:
            if folder == _PACKS:
                found = cls.of_pack(bytes.fromhex(owner), bytes.fromhex(first), int(second), size)
            else:
                name = bytes.fromhex(first)
                if len(name) != ID_BYTES:
                    return None
                found = cls.of_chunk(bytes.fromhex(owner), name, bytes.fromhex(second), size)
        except ValueError:
            return None
        return found if found.path == path and found.chunks > 0 else None

    @property
    def stub_bytes(self) -> int:
        """How many bytes the store within keeps in the stead of its chunks."""
        return self.chunks * (_PACKED_STUB if self.alone is None else _ALONE_STUB).size

    def is_like(self, size: int, tag: bytes) -> bool:
        """Return whether what is there now is what was uploaded."""
        return size == self.size and self.tag in (_UNTAGGED, tag)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a chunk lies: a part of an object."""

    object: StoredObject
    start: int
    size: int

    @property
    def end(self) -> int:
        """Where in the object it ends."""
        return self.start + self.size

    @classmethod
    def of_stub(cls, name: bytes, stored: bytes) -> Location | None:
        """Return the location that a stub leads to, or None if this is a chunk."""
        if stored[:1] == _PACKED and len(stored) == _PACKED_STUB.size:
            _, owner, upload, chunks, start, size, total, tag = _PACKED_STUB.unpack(stored)
            return cls(StoredObject.of_pack(owner, upload, chunks, total, tag), start, size)
        if stored[:1] == _ALONE and len(stored) == _ALONE_STUB.size:
            _, owner, upload, size = _ALONE_STUB.unpack(stored)
            return cls(StoredObject.of_chunk(owner, name, upload, size), 0, size)
        return None


def stub_in_pack(owner: bytes, pack: StoredObject, start: int, size: int, tag: bytes) -> bytes:
    """Return what the store within keeps in the stead of a chunk of a pack."""
    return _PACKED_STUB.pack(_PACKED, owner, pack.upload, pack.chunks, start, size, pack.size, tag)


def tag_of(said: str | None) -> bytes:
    """Return what to remember of what the storage says of an object, such as a digest."""
    return _UNTAGGED if said is None else hashlib.sha256(said.encode()).digest()[:_TAG_BYTES]


def locations_in(stored: Mapping[bytes, bytes]) -> dict[bytes, Location]:
    """Return where those of the chunks are that lie in object storage."""
    found = ((name, Location.of_stub(name, data)) for name, data in stored.items())
    return {name: location for name, location in found if location is not None}
