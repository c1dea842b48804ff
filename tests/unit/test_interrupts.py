"""Ctrl-C while values are packed or read is an interrupt, never taken for damage nor swallowed."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_encoder import encode
from holdfast.core.codec import Packer, Unpacker, pack
from holdfast.core.hooked_unpacker import HookedUnpacker
from holdfast.core.shallow_reader import shallow
from tests.interrupts import entering, interrupted

VALUE = {"seen": {1, 2}, "point": (1, (2, {3}))}
READERS: list[Callable[[bytes], Any]] = [Unpacker().unpack, references, shallow]
readers = pytest.mark.parametrize("read", READERS)


@readers
@pytest.mark.parametrize("function", [HookedUnpacker._hook, HookedUnpacker.unpack])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_reading(read: Callable[[bytes], Any], function: Callable[..., Any], at: int) -> None:
    raw = pack(VALUE)
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: read(raw), entering(function), at)

    read(raw)  # nothing of it is left behind


@pytest.mark.parametrize("function", [Packer.reduce, Packer.pack])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_packing(function: Callable[..., Any], at: int) -> None:
    packer = Packer()
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: packer.pack(VALUE), entering(function), at)

    assert packer.pack(VALUE) == pack(VALUE)


def test_encoding_a_state() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: encode(VALUE), entering(Packer.reduce), 1)
