"""Ctrl-C while values are packed or read is an interrupt, never taken for damage nor swallowed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from holdfast.core.chunks import encode
from holdfast.core.codec import Packer, Unpacker, pack
from holdfast.core.scan import Scan
from holdfast.core.shallow import shallow
from holdfast.core.tree import references

VALUE = {"seen": {1, 2}, "point": (1, (2, {3}))}
READERS: list[Callable[[bytes], Any]] = [Unpacker().unpack, references, shallow]
readers = pytest.mark.parametrize("read", READERS)


@contextmanager
def interrupted_on_entering(function: Callable[..., Any], at: int) -> Iterator[None]:
    """As a signal does: the exception arises as the function begins, before its first line."""
    met = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal met
        if event == "call" and frame.f_code is function.__code__:
            met += 1
            if met == at:
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


@readers
@pytest.mark.parametrize("function", [Scan._hook, Scan.unpack])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_reading(read: Callable[[bytes], Any], function: Callable[..., Any], at: int) -> None:
    raw = pack(VALUE)
    with (
        pytest.raises(KeyboardInterrupt),
        interrupted_on_entering(function, at),
    ):
        read(raw)

    read(raw)  # nothing of it is left behind


@pytest.mark.parametrize("function", [Packer.reduce, Packer.pack])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_packing(function: Callable[..., Any], at: int) -> None:
    packer = Packer()
    with (
        pytest.raises(KeyboardInterrupt),
        interrupted_on_entering(function, at),
    ):
        packer.pack(VALUE)

    assert packer.pack(VALUE) == pack(VALUE)


def test_encoding_a_state() -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        interrupted_on_entering(Packer.reduce, 2),
    ):
        encode(VALUE)
