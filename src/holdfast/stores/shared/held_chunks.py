"""The chunks of a loaded state: those of a large one stay as they are stored until they are read.

So a large state that is restored is there once, and not a second time in its chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.core.chunk_format import decompress

_HELD_UNPACKED = 32 * 2**20
"""Bytes that are held unpacked, so that no state of usual size is unpacked twice."""


class HeldChunks:
    """Gathers chunks that were proven, and keeps each in the form that takes less."""

    def __init__(self) -> None:
        self.sizes: dict[bytes, int] = {}
        """Bytes of each chunk."""
        self._unpacked: dict[bytes, bytes] = {}
        self._stored: dict[bytes, bytes] = {}
        self._left = _HELD_UNPACKED

    def __contains__(self, name: bytes) -> bool:
        return name in self.sizes

    def hold(self, name: bytes, raw: bytes, stored: bytes | None = None) -> None:
        """Keep a chunk; as it is stored if that is given, and it is one of many."""
        self.sizes[name] = len(raw)
        self._left -= len(raw)
        if self._left < 0 and stored is not None and len(stored) < len(raw):
            self._stored[name] = stored
        else:
            self._unpacked[name] = raw

    @property
    def chunks(self) -> Mapping[bytes, bytes]:
        """Return the chunks by name, unpacked as they are asked for."""
        if not self._stored:
            return self._unpacked
        return _Chunks(self._unpacked, self._stored)


class _Chunks(Mapping[bytes, bytes]):
    """Chunks, some of which are unpacked whenever they are asked for."""

    def __init__(self, unpacked: dict[bytes, bytes], stored: dict[bytes, bytes]) -> None:
        self._unpacked = unpacked
        self._stored = stored

    def __getitem__(self, name: bytes) -> bytes:
        raw = self._unpacked.get(name)
        return decompress(self._stored[name]) if raw is None else raw

    def __contains__(self, name: object) -> bool:
        return name in self._unpacked or name in self._stored

    def __iter__(self) -> Iterator[bytes]:
        yield from self._unpacked
        yield from self._stored

    def __len__(self) -> int:
        return len(self._unpacked) + len(self._stored)
