"""A diff of states in chunks says what a diff of the plain values says, whatever their size."""

import copy
import random
from collections import OrderedDict, deque
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given

from holdfast.core.diff import diff_values
from tests import strategies as s
from tests.plain_diff import PlainDiff, explain
from tests.unit import edits


def check(old: Any, new: Any) -> None:
    why = explain(diff_values(old, new), PlainDiff(old, new))
    assert why is None, why


@given(s.values(), s.values())
def test_a_diff_of_any_two_values_is_that_of_the_plain_values(old: Any, new: Any) -> None:
    check(old, new)
    check({"x": old, "y": 1}, {"x": new, "y": 1})
    check([old, new, "end"], [new, "end", old])
    check({"x": old}, {"x": old, "y": new})
    check({"x": old, "y": new}, {"x": old})


SIZES = (1, 3, 40, 900)


def large(kind: str, size: int, seed: int = 0) -> Any:
    """A value of a kind; from 40 parts on it has chunks of its own, from 900 on pages."""
    parts = [f"part {seed} {at} {edits.text(90, at)}" for at in range(size)]
    return LARGE[kind](parts)


LARGE: dict[str, Any] = {
    "text": "\n".join,
    "text with surrogates": lambda parts: "\ud800" + "\n".join(parts),
    "bytes": lambda parts: "\n".join(parts).encode(),
    "bytearray": lambda parts: bytearray("\n".join(parts).encode()),
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
    "bounded deque": lambda parts: deque(parts, maxlen=1000),
    "dict": lambda parts: {f"key_{at}": part for at, part in enumerate(parts)},
    "dict by numbers": lambda parts: dict(enumerate(parts)),
    "dict by tuples": lambda parts: {(at, str(at)): part for at, part in enumerate(parts)},
    "OrderedDict": lambda parts: OrderedDict(enumerate(parts)),
    "dataclass": lambda parts: s.Plain(parts, {"n": len(parts)}),
    "frozen dataclass": lambda parts: s.Frozen(tuple(parts), len(parts)),
    "slots": lambda parts: s.Slotted(parts),
    "object": lambda parts: s.Thing(**{f"a{at}": part for at, part in enumerate(parts)}),
    "pydantic": lambda parts: s.Model.model_construct(a=parts, more="\n".join(parts)),
    "pydantic 1": lambda parts: s.ModelV1(a=parts),
    "msgspec": lambda parts: s.Record(parts, "\n".join(parts)),
    "attrs": lambda parts: s.Defined(parts),
    "named tuple": lambda parts: s.Point(parts, len(parts)),
    "exception": lambda parts: s.Oops(7, detail=parts),
    "subclass of list": s.Items,
    "subclass of dict": lambda parts: s.Mapping(enumerate(parts)),
    "subclass of deque": s.Queue,
    "subclass of defaultdict": lambda parts: s.Grouped(int, enumerate(parts)),
    "subclass of str": lambda parts: s.Text("\n".join(parts)),
    "numpy": lambda parts: np.frombuffer("".join(parts).encode(), np.uint8).copy(),
    "numpy objects": s.object_array,
    "number": lambda parts: int.from_bytes("".join(parts).encode(), "big"),
    "nested": lambda parts: {"a": {3: [tuple(parts), {"b": set(parts)}]}},
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", LARGE)
def test_a_large_value_is_shown_itself_when_added_removed_or_replaced(kind: str, size: int) -> None:
    value, other = large(kind, size), large(kind, size, seed=1)
    for beside in ({}, {"y": 1}, {str(n): n for n in range(40)}):
        check({**beside}, {**beside, "x": value})
        check({**beside, "x": value}, {**beside})
        check({**beside, "x": value}, {**beside, "x": other})
        check({**beside, "x": value}, {**beside, "x": None})
        check({**beside, "x": value}, {**beside, "x": large(kind, size + 1)})
        check({**beside, 5: value}, {**beside, 5: other})
    check([], [value])
    check([1, 2, value], [value, 1, 2])
    check([value, other], [other, value, 3])
    check(value, other)
    check((1, value), (1, other, value))


@pytest.mark.parametrize("kind", LARGE)
def test_a_value_that_is_only_kept_otherwise_has_not_changed(kind: str) -> None:
    """What stands beside it decides whether it is kept whole, in a chunk or in pages."""
    for size in (12, 17, 30, 60):
        value = large(kind, size)
        small = {"x": value}
        grown = {"x": value, "y": edits.text(3000)}
        wide = {"x": value, **{f"k{n}": n for n in range(40)}}
        for old, new in ((small, grown), (grown, wide), (wide, small)):
            check(old, new)
            check([old], [new])
            check({"a": old}, {"a": new})


@pytest.mark.parametrize("size", [20, 37, 300, 3000])
def test_what_is_appended_is_told_at_the_end_even_if_all_of_it_was_there_before(size: int) -> None:
    once = [{"role": "user", "content": f"message {n} " * 20} for n in range(size)]

    check({"messages": once}, {"messages": [*once, *once]})
    check({"messages": [*once, *once]}, {"messages": once})


@given(edits.STARTS, edits.scripts())
@example(0, [(edits.append_several, 29), (edits.append_several, 29)])
def test_a_diff_of_an_edited_state_is_that_of_the_plain_values(start: int, script: Any) -> None:
    before = None
    for state in edits.states(start, script):
        if before is not None:
            check(before, state)
        before = copy.deepcopy(state)


def test_keys_that_are_no_names_are_written_as_python_writes_them() -> None:
    keys: list[Any] = [6, -1, 2.5, "a.b", "a b", "", "3", "x'y", None, (1, "a"), b"raw", True, "ok"]

    for key in keys:
        diff = diff_values({"seen": {key: 1, "other": 2}}, {"seen": {key: 3, "other": 2}})
        place = "$.seen.ok" if key == "ok" else f"$.seen[{key!r}]"
        assert dict(diff.changed) == {place: (1, 3)}
    both = dict.fromkeys(keys, 0)
    assert len(diff_values({}, both).added) == len(keys)


def test_the_key_that_changed_is_named_and_not_its_position() -> None:
    diff = diff_values({"seen": {5: 1, 6: 2}}, {"seen": {5: 1, 6: 3}})

    assert dict(diff.changed) == {"$.seen[6]": (2, 3)}
    assert diff.changed["seen[6]"] == (2, 3)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ("a", s.Text("a"))])
def test_keys_that_are_equal_and_of_another_type_are_two_keys(one: Any, other: Any) -> None:
    diff = diff_values({one: "x"}, {other: "x"})

    assert list(diff.removed.values()) == list(diff.added.values()) == ["x"]
    assert diff.removed.keys() != diff.added.keys()


def test_long_keys_that_begin_alike_are_told_apart() -> None:
    start = "long key " * 100

    diff = diff_values({}, {start + "a": 1, start + "b": 2, 3: 4})

    assert sorted(diff.added.values()) == [1, 2, 4]
    assert all(len(path) < 300 for path in diff.added)


def test_keys_that_read_the_same_do_not_hide_each_other() -> None:
    old = {s.Quiet(1): "a", s.Quiet(2): "b"}

    assert sorted(diff_values(old, {}).removed.values()) == ["a", "b"]


def test_elements_of_sets_are_shown_in_braces() -> None:
    diff = diff_values({"tags": {"old", "both"}}, {"tags": {"new", "both"}})

    assert dict(diff.removed) == {"$.tags{'old'}": "old"}
    assert dict(diff.added) == {"$.tags{'new'}": "new"}
    assert len(diff.part("$")) == 2
    assert len(diff_values({1}, {2}).part("$")) == 2


def test_lists_with_many_equal_elements_are_compared_without_looking_for_the_best_way() -> None:
    words = [str(random.Random(at).randint(0, 3)) for at in range(2000)]

    check(words[:1000], words[1000:])
