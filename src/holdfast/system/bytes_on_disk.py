"""Bytes by name that may be too many for memory; gone with the process, however it ends."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, MutableMapping

from holdfast.errors import StoreError

_AT_ONCE = 256 * 1024
"""Bytes that are written together."""


class BytesOnDisk(MutableMapping[bytes, bytes]):
    """Those there are so far stay in memory, and what is added goes to a file that has no name.

    Where no such file can be written, what is added stays in memory too: that costs memory, and
    fails nothing that there is memory for.

    >>> from holdfast.system.bytes_on_disk import BytesOnDisk
    >>> found = BytesOnDisk({b"first": b"1"})
    >>> found[b"second"] = b"22"
    >>> dict(found)
    {b'first': b'1', b'second': b'22'}
    """

    def __init__(self, held: dict[bytes, bytes]) -> None:
        self._held = held
        self._places: dict[bytes, tuple[int, int]] = {}
        self._waiting: list[bytes] = []
        """Names of those held that are to be written next."""
        self._waiting_bytes = 0
        self._end = 0
        self._fd = _new_file()
        self._has_room = self._fd >= 0
        if self._has_room:
            weakref.finalize(self, os.close, self._fd)

    def __setitem__(self, name: bytes, data: bytes) -> None:
        self._places.pop(name, None)
        self._held[name] = data
        if self._has_room:
            self._waiting.append(name)
            self._waiting_bytes += len(data)
            if self._waiting_bytes >= _AT_ONCE:
                self._write()

    def _write(self) -> None:
        names = [name for name in dict.fromkeys(self._waiting) if name in self._held]
        self._waiting, self._waiting_bytes = [], 0
        at, rest = self._end, memoryview(b"".join([self._held[name] for name in names]))
        try:
            while rest:
                written = os.pwrite(self._fd, rest, at)
                at, rest = at + written, rest[written:]
        except OSError:  # what was written before is still read from there
            self._has_room = False
            return
        for name in names:
            size = len(self._held.pop(name))
            self._places[name] = self._end, size
            self._end += size

    def __getitem__(self, name: bytes) -> bytes:
        place = self._places.get(name)
        if place is None:
            return self._held[name]
        at, size = place
        try:
            data = os.pread(self._fd, size, at)
        except OSError as error:
            raise StoreError(f"a temporary file cannot be read ({error})") from error
        if len(data) != size:
            raise StoreError("a temporary file was cut off")
        return data

    def __delitem__(self, name: bytes) -> None:
        if self._places.pop(name, None) is None:
            del self._held[name]

    def __contains__(self, name: object) -> bool:
        return name in self._held or name in self._places

    def __iter__(self) -> Iterator[bytes]:
        yield from self._held
        yield from self._places

    def __len__(self) -> int:
        return len(self._held) + len(self._places)


def _new_file() -> int:
    """Return a new temporary file, for its owner alone and without a name; -1 if there is none.

    ``TMPDIR`` says where.
    """
    import tempfile

    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            return os.dup(file.fileno())
    except OSError:
        return -1
