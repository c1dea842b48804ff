"""Numbers chosen to collide in LangGraph's form of a value are refused before a dict is made."""

import uuid
from decimal import Decimal
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast import SerializationError
from holdfast.adapters.langgraph.msgpack_keys import large_keys
from holdfast.adapters.langgraph.safe_reading import STRICT, SealedPath
from holdfast.core.collisions import FEW
from tests.unit.collisions import COUNT, PRIME, on_one_trail

_PACK = ormsgpack.OPT_NON_STR_KEYS

keys = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=40)
parts = st.recursive(
    keys | st.none() | st.binary(max_size=300) | st.booleans(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(keys, inner, max_size=20),
    max_leaves=30,
)


def load(tag: str, data: bytes) -> Any:
    return STRICT.load(tag, data, SealedPath("$.channel_values.x"))


@given(parts, parts, st.sampled_from([0, FEW + 1, 2 * FEW]))
def test_the_keys_of_large_dicts_are_found_wherever_they_are(
    before: Any, after: Any, count: int
) -> None:
    large = {number * 3: [number] for number in range(count)} | {"text": before}
    data = ormsgpack.packb([before, {"in": [large]}, after], option=_PACK)

    found = [[ormsgpack.unpackb(key) for key in keys] for keys in large_keys(data)]

    assert found == ([[number * 3 for number in range(count)]] if count else [])


@given(st.binary(max_size=200))
def test_any_bytes_are_looked_through(data: bytes) -> None:
    list(large_keys(data))


@given(parts)
def test_what_is_well_formed_is_read(value: Any) -> None:
    serde = JsonPlusSerializer()
    sealed = serde.dumps_typed(value)

    assert repr(load(*sealed)) == repr(serde.loads_typed(sealed))


@pytest.mark.parametrize(
    "elements",
    [
        {uuid.UUID(int=7 + at * PRIME) for at in range(20)},
        {Decimal(7 + at * PRIME) for at in range(20)},
        set(range(100_000)),
        {uuid.UUID(int=at * 12345678901) for at in range(5000)},
    ],
)
def test_sets_that_are_not_chosen_so_are_read(elements: set[Any]) -> None:
    assert load(*JsonPlusSerializer().dumps_typed(elements)) == elements


def extension(module: str, name: str, argument: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(0, ormsgpack.packb((module, name, argument)))


@pytest.mark.parametrize("name", ["set", "frozenset"])
@pytest.mark.parametrize("kind", ["uuid", "decimal"])
def test_elements_that_collide_are_refused(kind: str, name: str) -> None:
    numbers = [7 + at * PRIME for at in range(COUNT)]
    if kind == "uuid":
        elements = [extension("uuid", "UUID", f"{number:032x}") for number in numbers]
    else:
        elements = [extension("decimal", "Decimal", str(number)) for number in numbers]
    data = ormsgpack.packb({"a": [extension("builtins", name, elements)]})

    with pytest.raises(SerializationError, match=r"^\$\.channel_values\.x\.a\[0\]: .*collide"):
        load("msgpack", data)


def test_keys_that_collide_are_refused() -> None:
    chosen = dict.fromkeys(on_one_trail(), 0)

    with pytest.raises(SerializationError, match="collide"):
        load("msgpack", ormsgpack.packb([1, chosen], option=_PACK))
