"""Bytes that are too many for memory lie in a file that nobody sees and that leaves nothing."""

import errno
import gc
import os
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StoreError
from holdfast.system.bytes_on_disk import BytesOnDisk

MIB = 2**20


def named(number: int) -> bytes:
    return number.to_bytes(20, "big")


def filled(count: int = 64, size: int = MIB // 8) -> BytesOnDisk:
    """One that has this many times so many bytes, each time other ones."""
    found = BytesOnDisk({b"first": b"1"})
    for number in range(count):
        found[named(number)] = named(number) * (size // 20)
    return found


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


def test_what_is_added_comes_back_and_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        found = filled()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < MIB / 2
    assert peak < MIB
    assert found[b"first"] == b"1"
    assert all(found[named(n)] == named(n) * (MIB // 160) for n in reversed(range(64)))


def test_it_is_a_mapping_like_any_other() -> None:
    found, usual = filled(9, 100_000), {b"first": b"1"}
    usual |= {named(n): named(n) * 5000 for n in range(9)}

    for each in (found, usual):
        each[named(3)] = b"another"
        each[named(50)] = b"late"
        del each[named(4)], each[named(8)], each[b"first"]
        each[named(4)] = b"again"

    assert dict(found) == usual
    assert (len(found), named(3) in found, named(8) in found) == (len(usual), True, False)
    assert found.get(named(8)) is None
    with pytest.raises(KeyError):
        del found[named(8)]


def test_its_file_has_no_name_and_goes_with_it(scratch: Path) -> None:
    gc.collect()  # what other tests left
    before = open_files()
    found = filled()

    assert os.listdir(scratch) == []
    assert open_files() == before + 1
    del found
    gc.collect()
    assert open_files() == before


def test_a_child_reads_what_was_there_when_it_was_forked() -> None:
    found = filled()
    child = os.fork()
    if not child:
        os._exit(0 if found[named(7)] == named(7) * (MIB // 160) else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert found[named(7)] == named(7) * (MIB // 160)


def test_where_no_file_can_be_made_all_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    found = filled()

    assert dict(found) == dict(filled())
    assert len(found) == 65


def test_on_a_full_disk_what_fits_is_there_and_the_rest_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, write = [3 * MIB], os.pwrite

    def full(fd: int, data: Any, at: int) -> int:
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(fd, data[: left[0]], at)
        left[0] -= written
        return written

    monkeypatch.setattr(os, "pwrite", full)
    found = filled()
    found[named(1)] = b"another"

    assert left == [0]
    monkeypatch.undo()
    assert dict(found) == dict(filled()) | {named(1): b"another"}


def test_a_file_that_lost_its_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = filled()
    monkeypatch.setattr(os, "pread", lambda fd, size, at: b"")
    with pytest.raises(StoreError, match="cut off"):
        found[named(1)]

    def broken(fd: int, size: int, at: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", broken)
    with pytest.raises(StoreError, match="cannot be read"):
        found[named(1)]
