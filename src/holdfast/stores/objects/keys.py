"""Where chunks lie in object storage, as a path and as the stub that leads there."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.core.chunk_format import ID_BYTES

_MARK = b"\x02"
_STUB = struct.Struct(">c8s8sQ")
STUB_BYTES = _STUB.size
"""How many bytes the store within keeps in a chunk's stead."""


@dataclass(frozen=True, slots=True)
class BlobLocation:
    """Where a chunk lies in object storage. Each upload has a location of its own, used once."""

    owner: bytes
    name: bytes
    upload: bytes
    size: int = field(compare=False)

    @property
    def path(self) -> str:
        """Return the path of the object."""
        name = self.name.hex()
        return f"{self.owner.hex()}/{name[:2]}/{name}-{self.upload.hex()}"

    @classmethod
    def of_path(cls, path: str, size: int) -> BlobLocation | None:
        """Return the location that has this path, or None if it is none of ours."""
        owner, _, last = path.partition("/")
        name, _, upload = last.rpartition("/")[2].partition("-")
        try:
            location = cls(bytes.fromhex(owner), bytes.fromhex(name), bytes.fromhex(upload), size)
        except ValueError:
            return None
        return location if location.path == path and len(location.name) == ID_BYTES else None

    def stub(self) -> bytes:
        """Return what the store within keeps in the chunk's stead."""
        return _STUB.pack(_MARK, self.owner, self.upload, self.size)

    @classmethod
    def of_stub(cls, name: bytes, stored: bytes) -> BlobLocation | None:
        """Return the location that a stub leads to, or None if this is a chunk."""
        if len(stored) != _STUB.size or stored[:1] != _MARK:
            return None
        _, owner, upload, size = _STUB.unpack(stored)
        return cls(owner, name, upload, size)


def locations_in(stored: Mapping[bytes, bytes]) -> dict[bytes, BlobLocation]:
    """Return where those of the chunks are that lie in object storage."""
    found = ((name, BlobLocation.of_stub(name, data)) for name, data in stored.items())
    return {name: location for name, location in found if location is not None}
