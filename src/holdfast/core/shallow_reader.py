"""A chunk read without opening what it refers to: for layouts and for diffs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ormsgpack

from holdfast.core.chunk_decoder import Chunks, inner_index
from holdfast.core.chunk_format import (
    PAGED_BYTES,
    PAGED_DICT,
    PAGED_LIST,
    PAGED_STR,
    REF_LEAF,
    REF_NODE,
    unpack_index,
)
from holdfast.core.hooked_unpacker import HookedUnpacker
from holdfast.core.kinds import Ready, bytes_codes
from holdfast.errors import CheckpointIntegrityError

HOLES = frozenset({REF_LEAF, REF_NODE, PAGED_LIST, PAGED_DICT, PAGED_STR, PAGED_BYTES})


@dataclass(frozen=True, slots=True)
class Hole:
    """A part that is kept in other chunks: a reference, or the index of its pages."""

    code: int
    data: bytes


def shallow(raw: bytes) -> Any:
    """Return the value of a chunk: Holes for what it refers to, Ready for what is not plain."""
    return _Shallow().unpack(raw)


class _Shallow(HookedUnpacker):
    __slots__ = ()

    def meet(self, code: int, data: bytes) -> Hole | Ready:
        if code in HOLES:
            return Hole(code, data)
        return Ready(code, data if code in bytes_codes else self.unpack(data))


def packed(value: Any) -> bytes:
    """Return the bytes that a shallow value came from."""
    try:
        return ormsgpack.packb(value, _extension, ormsgpack.OPT_PASSTHROUGH_DATACLASS)
    except TypeError as error:  # msgpack reads deeper nesting than it writes
        raise CheckpointIntegrityError(None, f"unreadable value ({error})") from None


def _extension(value: Any) -> ormsgpack.Ext:
    if type(value) is Hole:
        return ormsgpack.Ext(value.code, value.data)
    if type(value) is Ready:
        data = value.plain if value.code in bytes_codes else packed(value.plain)
        return ormsgpack.Ext(value.code, data)
    raise TypeError


def page_entries(index: bytes, chunks: Chunks) -> Iterator[tuple[bytes, int, bool, bool]]:
    """Return the pages of an index in order, through all its levels."""
    level, entries = unpack_index(index)
    for entry in entries:
        if level:
            yield from page_entries(inner_index(chunks[entry[0]]), chunks)
        else:
            yield entry
