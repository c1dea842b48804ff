"""Numbers chosen to collide are refused, at save and at load; common ones are not."""

import random
from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CheckpointIntegrityError, SerializationError, SyncClient
from holdfast.core.codec import pack, unpack
from holdfast.core.collisions import FEW
from holdfast.core.json_form import dumps, from_json, loads, to_json
from holdfast.core.kinds.standard import FROZENSET, PAIRS, SET
from tests import strategies as s
from tests.unit.collisions import PRIME, on_one_trail

COUNT = 5000


def alike(count: int = COUNT) -> list[int]:
    """Integers that all have the same hash."""
    return [7 + at * PRIME for at in range(count)]


COLLIDING: dict[str, Any] = {
    "int": alike,
    "float beside int": lambda: [*alike(), 0.5],
    "Decimal": lambda: [Decimal(number) for number in alike()],
    "Fraction": lambda: [Fraction(number) for number in alike()],
    "tuple": lambda: [(number, "same") for number in alike()],
    "object": lambda: [s.Frozen(number) for number in alike()],
    "negative": lambda: [-number for number in alike()],
}


def packed_list(elements: list[Any]) -> bytes:
    return b"\xdc" + len(elements).to_bytes(2, "big") + b"".join(map(pack, elements))


@pytest.mark.parametrize("kind", COLLIDING)
@pytest.mark.parametrize("code", [SET, FROZENSET, PAIRS])
def test_elements_that_collide_are_refused_when_read(kind: str, code: int) -> None:
    elements = COLLIDING[kind]()
    if code == PAIRS:
        elements = [part for element in elements for part in (element, 1)]

    with pytest.raises(CheckpointIntegrityError, match="collide"):
        unpack(ormsgpack.packb(ormsgpack.Ext(code, packed_list(elements))))


def test_elements_that_collide_are_refused_in_json() -> None:
    document = {"a": {"$type": "set", "value": [to_json(number) for number in alike()]}}

    with pytest.raises(CheckpointIntegrityError, match=r"\$.a: .*collide"):
        from_json(loads(dumps(document)))


CONTAINERS: dict[str, Any] = {
    "set": set,
    "frozenset": frozenset,
    "dict": dict.fromkeys,
    "OrderedDict": OrderedDict.fromkeys,
    "Counter": Counter,
    "defaultdict": lambda numbers: defaultdict(int, dict.fromkeys(numbers, 1)),
    "subclass of set": s.Unique,
    "subclass of dict": lambda numbers: s.Mapping(dict.fromkeys(numbers)),
    "subclass of OrderedDict": lambda numbers: s.Ordered(dict.fromkeys(numbers)),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_what_could_not_be_read_back_is_not_saved(kind: str) -> None:
    value = CONTAINERS[kind](alike())

    with pytest.raises(SerializationError, match="collide") as caught:
        SyncClient.memory().save("coder", execution_state={"seen": [value]})

    assert caught.value.path == "$.seen[0]"


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_few_that_collide_are_kept(kind: str) -> None:
    value = CONTAINERS[kind](alike(FEW))

    assert unpack(pack(value)) == value


def test_distinct_hashes_on_one_trail_are_refused() -> None:
    chosen = on_one_trail()
    assert len(set(map(hash, chosen))) == len(chosen)
    flat = [part for key in chosen for part in (key, 1)]

    with pytest.raises(CheckpointIntegrityError, match="collide"):
        unpack(ormsgpack.packb(ormsgpack.Ext(PAIRS, packed_list(flat))))


COMMON: dict[str, Any] = {
    "counted": lambda n: range(n),
    "negative": lambda n: range(-n, 0),
    "ids": lambda n: range(10**12, 10**12 + 7 * n, 7),
    "moments": lambda n: range(
        1_700_000_000_000_000_000, 1_700_000_000_000_000_000 + n * 10**6, 10**6
    ),
    "even": lambda n: range(0, n << 13, 1 << 13),
    "pages": lambda n: range(0, n << 20, 1 << 20),
    "high": lambda n: range(0, n << 40, 1 << 40),
    "very high": lambda n: range(0, n << 300, 1 << 300),
    "random": lambda n: {random.Random(at).getrandbits(63) for at in range(n)},
    "floats": lambda n: {at / 1024 for at in range(n)},
    "fractions of one": lambda n: {random.Random(at).random() for at in range(n)},
    "pairs": lambda n: {(at // 100, at % 100) for at in range(n)},
    "decimals": lambda n: {Decimal(at) / 100 for at in range(n)},
    "uuids": lambda n: {UUID(int=random.Random(at).getrandbits(128)) for at in range(n)},
}


@pytest.mark.parametrize("count", [600, 20_000])
@pytest.mark.parametrize("kind", COMMON)
def test_common_numbers_are_kept(kind: str, count: int) -> None:
    for value in (set(COMMON[kind](count)), dict.fromkeys(COMMON[kind](count))):
        assert unpack(pack(value)) == value


@given(st.integers(0, 61), st.integers(1, 2**70), st.integers(0, 2**64), st.integers(500, 3000))
def test_evenly_spaced_numbers_are_kept(shift: int, step: int, start: int, count: int) -> None:
    step = step << shift if step % PRIME else 1
    value = set(range(start, start + step * count, step))

    assert unpack(pack(value)) == value
