"""The chunks of a loaded state: those of a large one lie on disk until they are read.

So a large state that is restored is there once, and not a second time in its chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

_HELD = 32 * 2**20
"""Bytes that are held in memory, so that no state of usual size goes to disk."""


class HeldChunks:
    """Gathers chunks that were proven, as they are when they are unpacked."""

    def __init__(self) -> None:
        self.sizes: dict[bytes, int] = {}
        """Bytes of each chunk."""
        self._chunks: MutableMapping[bytes, bytes] = {}
        self._room = _HELD

    def __contains__(self, name: bytes) -> bool:
        return name in self.sizes

    def hold(self, name: bytes, raw: bytes) -> None:
        """Keep a chunk."""
        self.sizes[name] = len(raw)
        if self._room >= 0:
            self._room -= len(raw)
            if self._room < 0:
                from holdfast.system.bytes_on_disk import BytesOnDisk

                self._chunks = BytesOnDisk(dict(self._chunks))
        self._chunks[name] = raw

    @property
    def chunks(self) -> Mapping[bytes, bytes]:
        """Return the chunks by name."""
        return self._chunks
