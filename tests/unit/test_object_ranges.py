"""Which chunks go into which packs, and which parts of them are asked for."""

import random

import pytest

from holdfast.stores.objects.keys import Location, StoredObject, locations_in, tag_of
from holdfast.stores.objects.packs import (
    PACK_BYTES,
    PACK_CHUNKS,
    names_in,
    new_upload,
    packs_of,
    sizes_of,
)
from holdfast.stores.objects.ranges import ranges_of

OWNER, TAG = bytes(range(8)), b"12345678"


def chunks_of(*sizes: int) -> dict[bytes, bytes]:
    return {n.to_bytes(20, "big"): bytes([n % 256]) * size for n, size in enumerate(sizes)}


def test_every_chunk_is_in_one_pack_in_order_and_none_is_too_large() -> None:
    chance = random.Random(0)
    chunks = chunks_of(*(chance.choice([10, 20_000, 600_000]) for _ in range(200)))

    packs = packs_of(OWNER, sizes_of(chunks))

    assert [name for each in packs for name in each.names] == list(chunks)
    assert all(each.object.size <= PACK_BYTES for each in packs)
    assert len(packs) < 2 * sum(map(len, chunks.values())) / PACK_BYTES + 1
    assert len({each.object.path for each in packs}) == len(packs)


def test_a_chunk_that_is_larger_than_a_pack_has_one_of_its_own() -> None:
    packs = packs_of(OWNER, sizes_of(chunks_of(10, 2 * PACK_BYTES, 10, 10)))

    assert [each.object.chunks for each in packs] == [1, 1, 2]


def test_very_many_chunks_are_in_several_packs() -> None:
    packs = packs_of(OWNER, sizes_of(chunks_of(*[1] * (PACK_CHUNKS + 1))))

    assert [each.object.chunks for each in packs] == [PACK_CHUNKS, 1]


def test_stubs_lead_to_where_the_chunks_are() -> None:
    chunks = chunks_of(5, 1, 30)
    (pack,) = packs_of(OWNER, sizes_of(chunks))
    data = b"".join(chunks.values())

    places = locations_in(pack.stubs(sizes_of(chunks), TAG))

    assert {name: data[each.start : each.end] for name, each in places.items()} == chunks
    assert {each.object for each in places.values()} == {pack.object}
    assert all(each.object.is_like(36, TAG) for each in places.values())
    assert not any(each.object.is_like(35, TAG) for each in places.values())
    assert not any(each.object.is_like(36, b"another!") for each in places.values())
    assert names_in(pack.claim()) == tuple(chunks)


def test_of_storage_that_says_nothing_of_objects_the_size_is_compared() -> None:
    chunks = chunks_of(5, 1, 30)
    (pack,) = packs_of(OWNER, sizes_of(chunks))

    places = locations_in(pack.stubs(sizes_of(chunks), tag_of(None)))

    assert all(each.object.is_like(36, TAG) for each in places.values())
    assert not any(each.object.is_like(35, TAG) for each in places.values())


def test_uploads_come_in_the_order_of_time() -> None:
    drawn = [new_upload() for _ in range(5000)]

    assert len(set(drawn)) == 5000
    assert [each[:6] for each in drawn] == sorted(each[:6] for each in drawn)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "packs", "00/packs/", "00/packs/11", "00/packs/11-x", "00/packs/zz-1"),
        *("00/packs/11-0", "00/packs/11--1"),
        *("00/packs/11-01", "00/packs/11-+1", "00/packs/11- 1", "00/packs/AA-1", "x/packs/11-1"),
        *("00/ab/abcd-ef", f"00/00/{'00' * 20}", f"00/01/{'00' * 20}-11", "00/packs/11-1/2"),
        f"00/packs/11-{'9' * 5000}",
    ],
)
def test_a_path_that_no_upload_has_is_not_ours(path: str) -> None:
    assert StoredObject.of_path(path, 1) is None


@pytest.mark.parametrize(
    "stored",
    [
        StoredObject.of_pack(OWNER, new_upload(), 7, 100),
        StoredObject.of_chunk(OWNER, bytes(20), bytes(8), 100),
    ],
)
def test_an_object_is_known_by_its_path(stored: StoredObject) -> None:
    found = StoredObject.of_path(stored.path, 100)

    assert found == stored
    assert found is not None
    assert (found.upload, found.chunks, found.size) == (stored.upload, stored.chunks, 100)
    assert (found.alone, found.stub_bytes) == (stored.alone, stored.stub_bytes)


PACK = StoredObject.of_pack(OWNER, new_upload(), 9, 10_000_000)
OTHER = StoredObject.of_pack(OWNER, new_upload(), 9, 500)


def places_of(*places: tuple[int, int], of: StoredObject = PACK) -> dict[bytes, Location]:
    return {bytes(19) + bytes([n]): Location(of, *place) for n, place in enumerate(places)}


def test_what_is_near_is_asked_for_at_once_and_what_is_far_is_not() -> None:
    places = places_of((5_000_000, 10), (0, 100), (120, 10), (5_100_000, 50))

    found = ranges_of(places)

    assert [(each.start, each.end) for each in found] == [(0, 130), (5_000_000, 5_100_050)]
    assert {name for each in found for name in each.chunks} == places.keys()


def test_each_object_is_asked_for_itself() -> None:
    places = {**places_of((0, 100)), b"other": Location(OTHER, 0, 500)}

    found = ranges_of(places)

    assert [(each.object, each.is_whole) for each in found] == [(PACK, False), (OTHER, True)]


def test_what_is_cut_out_of_a_range_is_what_is_there() -> None:
    data = random.Random(1).randbytes(1000)
    places = places_of((100, 20), (400, 30), (900, 100))
    (found,) = ranges_of(places)

    cut = found.cut(data[found.start : found.end])

    assert cut == {name: data[each.start : each.end] for name, each in places.items()}


@pytest.mark.parametrize("bad", [(50, 10), (9_999_999, 2), (2**32, 1), (0, 0), (1_000_000, 0)])
def test_places_that_no_chunk_has_are_left_out(bad: tuple[int, int]) -> None:
    places = places_of((0, 100), bad)

    found = ranges_of(places)

    assert [list(each.chunks) for each in found] == [[min(places)]]
    assert ranges_of(places_of((0, 0))) == []
    assert ranges_of({}) == []
