"""Packing keeps types exactly: what comes back is the same to the bit, and packs the same."""

import datetime as dt
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pydantic
import pytest
from hypothesis import given

from holdfast import register_type
from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_encoder import encode
from holdfast.core.codec import pack, unpack
from tests import strategies as s
from tests.sameness import isolated, same
from tests.samples import SAMPLES

ROOT = Path(__file__).parents[2]


@given(s.values())
def test_any_value_comes_back_the_same(value: Any) -> None:
    assert same(value, unpack(pack(value)))


@given(s.values())
def test_what_came_back_packs_to_the_same_bytes(value: Any) -> None:
    packed = pack(value)

    assert pack(unpack(packed)) == packed


@given(s.values(max_leaves=6))
def test_any_value_comes_back_the_same_from_chunks(value: Any) -> None:
    encoded = encode(value)

    assert same(value, decode(encoded.root, encoded.chunks))


@given(s.values(max_leaves=6))
def test_packing_leaves_its_argument_alone(value: Any) -> None:
    before = isolated(value)

    pack(value)

    assert same(value, before)


@pytest.mark.parametrize("name", SAMPLES)
def test_each_type_comes_back_the_same_and_packs_the_same(name: str) -> None:
    value = SAMPLES[name]
    packed = pack(value)

    revived = unpack(packed)

    assert same(value, revived)
    assert pack(revived) == packed


@pytest.mark.parametrize("name", SAMPLES)
def test_each_type_comes_back_the_same_from_beside_a_value_that_is_rewritten(name: str) -> None:
    # A lone surrogate sends the whole value down the slow road, which has to give the same bytes.
    value = SAMPLES[name]

    packed = pack(["\ud800", value])

    assert same(value, unpack(packed)[1])
    assert packed.endswith(pack(value))


@pytest.mark.parametrize("name", SAMPLES)
def test_each_type_may_be_an_element_of_a_tuple_in_an_object(name: str) -> None:
    value = s.Plain((SAMPLES[name],))

    assert same(value, unpack(pack(value)))


def test_no_bytes_hang_on_the_hash_seed() -> None:
    script = (
        "from tests.samples import SAMPLES\n"
        "from holdfast.core.codec import pack\n"
        "print({name: pack(value).hex() for name, value in SAMPLES.items()})"
    )

    packed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(packed) == 1


def test_a_set_packs_the_same_in_whichever_order_it_was_filled() -> None:
    forward, backward = {8, 0, "a"}, {"a", 0, 8}

    assert pack(forward) == pack(backward)
    assert pack(s.Unique([8, 0])) == pack(s.Unique([0, 8]))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (1, True),
        (0, False),
        (0, 0.0),
        (0.0, -0.0),
        (1, 1.0),
        (b"", bytearray()),
        (b"x", bytearray(b"x")),
        (b"x", "x"),
        ([], ()),
        (set(), frozenset()),
        ([1], (1,)),
        ({"a": 1}, s.Mapping(a=1)),
        ("a", s.Text("a")),
        (1, s.Level.LOW),
        ("yes", s.Word.YES),
        (1.5, np.float64(1.5)),
        (2**64, -(2**64)),
        (dt.timedelta(0), dt.time(0)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1: "x"}, {"1": "x"}),
        ({1: "x"}, {True: "x"}),
        (None, False),
        ("", None),
        (s.Point(1, 2), (1, 2)),
        (s.Frozen(1), s.Plain(1)),
        (math.inf, -math.inf),
    ],
)
@pytest.mark.parametrize("place", [lambda x: x, lambda x: [x], lambda x: {"k": [x]}, s.Plain])
def test_equal_or_similar_values_of_other_types_have_other_bytes(
    before: Any, after: Any, place: Any
) -> None:
    assert pack(place(before)) != pack(place(after))


def test_a_change_of_type_in_place_changes_the_bytes() -> None:
    state: dict[str, Any] = {"flag": 1, "x": [0.0, b""]}
    seen = {pack(state)}
    for change in (
        lambda: state.update(flag=True),
        lambda: state["x"].__setitem__(0, -0.0),
        lambda: state["x"].__setitem__(1, bytearray()),
    ):
        change()
        seen.add(pack(state))

    assert len(seen) == 4


def test_shared_objects_come_back_as_equal_copies() -> None:
    shared = s.Plain([1])
    first, second = unpack(pack([shared, {"again": shared}]))

    assert same(first, shared)
    assert same(second["again"], shared)
    assert first is not second["again"]


def test_an_object_may_appear_twice_side_by_side_without_being_a_cycle() -> None:
    shared = ["\ud800"]  # rewritten, where cycles are looked for

    assert unpack(pack([shared, shared, (shared, shared)])) == [shared, shared, (shared, shared)]


def test_the_value_that_comes_back_shares_nothing_with_the_original() -> None:
    value = {"a": [1], "b": s.Plain([2]), "c": np.array([1])}
    revived = unpack(pack(value))

    revived["a"].append(2)
    revived["b"].a.append(3)
    revived["c"][0] = 9

    assert same(value, {"a": [1], "b": s.Plain([2]), "c": np.array([1])})


def test_a_defaultdict_still_makes_missing_values() -> None:
    revived = unpack(pack(SAMPLES["defaultdict"]))

    revived["new"].append(1)

    assert revived == {"a": [1], "new": [1]}


def test_an_array_that_comes_back_can_be_written_to() -> None:
    array = unpack(pack(np.arange(3)))
    record = unpack(pack(np.ones(1, s.RECORDS)[0]))

    array[0] = 7
    record["a"] = 7

    assert (array[0], record["a"]) == (7, 7)


def test_a_revived_pydantic_model_remembers_which_fields_were_set() -> None:
    model = unpack(pack(s.Model(b=5, **{"more": 1})))

    assert model.model_fields_set == {"b", "more"}
    assert model.model_extra == {"more": 1}
    assert model.model_dump(exclude_unset=True) == {"b": 5, "more": 1}
    assert model.model_copy(update={"a": 3}).a == 3


def test_a_revived_pydantic_model_still_validates_assignments() -> None:
    class Strict(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(validate_assignment=True)
        a: int

    model = unpack(pack(Strict(a=1)))

    with pytest.raises(pydantic.ValidationError):
        model.a = "no number"


def test_a_revived_exception_can_be_raised_and_shown() -> None:
    with pytest.raises(s.Oops, match="oops 7") as caught:
        raise unpack(pack(s.Oops(7, detail=[1])))

    assert caught.value.detail == [1]


def test_an_error_without_a_file_does_not_come_back_with_one() -> None:
    assert str(unpack(pack(OSError(2, "nope")))) == "[Errno 2] nope"


def test_the_empty_slots_of_an_object_stay_empty() -> None:
    revived = unpack(pack(s.SlotThing(b=1)))

    assert not hasattr(revived, "a")


def test_a_named_tuple_keeps_the_attributes_its_subclass_allows() -> None:
    class Loose(s.Point):
        pass

    value = Loose(1, 2)
    value.note = "x"  # type: ignore[attr-defined]

    assert same(value, unpack(pack(value)))


def test_a_class_made_inside_a_function_comes_back_in_the_same_process() -> None:
    class Local(NamedTuple):
        a: int

    assert same(Local(1), unpack(pack(Local(1))))


def test_a_class_that_has_another_name_in_its_module_comes_back_in_the_same_process() -> None:
    made = pydantic.create_model("NotInThisModule", a=(int, 1))

    assert same(made(), unpack(pack(made())))


def test_a_generic_model_parametrised_inside_a_function_comes_back() -> None:
    value = s.Box[s.Outer.Inner](content=s.Outer.Inner(a=1))

    assert same(value, unpack(pack(value)))


def test_kinds_of_numpy_and_pandas_go_before_those_of_the_types_they_extend() -> None:
    # Whichever module of core is imported first: numpy.float64 is also a subclass of float.
    script = (
        "import holdfast.core.kinds.objects, numpy, pandas\n"
        "from holdfast.core.codec import pack, unpack\n"
        "values = [numpy.float64(1), numpy.str_('a'), pandas.Timestamp('2020')]\n"
        "print([type(value) for value in unpack(pack(values))] == [type(v) for v in values])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "True\n"


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


def test_a_registered_type_is_kept_by_its_functions() -> None:
    register_type(Celsius, lambda c: {"degrees": c.degrees}, lambda d: Celsius(d["degrees"] + 0))

    (revived,) = unpack(pack([Celsius(20.5)]))

    assert type(revived) is Celsius
    assert revived.degrees == 20.5


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 31, 32, 65535, 65536])
def test_lengths_around_the_edges_of_the_format_come_back(count: int) -> None:
    for value in ("x" * count, b"x" * count, [None] * count, (1,) * count):
        assert unpack(pack(value)) == value
    assert unpack(pack(dict.fromkeys(map(str, range(count))))) == dict.fromkeys(
        map(str, range(count))
    )


@pytest.mark.parametrize("bits", [7, 8, 15, 16, 31, 32, 63, 64, 65, 127, 128, 4096])
def test_integers_around_the_edges_of_the_format_come_back(bits: int) -> None:
    for number in (2**bits - 1, 2**bits, 2**bits + 1):
        assert unpack(pack([number, -number])) == [number, -number]
