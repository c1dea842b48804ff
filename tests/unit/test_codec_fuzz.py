"""Hostile bytes: whatever they are, a reader ends with a value or with an error of ours."""

from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CheckpointIntegrityError, SerializationError
from holdfast.core.chunks import encode
from holdfast.core.codec import pack, unpack
from holdfast.core.format import checked, compress, decompress, unpack_index
from holdfast.core.shallow import shallow
from holdfast.core.tree import decode, references

READERS: dict[str, Callable[[bytes], Any]] = {
    "unpack": unpack,
    "unpack raw": lambda data: unpack(data, "raw"),
    "decode": lambda data: decode(b"root", {b"root": data}),
    "references": references,
    "shallow": shallow,
    "decompress": decompress,
    "checked": lambda data: checked(b"name", data),
    "unpack_index": unpack_index,
}
SAMPLE = pack([(1, {2: "x"}), {"a": b"bytes", "b": [1.5, None, 2**70]}, frozenset({"k"})])


def read(data: bytes) -> None:
    for reader in READERS.values():
        try:
            reader(data)
        except (CheckpointIntegrityError, SerializationError):
            continue


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read(data)


@given(st.integers(0, 255), st.binary(max_size=60))
def test_any_extension_is_read_or_refused(code: int, content: bytes) -> None:
    read(ormsgpack.packb([ormsgpack.Ext(code % 128, content)]))


@pytest.mark.parametrize("at", range(len(SAMPLE)))
def test_a_value_cut_short_or_with_a_flipped_byte_is_read_or_refused(at: int) -> None:
    read(SAMPLE[:at])
    for flip in (0x01, 0x80, 0xFF):
        read(SAMPLE[:at] + bytes([SAMPLE[at] ^ flip]) + SAMPLE[at + 1 :])


@given(st.data())
def test_a_state_with_a_damaged_chunk_is_refused(data: st.DataObject) -> None:
    state = {"messages": [{"n": n, "text": "word " * 40} for n in range(200)]}
    encoded = encode(state)
    stored = {name: compress(raw) for name, raw in encoded.chunks.items()}
    name = data.draw(st.sampled_from(sorted(stored)))
    at = data.draw(st.integers(0, len(stored[name]) - 1))
    damaged = bytearray(stored[name])
    damaged[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(CheckpointIntegrityError):
        decode(encoded.root, {**encoded.chunks, name: checked(name, bytes(damaged))})
