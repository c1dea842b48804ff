"""Hostile bytes: whatever they are, a reader ends with a value or with an error of ours."""

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CheckpointIntegrityError, SerializationError
from holdfast.core.chunk_decoder import decode, references
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import checked, compress, decompress, unpack_index
from holdfast.core.codec import pack, unpack
from holdfast.core.differ import diff_roots
from holdfast.core.kinds import by_code
from holdfast.core.shallow_reader import shallow
from holdfast.system.drive import drive
from tests import strategies as s

SAMPLE = pack([(1, {2: "x"}), {"a": b"bytes", "b": [1.5, None, 2**70]}, frozenset({"k"})])


ASKED = "chunks"


def diff(data: bytes) -> None:
    """Compare the data with a state, as a root and as a state below one."""
    start = b"\x81" + pack("execution_state")
    for root in (data, start + data):
        for pair in ((root, start + SAMPLE), (start + SAMPLE, root), (root, start + data[:-1])):
            chunks = dict(zip((b"old", b"new"), pair, strict=True))
            with suppress(CheckpointIntegrityError, SerializationError):
                drive(diff_roots(b"old", b"new", asked), {ASKED: chunks}.__getitem__)


def asked(names: Any) -> Generator[Any, Any, Any]:
    return (yield ASKED)


READERS: dict[str, Callable[[bytes], Any]] = {
    "unpack": unpack,
    "unpack raw": lambda data: unpack(data, "raw"),
    "decode": lambda data: decode(b"root", {b"root": data}),
    "references": references,
    "shallow": shallow,
    "decompress": decompress,
    "checked": lambda data: checked(b"name", data),
    "unpack_index": unpack_index,
    "diff": diff,
}


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


@given(st.sampled_from(sorted(by_code)), st.sampled_from(sorted(by_code)), s.json_values())
def test_any_kind_with_any_data_is_read_or_refused(code: int, other: int, plain: Any) -> None:
    inner = ormsgpack.Ext(other, ormsgpack.packb(_small(plain)))
    for content in (_small(plain), [inner, inner], {"a": inner}, ["x:y", inner, inner, inner]):
        read(ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(content))))


def _small(value: Any) -> Any:
    """JSON values, but for integers that msgpack does not take."""
    if isinstance(value, int):
        return value % 2**60
    if isinstance(value, list):
        return [_small(part) for part in value]
    return value if not isinstance(value, dict) else {k: _small(v) for k, v in value.items()}


@pytest.mark.parametrize("levels", [250, 300, 1000])
def test_values_that_nest_deeper_than_can_be_written_are_read_or_refused(levels: int) -> None:
    read(b"\x91" * levels + b"\xc0")
