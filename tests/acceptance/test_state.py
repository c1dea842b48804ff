"""Checkpointable: state_dict, clone and diff of any class."""

import threading
from collections import OrderedDict, defaultdict, deque
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import (
    Checkpointable,
    InvalidArgumentError,
    SerializationError,
)
from tests.acceptance.state_kit import Agent, Bag, Frozen, Memory, Plain, Point, Slotted, WithSlots


class TestStateDict:
    def test_it_is_plain_data_tagged_with_class_and_version(self) -> None:
        assert Agent().state_dict() == {
            "__class__": "Agent",
            "__version__": "1.0",
            "messages": [{"role": "user", "content": "hello"}],
            "memory": {"__class__": "Memory", "__version__": "1.0", "facts": ["water is wet"]},
            "calls": 0,
        }

    def test_it_shares_nothing_with_the_object(self) -> None:
        agent = Agent()
        state = agent.state_dict()

        agent.messages[0]["content"] = "changed"
        agent.memory.facts.append("fire is hot")

        assert state["messages"][0]["content"] == "hello"
        assert state["memory"]["facts"] == ["water is wet"]

    @pytest.mark.parametrize(
        "value",
        [
            (1, (2.0, "x")),
            {1, 2},
            frozenset({"a"}),
            b"\x00\xff",
            bytearray(b"ab"),
            2**100,
            True,
            -0.0,
            {1: "a", (2, 3): None},
            OrderedDict(b=1, a=2),
            defaultdict(list, {"a": [1]}),
            deque([1, 2], maxlen=3),
            Decimal("1.10"),
            datetime(2026, 1, 2, 3, tzinfo=UTC),
            Path("a/b"),
            Point(1, 2),
            range(3),
            "lone \ud800 surrogate",
            ValueError("bad"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_types_survive_exactly(self, value: Any) -> None:
        loaded = Bag()
        loaded.load_state_dict(Bag(value).state_dict())

        assert type(loaded.value) is type(value)
        assert repr(loaded.value) == repr(value)
        assert loaded.value is not value or not isinstance(value, (list, dict, set))

    def test_names_that_start_with_an_underscore_are_left_out(self) -> None:
        assert "_lock" not in Agent().state_dict()

    def test_a_value_that_cannot_be_kept_is_named_with_its_path(self) -> None:
        bag = Bag([{"client": threading.Lock()}])

        with pytest.raises(SerializationError, match=r"\$\.value\[0\]\.client: .*lock.*exclude it"):
            bag.state_dict()

    def test_a_value_in_a_nested_object_is_named_with_its_whole_path(self) -> None:
        bag = Bag({"deep": [Bag(Bag(lambda: None))]})

        with pytest.raises(
            SerializationError, match=r"\$\.value\.deep\[0\]\.value\.value: function"
        ):
            bag.state_dict()

    def test_a_circle_of_objects_is_refused_with_its_path(self) -> None:
        outer, inner = Bag(), Bag()
        outer.value, inner.value = [inner], outer

        with pytest.raises(SerializationError, match=r"\$\.value\[0\]\.value: is a circular"):
            outer.state_dict()

    def test_objects_nested_too_deep_are_refused(self) -> None:
        bag = Bag()
        for _ in range(400):
            bag = Bag(bag)

        with pytest.raises(SerializationError, match="too deep"):
            bag.state_dict()

    def test_an_object_in_two_places_is_kept_in_both(self) -> None:
        shared = Memory("x")

        state = Bag([shared, shared]).state_dict()

        assert state["value"][0] == state["value"][1] == shared.state_dict()
        assert state["value"][0] is not state["value"][1]

    @pytest.mark.parametrize(
        ("holder", "at"),
        [
            (lambda inner: inner, lambda v: v),
            (lambda inner: [inner], lambda v: v[0]),
            (lambda inner: (1, inner), lambda v: v[1]),
            (lambda inner: {"k": {"l": inner}}, lambda v: v["k"]["l"]),
            (lambda inner: {3: inner}, lambda v: v[3]),
            (lambda inner: OrderedDict(k=inner), lambda v: v["k"]),
            (lambda inner: defaultdict(list, k=inner), lambda v: v["k"]),
            (lambda inner: deque([inner], 2), lambda v: v[0]),
        ],
    )
    def test_nested_objects_become_tagged_dicts_and_objects_again(self, holder, at) -> None:
        state = Bag(holder(Memory("x"))).state_dict()
        loaded = Bag()
        loaded.load_state_dict(state)

        assert at(state["value"]) == {"__class__": "Memory", "__version__": "1.0", "facts": ["x"]}
        assert type(loaded.value) is type(state["value"]) or isinstance(loaded.value, Memory)
        assert type(at(loaded.value)) is Memory
        assert at(loaded.value).facts == ["x"]

    def test_a_nested_object_elsewhere_is_kept_as_it_is(self) -> None:
        loaded = Bag()
        loaded.load_state_dict(Bag([Plain(Memory("x")), {Memory("y")}]).state_dict())

        assert loaded.value[0].inner.facts == ["x"]
        assert loaded.value[1].pop().facts == ["y"]

    def test_a_users_dict_that_looks_like_a_state_stays_a_dict(self) -> None:
        looks_so = Memory("x").state_dict()
        value = {"best": looks_so, "all": [escaped_by_hand(looks_so), Memory("y")]}
        loaded = Bag()

        loaded.load_state_dict(Bag(value).state_dict())

        assert loaded.value["best"] == looks_so
        assert loaded.value["all"][0] == escaped_by_hand(looks_so)
        assert loaded.value["all"][1].facts == ["y"]

    def test_a_class_can_choose_its_fields(self) -> None:
        class Chosen(Checkpointable):
            def __init__(self) -> None:
                self.kept = 1
                self.left_out = threading.Lock()
                self._private = [2]

            def _checkpoint_fields(self) -> list[str]:
                return ["kept", "_private"]

        loaded = Chosen()
        loaded._private = []
        loaded.load_state_dict(Chosen().state_dict())

        assert Chosen().state_dict()["_private"] == [2]
        assert "left_out" not in Chosen().state_dict()
        assert loaded._private == [2]

    def test_a_chosen_field_may_be_a_property(self) -> None:
        class Thermometer(Checkpointable):
            def __init__(self) -> None:
                self._celsius = 20.0

            @property
            def kelvin(self) -> float:
                return self._celsius + 273.15

            @kelvin.setter
            def kelvin(self, value: float) -> None:
                self._celsius = value - 273.15

            def _checkpoint_fields(self) -> list[str]:
                return ["kelvin"]

        state = Thermometer().state_dict()
        loaded = Thermometer()
        loaded.load_state_dict({**state, "kelvin": 273.15})

        assert state["kelvin"] == 293.15
        assert loaded._celsius == 0

    @pytest.mark.parametrize("names", ["messages", [1], ["__class__"], ["no such"], ["absent"]])
    def test_fields_that_are_no_attributes_are_refused(self, names: Any) -> None:
        class Wrong(Checkpointable):
            def _checkpoint_fields(self) -> Any:
                return names

        with pytest.raises(InvalidArgumentError, match=r"Wrong\._checkpoint_fields\(\)"):
            Wrong().state_dict()

    def test_a_cached_property_is_no_state(self) -> None:
        class Cached(Checkpointable):
            def __init__(self, *parts: str) -> None:
                self.parts = parts

            @cached_property
            def text(self) -> str:
                return " ".join(self.parts)

        cached = Cached("a", "b")
        assert cached.text == "a b"
        assert "text" not in cached.state_dict()

        cached.load_state_dict(Cached("c").state_dict())

        assert cached.text == "c"

    def test_a_class_that_holds_items_is_refused_rather_than_emptied(self) -> None:
        class Items(Checkpointable, dict):
            pass

        with pytest.raises(SerializationError, match="hold them in an attribute"):
            Items(a=1).state_dict()

    def test_a_class_may_add_to_its_state(self) -> None:
        class Extended(Checkpointable):
            def __init__(self) -> None:
                self.parts = ["a"]
                self._size = 1

            def state_dict(self) -> dict[str, Any]:
                return super().state_dict() | {"size": self._size}

            def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> Any:
                state = dict(state)
                self._size = state.pop("size")
                return super().load_state_dict(state, strict)

        source = Bag([Extended()])
        source.value[0]._size = 7
        loaded = Bag([Extended()])
        held = loaded.value[0]

        loaded.load_state_dict(source.state_dict())

        assert loaded.value[0] is held
        assert held._size == 7

    def test_a_nested_state_without_tags_is_refused(self) -> None:
        class Untagged(Checkpointable):
            def state_dict(self) -> dict[str, Any]:
                return {}

        with pytest.raises(SerializationError, match=r"\$\.value: .*super\(\)\.state_dict"):
            Bag(Untagged()).state_dict()


def in_containers(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["a", "items", "__class__", "__version__", "dict", 1, (2,)])
    return (
        st.lists(values, max_size=3)
        | st.tuples(values, values)
        | st.dictionaries(keys, values, max_size=4)
        | st.builds(Bag, values)
        | values.map(lambda value: Bag(value).state_dict())
    )


NESTED = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["", "dict", "Bag", 1]), in_containers, max_leaves=8
)


@given(NESTED, NESTED)
def test_what_is_loaded_has_the_state_it_was_loaded_from(value: Any, held: Any) -> None:
    state = Bag(value).state_dict()
    fresh, other = Bag(), Bag(held)

    fresh.load_state_dict(state)
    other.load_state_dict(state)

    assert fresh.state_dict() == other.state_dict() == state
    assert shape(fresh) == shape(other) == shape(Bag(value)) == shape(fresh.clone())


def shape(value: Any) -> Any:
    """A value with its types spelled out; of an object, its attributes."""
    if isinstance(value, Bag):
        return ("Bag", shape(value.value))
    if isinstance(value, dict):
        return ("dict", [(repr(key), shape(part)) for key, part in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [shape(part) for part in value])
    return repr(value)


def escaped_by_hand(value: Any) -> dict[str, Any]:
    return {"__class__": "dict", "__version__": 1, "items": value}


class TestClone:
    def test_a_clone_is_independent(self) -> None:
        agent = Agent()

        clone = agent.clone()
        clone.messages[0]["content"] = "other"
        clone.memory.facts.append("fire is hot")

        assert type(clone) is Agent
        assert agent.messages[0]["content"] == "hello"
        assert agent.memory.facts == ["water is wet"]

    def test_private_attributes_are_shared_so_that_the_clone_works(self) -> None:
        agent = Agent()

        clone = agent.clone()

        assert clone._lock is agent._lock
        assert clone.memory is not agent.memory
        assert clone.memory._index is agent.memory._index

    @pytest.mark.parametrize(
        "original",
        [Frozen("a", ["x"]), Slotted("a", [WithSlots("b")], 3), Bag({"k": (Memory("x"),)})],
        ids=lambda original: type(original).__name__,
    )
    def test_it_works_for_all_kinds_of_classes(self, original: Any) -> None:
        clone = original.clone()

        assert clone is not original
        assert original.diff(clone) == {"added": {}, "removed": {}, "changed": {}}

    def test_attributes_a_class_leaves_out_are_shared(self) -> None:
        class Child(Checkpointable):
            def __init__(self, parent: Any) -> None:
                self.parent = parent
                self.x = [1]

            def _checkpoint_fields(self) -> list[str]:
                return ["x"]

        child = Child(Agent())
        clone = child.clone()

        assert clone.parent is child.parent
        assert clone.x == [1]
        assert clone.x is not child.x


class TestDiff:
    def test_it_names_what_was_added_removed_and_changed(self) -> None:
        old, new = Bag(1), Bag(2)
        old.gone = "g"  # type: ignore[attr-defined]
        new.come = "c"  # type: ignore[attr-defined]

        assert old.diff(new) == {
            "added": {"come": "c"},
            "removed": {"gone": "g"},
            "changed": {"value": (1, 2)},
        }

    @pytest.mark.parametrize(
        ("old", "new"),
        [(1, True), (1, 1.0), (0.0, -0.0), ([1], (1,)), ({1: 0}, {True: 0}), ("a", b"a")],
    )
    def test_types_count(self, old: Any, new: Any) -> None:
        assert Bag(old).diff(Bag(new))["changed"] == {"value": (old, new)}

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (float("nan"), float("nan")),
            ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
            ({3, 1}, {1, 3}),
            ([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]),
        ],
    )
    def test_equal_values_do_not_differ(self, old: Any, new: Any) -> None:
        assert not Bag(old).diff(Bag(new))["changed"]

    def test_objects_of_other_classes_differ_by_class(self) -> None:
        assert Memory().diff(Frozen("a"))["changed"]["__class__"] == ("Memory", "Frozen")

    def test_the_values_are_copies(self) -> None:
        old, new = Bag([1]), Bag([2])

        old.diff(new)["changed"]["value"][1].append(3)

        assert new.value == [2]

    @pytest.mark.parametrize("other", [None, {}, Agent])
    def test_anything_else_is_refused(self, other: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="no Checkpointable"):
            Agent().diff(other)
