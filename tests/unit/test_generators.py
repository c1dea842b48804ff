"""Random generators go on where they were; what is no state of one is refused."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CheckpointIntegrityError, SerializationError
from holdfast.core.codec import pack, unpack
from holdfast.core.json_form import dumps, from_json, loads, to_json
from holdfast.core.kinds import by_name
from tests.unit.attacks import load_typed

BITS = ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"]
seeds = st.integers(0, 2**128)


def through(value: Any, *, as_json: bool) -> Any:
    return from_json(loads(dumps(to_json(value)))) if as_json else unpack(pack(value))


def plain_of(value: Any) -> Any:
    """The stored form of a value, to be altered by an attacker."""
    kind = "random.Random" if isinstance(value, random.Random) else "numpy.random"
    return by_name[kind].reduce(value)


@given(seeds, st.integers(0, 1300), st.booleans(), st.booleans())
def test_a_random_goes_on_where_it_was(seed: int, drawn: int, gauss: bool, as_json: bool) -> None:
    original = random.Random(seed)
    for _ in range(drawn):
        original.getrandbits(32)
    if gauss:
        original.gauss(0, 1)

    copy = through(original, as_json=as_json)

    assert type(copy) is random.Random
    assert copy.getstate() == original.getstate()
    assert [copy.gauss(0, 1), copy.random()] == [original.gauss(0, 1), original.random()]


@given(st.sampled_from(BITS), seeds, st.integers(0, 9), st.integers(0, 2), st.booleans())
def test_a_numpy_generator_goes_on_where_it_was(
    bits: str, seed: int, drawn: int, spawned: int, as_json: bool
) -> None:
    original = np.random.Generator(getattr(np.random, bits)(seed))
    original.integers(0, 9, drawn, dtype=np.uint32)
    original.spawn(spawned)

    copy = through(original, as_json=as_json)

    assert type(copy) is np.random.Generator
    assert type(copy.bit_generator) is type(original.bit_generator)
    assert list(copy.random(5)) == list(original.random(5))
    assert copy.spawn(1)[0].random() == original.spawn(1)[0].random()


@given(st.sampled_from(BITS), seeds, st.booleans(), st.booleans())
def test_a_random_state_of_numpy_goes_on_where_it_was(
    bits: str, seed: int, gauss: bool, as_json: bool
) -> None:
    original = np.random.RandomState(getattr(np.random, bits)(seed))
    if gauss:
        original.standard_normal()

    copy = through(original, as_json=as_json)

    assert type(copy) is np.random.RandomState
    assert list(copy.standard_normal(3)) == list(original.standard_normal(3))


@pytest.mark.parametrize("seed", [[1, 2, 3], (4, 5), np.array([6, 7]), 2**200])
def test_seeds_of_several_parts_are_kept(seed: Any) -> None:
    original = np.random.default_rng(seed)

    assert unpack(pack(original)).spawn(1)[0].random() == original.spawn(1)[0].random()


class Loaded(random.Random):
    pass


@pytest.mark.parametrize(
    "value",
    [
        random.SystemRandom(),
        Loaded(1),
        np.random.default_rng(np.random.SeedSequence(1, pool_size=100)),
        np.random.default_rng(2**5000),
        np.random.default_rng([1] * 300),
    ],
    ids=["SystemRandom", "subclass", "pool", "seed", "seeds"],
)
def test_a_generator_that_cannot_be_kept_is_named_by_its_path(value: Any) -> None:
    with pytest.raises(SerializationError) as caught:
        pack({"dice": [value]})

    assert caught.value.path == "$.dice[0]"


def altered(plain: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = unpack(pack(plain))
    at = copy
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return copy


RANDOM = plain_of(random.Random(1))
TWISTER = plain_of(np.random.Generator(np.random.MT19937(1)))
PHILOX = plain_of(np.random.Generator(np.random.Philox(1)))
LEGACY = plain_of(np.random.RandomState(1))


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("random.Random", altered(RANDOM, (1, 0), 2)),
        ("random.Random", altered(RANDOM, (1, 1), b"short")),
        ("random.Random", altered(RANDOM, (1, 2), 625)),
        ("random.Random", altered(RANDOM, (1, 2), -1)),
        ("random.Random", altered(RANDOM, (1, 3), "gauss")),
        ("random.Random", ["random:Random"]),
        ("numpy.random", altered(TWISTER, (0,), "os:system")),
        ("numpy.random", altered(TWISTER, (1, "bit_generator"), "default_rng")),
        ("numpy.random", altered(TWISTER, (1, "bit_generator"), "SFC64")),
        ("numpy.random", altered(TWISTER, (1, "state", "pos"), 625)),
        ("numpy.random", altered(TWISTER, (1, "state", "pos"), -1)),
        ("numpy.random", altered(TWISTER, (1, "state", "key"), b"\x00" * 8)),
        ("numpy.random", altered(TWISTER, (2, 0), None)),
        ("numpy.random", altered(TWISTER, (2, 0), [1] * 1000)),
        ("numpy.random", altered(TWISTER, (2, 1), [2**4000])),
        ("numpy.random", altered(TWISTER, (2, 2), 2**31)),
        ("numpy.random", altered(TWISTER, (2, 3), -1)),
        ("numpy.random", altered(PHILOX, (1, "buffer_pos"), -1)),
        ("numpy.random", altered(PHILOX, (1, "buffer_pos"), 5)),
        ("numpy.random", altered(PHILOX, (1, "uinteger"), 2**32)),
        ("numpy.random", altered(LEGACY, (2, 0), 2)),
        ("numpy.random", altered(LEGACY, (2, 1), "gauss")),
    ],
)
def test_what_is_no_state_of_a_generator_is_refused(kind: str, plain: Any) -> None:
    with pytest.raises(CheckpointIntegrityError):
        load_typed(kind, plain)


@pytest.mark.parametrize("value", [random.Random(2), np.random.default_rng(2)])
def test_reviving_a_generator_draws_nothing(value: Any) -> None:
    packed = pack(value)
    random.seed(7)
    np.random.seed(7)
    before = (random.getstate(), np.random.get_state(legacy=False)["state"]["key"].tolist())

    unpack(packed)

    assert before == (random.getstate(), np.random.get_state(legacy=False)["state"]["key"].tolist())
