"""Many chunks from their stored form, by two threads where that is worth it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping

from holdfast.core.chunk_decoder import DEFAULT_LIMITS, too_much
from holdfast.core.chunk_format import checked, claimed_size, decompress
from holdfast.errors import StoreError

_WORTH_A_THREAD = 2**20
_CORES = os.cpu_count() or 1


def unpacked(
    stored: Mapping[bytes, bytes], verify: bool = True, room: int = DEFAULT_LIMITS.bytes
) -> dict[bytes, bytes]:
    """Return the bytes of many chunks, proven unless told otherwise; much is shared by two threads.

    A few bytes may unpack into many: more than there is room for is refused, before any is.
    """
    size = sum(map(claimed_size, stored.values()))
    if size > room:
        raise too_much()
    found: dict[bytes, bytes] = {}
    failures: list[BaseException] = []

    def work(part: Iterable[tuple[bytes, bytes]]) -> None:
        try:
            for name, data in part:
                found[name] = checked(name, data) if verify else decompress(data)
        except BaseException as failure:
            failures.append(failure)

    if _CORES == 1 or sum(map(len, stored.values())) < _WORTH_A_THREAD:
        work(stored.items())
    else:
        items = list(stored.items())
        other = threading.Thread(target=work, args=(items[1::2],), name="holdfast-unpack")
        try:
            other.start()
        except RuntimeError:  # there are too many, or the interpreter is ending
            work(items)
        else:
            work(items[::2])
            other.join()
    if failures and isinstance(failures[0], MemoryError):
        found.clear()
        raise StoreError(f"there is not enough memory to read a state of {size:,} bytes")
    if failures:
        raise failures[0]
    return found
