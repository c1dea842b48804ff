"""Large files are cut where their content says so."""

import random

import pytest

from holdfast.workspace.cut import LONGEST, SHORTEST, cut


def pieces(data: bytes) -> list[bytes]:
    found = []
    while data:
        length = cut(data, is_end=True)
        found.append(data[:length])
        data = data[length:]
    return found


CHANCE = random.Random(3)
RANDOM = CHANCE.randbytes(12 * 2**20)
TEXT = b"".join(
    b"2026-01-%02d %06d %s\n" % (n % 30, n, CHANCE.choice([b"started", b"done", b"failed"]))
    for n in range(300_000)
)
JSON = TEXT.replace(b"\n", b",")


@pytest.mark.parametrize(
    "data", [RANDOM, TEXT, JSON, bytes(5 * 2**20), b"x" * 2**20, b"", b"short"]
)
def test_pieces_put_together_are_the_file_and_each_has_a_fit_size(data: bytes) -> None:
    found = pieces(data)

    assert b"".join(found) == data
    assert all(len(piece) <= LONGEST for piece in found)
    assert all(len(piece) >= SHORTEST for piece in found[:-1])


@pytest.mark.parametrize("data", [RANDOM, TEXT, JSON], ids=["random", "text", "json"])
@pytest.mark.parametrize("at", [0, 1_000_000, 5_000_000])
def test_an_insertion_changes_few_pieces(data: bytes, at: int) -> None:
    before = pieces(data)
    after = pieces(data[:at] + b"inserted, \n" + data[at:])

    assert len(set(after) - set(before)) <= 3


def test_where_a_file_is_cut_does_not_depend_on_how_it_is_read() -> None:
    found, buffer, at = [], b"", 0
    while True:
        data = RANDOM[at : at + 777_777]
        at += len(data)
        buffer += data
        while length := cut(buffer, is_end=not data):
            found.append(buffer[:length])
            buffer = buffer[length:]
        if not data:
            break

    assert found == pieces(RANDOM)
