"""Chunks in their stored form, many at once: as one by one, whoever does the work."""

import os
import threading

import pytest

from holdfast.core.chunk_format import chunk_id, compress
from holdfast.errors import CheckpointIntegrityError
from holdfast.stores.shared import unpacking
from holdfast.stores.shared.unpacking import unpacked


@pytest.fixture(params=[2, 200], ids=["few", "many"])
def raws(request: pytest.FixtureRequest) -> list[bytes]:
    return [os.urandom(10_000) + bytes(5_000) for _ in range(request.param)]


def kept(raws: list[bytes]) -> dict[bytes, bytes]:
    return {chunk_id(raw): compress(raw) for raw in raws}


def test_every_chunk_comes_back_under_its_name(raws: list[bytes]) -> None:
    assert unpacked(kept(raws)) == {chunk_id(raw): raw for raw in raws}
    assert unpacked({}) == {}


@pytest.mark.parametrize("which", [0, 1, -1, -2])
def test_a_damaged_chunk_is_named_wherever_it_is(raws: list[bytes], which: int) -> None:
    stored = kept(raws)
    name = list(stored)[which]
    stored[name] = compress(b"another")

    with pytest.raises(CheckpointIntegrityError, match=name.hex()):
        unpacked(stored)
    assert unpacked(stored, verify=False)[name] == b"another"


def test_the_work_of_many_is_shared(raws: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    workers = set()

    def checked(name: bytes, data: bytes) -> bytes:
        workers.add(threading.current_thread().name)
        return b""

    monkeypatch.setattr(unpacking, "checked", checked)
    monkeypatch.setattr(unpacking, "_CORES", 2)
    unpacked(kept(raws))

    assert len(workers) == (2 if len(raws) > 100 else 1)
    assert "holdfast-unpack" not in {thread.name for thread in threading.enumerate()}


def test_an_interrupt_ends_the_work(raws: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: bytes, data: bytes) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(unpacking, "checked", interrupted)
    with pytest.raises(KeyboardInterrupt):
        unpacked(kept(raws))
