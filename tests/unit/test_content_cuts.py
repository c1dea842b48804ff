"""Files and states are cut where their content says so, and as every version has cut them."""

import random
from typing import Any

import pytest

from holdfast.core.chunk_encoder import encode
from holdfast.core.content_cuts import LONGEST_PIECE, SHORTEST_PIECE, first_piece


def pieces(data: bytes) -> list[bytes]:
    found = []
    while data:
        length = first_piece(data, is_end=True)
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
    assert all(len(piece) <= LONGEST_PIECE for piece in found)
    assert all(len(piece) >= SHORTEST_PIECE for piece in found[:-1])


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
        while length := first_piece(buffer, is_end=not data):
            found.append(buffer[:length])
            buffer = buffer[length:]
        if not data:
            break

    assert found == pieces(RANDOM)


# What the first versions gave: stores hold it, and what is saved again has to be found there.

FIRST_PIECES = {
    "random": (RANDOM, [253008, 558255, 135663, 497709, 554482, 554411, 389089, 623901]),
    "text": (TEXT, [625613, 460939, 148933, 254523, 459715, 477634, 462323, 202262]),
    "json": (JSON, [625613, 460939, 148933, 254523, 459715, 477634, 462323, 202262]),
}


@pytest.mark.parametrize("name", FIRST_PIECES)
def test_files_are_cut_where_they_always_were(name: str) -> None:
    data, lengths = FIRST_PIECES[name]

    assert [len(piece) for piece in pieces(data)[: len(lengths)]] == lengths


_drawn = random.Random(13)
WORDS = [
    _drawn.choice(["alpha", "beta", "gamma", "delta", "epsilon"]) + str(n % 97)
    for n in range(60_000)
]
STATES: dict[str, tuple[Any, str, int]] = {
    "a long list": (
        [
            {"role": "user", "id": n, "content": " ".join(WORDS[n * 20 : n * 20 + 20])}
            for n in range(2000)
        ],
        "f5059b84e3384ca32485481bf67fd9d31476cee7",
        30,
    ),
    "a long dict": (
        {f"key {n}": WORDS[n] for n in range(9000)},
        "1b373f03df0ae0b98ef7aedb623cb3767485f3fa",
        26,
    ),
    "keys that are no strings": (
        {n: WORDS[n] for n in range(5000)},
        "55270ba19cbcaba4b59f5a2d06adbb8da0730254",
        27,
    ),
    "a long text": (
        "\n".join(" ".join(WORDS[n : n + 12]) for n in range(0, 60_000, 12)),
        "531524c88a7df2b07dad7e7f9f3a5b49402e45cc",
        41,
    ),
    "text without lines": ("".join(WORDS), "5c6392b2ef29a40f2d3185479a83c89e7fa750e8", 43),
    "bytes": (
        random.Random(5).randbytes(400_000),
        "8eb3cf4528536da7d33f7962d492dda678b8bb1c",
        29,
    ),
    "a long tuple": (tuple(range(50_000)), "5e7c88f5b3ab52ef24e543c8a2a8dc0642282a0e", 14),
    "large elements": (
        [" ".join(WORDS[n * 2000 : n * 2000 + 2000]) for n in range(30)],
        "32c450e6c30a76c2a61a9865f1eec98f91c0e6b2",
        107,
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_states_are_cut_where_they_always_were(name: str) -> None:
    value, root, chunks = STATES[name]

    encoded = encode({"x": value})

    assert (encoded.root.hex(), len(encoded.chunks)) == (root, chunks)
