"""The JSON form of values: exact, readable, and safe to read from anyone."""

import json
import math
import struct
import sys
import threading
import types
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import json_form_reader
from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_encoder import encode
from holdfast.core.codec import pack
from holdfast.core.json_form import (
    dumps,
    from_json,
    loads,
    state_from_json,
    state_to_json,
    to_json,
    unrevived,
)
from holdfast.core.kinds import by_name, register_type
from holdfast.core.raw import Raw
from holdfast.errors import CheckpointIntegrityError, SerializationError, UnknownTypeError
from tests.samples import SAMPLES
from tests.strategies import Color, Plain, values


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


register_type(Celsius, lambda c: c.degrees, Celsius, name="test.celsius")


def from_bits(bits: str) -> float:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    return value


def tagged_alike(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Dicts that look as if they were written by us."""
    words = st.sampled_from(["$type", "value", "tuple", "escaped", "a"])
    return st.dictionaries(words, st.one_of(inner, words), max_size=4)


any_value = st.one_of(
    values(), tagged_alike(values()), tagged_alike(tagged_alike(values(max_leaves=3)))
)


def through_json(value: Any, **options: Any) -> Any:
    return from_json(json.loads(json.dumps(to_json(value, **options))), **options)


@given(any_value)
def test_a_value_comes_back_from_json_exactly(value: Any) -> None:
    back = through_json(value)

    assert type(back) is type(value)
    assert pack(back) == pack(value)  # the packed form says every type and bit


@given(any_value)
def test_json_text_for_people_says_the_same(value: Any) -> None:
    data = to_json(value)

    assert loads(dumps(data).encode()) == json.loads(json.dumps(data))


@given(any_value)
def test_data_read_without_reviving_packs_as_the_value_does(value: Any) -> None:
    assert pack(unrevived(to_json(value))) == pack(value)


def spread(some: list[Any]) -> list[Any]:
    """The values among so much text that they get into chunks and pages of their own."""
    return [part for value in some for part in (value, "x" * 2500)] * 4


many_values = st.lists(values(3), max_size=3).map(spread)


@given(st.dictionaries(st.text(), st.one_of(any_value, many_values), max_size=3))
def test_a_state_in_chunks_comes_back_as_the_same_chunks(state: Any) -> None:
    encoded = encode(state)

    data = json.loads(json.dumps(state_to_json(encoded.root, encoded.chunks)))

    assert data == json.loads(json.dumps(to_json(state)))
    assert state_from_json(data).chunks == encoded.chunks


def test_a_large_state_comes_back_as_the_same_chunks() -> None:
    state = {
        "text": "line\n" * 20_000,
        "bytes": b"\xff" * 100_000,
        "list": [{"i": i, "at": (i, i)} for i in range(5000)],
        "dict": {f"key {i}": "x" * 50 for i in range(3000)},
        "tuple": tuple(f"item {i}" for i in range(5000)),
        "keys": {i: str(i) for i in range(5000)},
        "object": Plain("x" * 5000, ["y" * 3000, "z" * 3000]),
    }
    encoded = encode(state)

    data = json.loads(json.dumps(state_to_json(encoded.root, encoded.chunks)))

    assert len(encoded.chunks) > 50
    assert state_from_json(data).chunks == encoded.chunks
    assert pack(from_json(data)) == pack(state)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (2**70, 2**70),
        ("ü", "ü"),
        ([1, 2.5, {"a": True}], [1, 2.5, {"a": True}]),
        (math.inf, {"$type": "float", "value": "inf"}),
        (math.nan, {"$type": "float", "value": "nan"}),
        (b"text", {"$type": "utf8", "value": "text"}),
        (b"\xff\x00", {"$type": "bytes", "value": "/wA="}),
        ((1, (2,)), {"$type": "tuple", "value": [1, {"$type": "tuple", "value": [2]}]}),
        ({1: "a", None: "b"}, {"$type": "dict", "value": [[1, "a"], [None, "b"]]}),
        ({"$type": "x"}, {"$type": "escaped", "value": {"$type": "x"}}),
        (Decimal("1.50"), {"$type": "Decimal", "value": "1.50"}),
        (Color.RED, {"$type": "enum", "value": ["tests.strategies:Color", "RED"]}),
    ],
)
def test_the_form_of_a_value(value: Any, data: Any) -> None:
    assert to_json(value) == data


@pytest.mark.parametrize("name", SAMPLES)
def test_each_type_comes_back_exactly(name: str) -> None:
    back = through_json(SAMPLES[name])

    assert type(back) is type(SAMPLES[name])
    assert pack(back) == pack(SAMPLES[name])


@pytest.mark.parametrize(
    "value",
    [
        5e-324,
        from_bits("fff8000000000000"),
        from_bits("7ff8000000000123"),
        "\ud83d\ude00 is a pair of lone surrogates, not a smile",
        10**5000,
        {"$type": {"$type": {"value": 1}}},
        {"$type": "tuple", "value": []},
        {frozenset({1}): {(1, 2): {b"k"}}},
        Celsius(5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_odd_value_comes_back_exactly(value: Any) -> None:
    back = through_json(value)

    assert type(back) is type(value)
    assert pack(back) == pack(value)


def test_what_fits_on_a_line_is_not_broken() -> None:
    assert dumps({"a": [1, 2], "b": {}}) == '{"a": [1, 2], "b": {}}'


def test_what_does_not_fit_is_indented() -> None:
    assert dumps({"a": ["x" * 60, "y" * 60], "b": 1}) == (
        '{\n  "a": [\n    "' + "x" * 60 + '",\n    "' + "y" * 60 + '"\n  ],\n  "b": 1\n}'
    )


def test_a_value_that_cannot_be_kept_is_named_by_its_path() -> None:
    with pytest.raises(SerializationError, match=r"\$\.tools\[3\]\.client: _thread.lock cannot"):
        to_json({"tools": [1, 2, 3, types.SimpleNamespace(client=threading.Lock())]})


def test_a_circular_reference_is_named_by_its_path() -> None:
    loop: list[Any] = []
    loop.append({"again": loop})

    with pytest.raises(SerializationError, match=r"\$\[0\]\.again: is a circular reference to \$"):
        to_json(loop)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_as_deep_as_the_codec_goes_json_goes() -> None:
    value = nested(250)
    for _ in range(7):
        value = Plain((value,))

    assert pack(through_json(value)) == pack(value)


def test_a_value_nested_too_deep_is_refused() -> None:
    with pytest.raises(SerializationError, match="nested too deep"):
        to_json(nested(100_000))


def test_a_value_only_the_packed_form_has_room_for_is_refused() -> None:
    value = nested(200)
    for _ in range(5):
        value = (nested(0), value)
        for _ in range(100):
            value = [value]

    assert pack(value)
    with pytest.raises(SerializationError, match="nested too deep"):
        to_json(value)


def test_a_pickled_value_needs_leave_at_both_ends() -> None:
    value = {"c": complex}
    value["f"] = types.MethodType(str.upper, "x")  # type: ignore[assignment]

    with pytest.raises(SerializationError, match=r"\$\.f"):
        to_json(value)
    data = to_json(value, allow_pickle=True)
    assert data["f"]["$type"] == "pickle"
    with pytest.raises(SerializationError, match=r"\$\.f: .*allow_pickle=True"):
        from_json(data)
    assert from_json(data, allow_pickle=True)["f"]() == "X"


def unknown_class_data() -> Any:
    return [{"tool": {"$type": "object", "value": ["no_such_module:Tool", {"n": 1}]}}]


def test_an_unknown_class_is_named_by_its_path() -> None:
    with pytest.raises(UnknownTypeError, match=r"^\$\[0\]\.tool: no_such_module:Tool is not imp"):
        from_json(unknown_class_data())


def test_the_path_of_an_unknown_class_leads_through_objects() -> None:
    inner = to_json(Plain({"deep": (1, Plain(2))}))
    inner["value"][1]["a"]["deep"]["value"][1]["value"][0] = "gone:Plain"

    with pytest.raises(UnknownTypeError, match=r"^\$\.a\.deep\[1\]: gone:Plain"):
        from_json(inner)


def test_an_unknown_class_can_be_read_raw_and_written_again() -> None:
    raw = from_json(unknown_class_data(), on_unknown="raw")

    assert isinstance(raw[0]["tool"], Raw)
    assert raw[0]["tool"] == {"n": 1}
    assert to_json(raw) == unknown_class_data()


def test_nothing_is_looked_for_when_nothing_is_revived(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [*unknown_class_data(), to_json(Celsius(3)), to_json(print, allow_pickle=True)]
    monkeypatch.setattr(sys, "modules", {})

    assert to_json(unrevived(data)) == data


def test_json_has_no_word_twice() -> None:
    assert not {*json_form_reader._own, "escaped"} & by_name.keys()


MALFORMED = [
    {"$type": "tuple"},
    {"$type": "tuple", "value": [], "more": 1},
    {"$type": 5, "value": 1},
    {"$type": ["tuple"], "value": 1},
    {"$type": "no such kind", "value": 1},
    {"$type": "REF_NODE", "value": 1},
    {"$type": "tuple", "value": 5},
    {"$type": "set", "value": [[]]},
    {"$type": "dict", "value": 5},
    {"$type": "dict", "value": {"a": 1}},
    {"$type": "dict", "value": [1, 2]},
    {"$type": "dict", "value": [[1]]},
    {"$type": "dict", "value": [[[], 1]]},
    {"$type": "dict", "value": [{"$type": "tuple", "value": [1, 2]}]},
    {"$type": "escaped", "value": []},
    {"$type": "bytes", "value": 5},
    {"$type": "bytes", "value": "/w="},
    {"$type": "bytes", "value": "é"},
    {"$type": "utf8", "value": "\ud800"},
    {"$type": "utf8", "value": []},
    {"$type": "float", "value": "1.5"},
    {"$type": "float", "value": "7ff8"},
    {"$type": "float", "value": 1.5},
    {"$type": "int", "value": "5"},
    {"$type": "int", "value": {"$type": "utf8", "value": []}},
    {"$type": "str", "value": "x"},
    {"$type": "range", "value": [1, 2, 0]},
    {"$type": "Decimal", "value": "x"},
    {"$type": "Fraction", "value": [1, 0]},
    {"$type": "UUID", "value": "x"},
    {"$type": "datetime", "value": [2024]},
    {"$type": "datetime", "value": [9999, 13, 1, 0, 0, 0, 0, 0, None]},
    {"$type": "timezone", "value": []},
    {"$type": "ZoneInfo", "value": "../../etc/passwd"},
    {"$type": "ZoneInfo", "value": 5},
    {"$type": "Path", "value": ["Popen", "x"]},
    {"$type": "constant", "value": "exit"},
    {"$type": "defaultdict", "value": ["eval", {}]},
    {"$type": "object", "value": []},
    {"$type": "object", "value": 5},
    {"$type": "object", "value": [5, {}]},
    {"$type": "namedtuple", "value": ["tests.strategies:Point", 5]},
    {"$type": "exception", "value": ["builtins:ValueError", {}]},
    {"$type": "ndarray", "value": ["numpy:ndarray", {"$type": "utf8", "value": ""}, "|O", [1]]},
    {"$type": "ndarray", "value": ["numpy:ndarray", [], "<f8", [1], "C"]},
    {"$type": "numpy", "value": ["numpy:generic", {"$type": "utf8", "value": "x"}, "|O"]},
    {"$type": "pandas", "value": ["pandas:exec", None]},
    {1: 2},
    b"bytes",
    (1, 2),
    math.nan,
    math.inf,
    {1, 2},
]


@pytest.mark.parametrize("data", MALFORMED, ids=lambda data: repr(data)[:70])
def test_malformed_data_is_damage(data: Any) -> None:
    with pytest.raises(CheckpointIntegrityError):
        from_json(data)


def test_data_nested_too_deep_is_damage() -> None:
    with pytest.raises(CheckpointIntegrityError, match="nest too deep"):
        from_json(nested(100_000))


def test_damage_is_named_by_its_path() -> None:
    with pytest.raises(CheckpointIntegrityError, match=r"\$\.a\[1\]: unknown kind of value 'x'"):
        from_json({"a": [0, {"$type": "x", "value": 0}]})


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:exec", "subprocess:Popen", "builtins:open", "sys:exit"]
)
@pytest.mark.parametrize("kind", ["object", "enum", "namedtuple", "exception", "subclass"])
def test_no_callable_is_made_or_called_by_name(kind: str, name: str) -> None:
    data = {"$type": kind, "value": [name, ["echo"], "str", {}]}

    with pytest.raises((CheckpointIntegrityError, UnknownTypeError)):
        from_json(data)


def test_a_time_zone_that_is_not_here_is_named() -> None:
    with pytest.raises(SerializationError, match=r"\$\[0\]: there is no time zone 'Mars/Base'"):
        from_json([{"$type": "ZoneInfo", "value": "Mars/Base"}])


json_data = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.fixed_dictionaries(
            {
                "$type": st.sampled_from([*by_name, *json_form_reader._own, "escaped"]),
                "value": inner,
            }
        ),
    ),
    max_leaves=15,
)


@given(json_data, st.sampled_from(["raise", "raw"]))
def test_any_data_is_read_or_refused_in_our_own_words(data: Any, on_unknown: Any) -> None:
    try:
        value = from_json(data, on_unknown)
    except (CheckpointIntegrityError, SerializationError):
        return
    to_json(value)


@given(json_data)
def test_any_data_is_packed_or_refused_in_our_own_words(data: Any) -> None:
    try:
        encoded = state_from_json(data)
    except CheckpointIntegrityError:
        return
    try:
        decode(encoded.root, encoded.chunks)
    except (CheckpointIntegrityError, SerializationError):
        return


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"NaN", b"-Infinity", b"\xff", b'"\xff"', b"[" * 100_000, b"1" * 10_000, b"{} {}"],
    ids=lambda text: repr(text[:10]),
)
def test_text_that_is_no_json_is_damage(text: bytes) -> None:
    with pytest.raises(CheckpointIntegrityError):
        loads(text)
