"""``load_state_dict``: strict, exact, and all or nothing."""

import threading
from typing import Any

import pytest

from holdfast import (
    Checkpointable,
    HoldfastError,
    InvalidArgumentError,
    SchemaMigrationError,
    SerializationError,
)
from tests.acceptance.state_kit import Agent, Bag, Frozen, Memory, Slotted, WithSlots


class TestLoadStateDict:
    def test_it_takes_over_the_state(self) -> None:
        agent, other = Agent(), Agent()
        agent.calls = 3
        agent.messages.append({"role": "assistant", "content": "hi"})

        other.load_state_dict(agent.state_dict())

        assert other.calls == 3
        assert other.messages == agent.messages

    def test_the_state_given_is_neither_kept_nor_changed(self) -> None:
        agent, state = Agent(), Agent().state_dict()
        before = repr(state)

        agent.load_state_dict(state)
        agent.messages[0]["content"] = "changed"
        agent.memory.facts.clear()

        assert repr(state) == before

    def test_a_nested_object_is_loaded_in_place(self) -> None:
        agent, state = Agent(), Agent().state_dict()
        memory, index = agent.memory, agent.memory._index
        memory.facts.clear()

        agent.load_state_dict(state)

        assert agent.memory is memory
        assert memory.facts == ["water is wet"]
        assert memory._index is index

    def test_nested_objects_in_containers_are_loaded_in_place_too(self) -> None:
        first, second = Memory("a"), Memory("b")
        bag = Bag({"list": [first], "tuple": (second,)})
        state = bag.state_dict()
        first.facts, second.facts = [], []

        bag.load_state_dict(state)

        assert bag.value == {"list": [first], "tuple": (second,)}
        assert (first.facts, second.facts) == (["a"], ["b"])

    def test_a_nested_object_is_made_without_calling_a_constructor(self) -> None:
        calls = []

        class Made(Checkpointable):
            def __new__(cls) -> "Made":
                calls.append("new")
                return super().__new__(cls)

            def __init__(self) -> None:
                calls.append("init")
                self.x = 1

        state = Bag(Made()).state_dict()
        calls.clear()
        bag = Bag()
        bag.load_state_dict(state)

        assert type(bag.value) is Made
        assert bag.value.x == 1
        assert not calls

    def test_an_object_of_another_class_is_replaced_and_left_alone(self) -> None:
        held = Memory("held")
        bag = Bag(held)

        bag.load_state_dict(Bag(Frozen("f")).state_dict())

        assert bag.value == Frozen("f")
        assert held.facts == ["held"]

    def test_an_object_that_stood_in_two_places_takes_one_state(self) -> None:
        state = Bag([Memory("a"), Memory("b")]).state_dict()
        shared = Memory("now")
        bag = Bag([shared, shared])

        bag.load_state_dict(state)

        assert [memory.facts for memory in bag.value] == [["a"], ["b"]]
        assert bag.value[0] is shared

    def test_an_object_in_two_places_stays_one_where_the_states_agree(self) -> None:
        shared = Memory("a")
        bag = Bag([shared, shared])
        state = bag.state_dict()
        shared.facts = []

        bag.load_state_dict(state)

        assert bag.value[0] is bag.value[1] is shared
        assert shared.facts == ["a"]

    def test_it_works_for_frozen_dataclasses(self) -> None:
        frozen = Frozen("a", ["x"])

        frozen.load_state_dict(Frozen("b").state_dict())

        assert frozen == Frozen("b")

    def test_it_works_for_slots(self) -> None:
        slotted = Slotted("a", WithSlots("c"), 5)
        state = Slotted("b", WithSlots("d")).state_dict()

        slotted.load_state_dict(state)

        assert (slotted.name, slotted.inner.name, slotted._secret) == ("b", "d", 5)
        assert "_secret" not in state

    def test_a_declared_attribute_may_be_set_by_the_state_alone(self) -> None:
        source = WithSlots("a")
        source.later = "now"
        loaded = WithSlots("b")

        loaded.load_state_dict(source.state_dict())

        assert loaded.later == "now"

    def test_strict_names_what_is_missing_and_what_is_unexpected(self) -> None:
        agent, state = Agent(), Agent().state_dict()
        del state["calls"]
        state["extra"] = 1
        state["memory"]["more"] = 2

        with pytest.raises(
            SchemaMigrationError,
            match=r"does not fit Agent: missing key\(s\): 'calls'; "
            r"unexpected key\(s\): 'extra', 'memory.more'.*strict=False",
        ):
            agent.load_state_dict(state)

        assert agent.memory.facts == ["water is wet"]

    def test_without_strict_it_says_what_did_not_fit(self) -> None:
        agent, state = Agent(), Agent().state_dict()
        agent.calls = 9
        del state["calls"]
        state["extra"] = 1
        state["messages"] = []

        keys = agent.load_state_dict(state, strict=False)

        assert keys.missing_keys == ["calls"]
        assert keys.unexpected_keys == ["extra"]
        assert (agent.calls, agent.messages) == (9, [])
        assert not hasattr(agent, "extra")

    def test_an_object_made_without_its_constructor_takes_any_field(self) -> None:
        agent = Agent.__new__(Agent)

        agent.load_state_dict(Agent().state_dict())

        assert agent.calls == 0
        assert agent.memory.facts == ["water is wet"]

    @pytest.mark.parametrize("state", [None, [], "state", 3])
    def test_what_is_no_dict_is_refused(self, state: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="what state_dict"):
            Agent().load_state_dict(state)

    @pytest.mark.parametrize(
        "tags",
        [
            {},
            {"__class__": "Agent"},
            {"__version__": 1},
            {"__class__": 3, "__version__": 1},
            {"__class__": "Agent", "__version__": "one"},
            {"__class__": "Agent", "__version__": True},
            {"__class__": "Agent", "__version__": None},
        ],
    )
    def test_a_state_without_proper_tags_is_refused(self, tags: dict[str, Any]) -> None:
        fields: dict[str, Any] = {"messages": [], "memory": None, "calls": 0}

        with pytest.raises(HoldfastError, match=r"state_dict|__class__|a version is"):
            Agent().load_state_dict({**fields, **tags})

    def test_a_state_of_another_class_is_refused(self) -> None:
        with pytest.raises(SchemaMigrationError, match="state of Memory, not of Agent"):
            Agent().load_state_dict(Memory().state_dict())

    def test_a_nested_state_of_an_unknown_class_is_refused(self) -> None:
        state: dict[str, Any] = Bag([Memory()]).state_dict()
        state["value"][0]["__class__"] = "NoSuchClass"

        with pytest.raises(
            SchemaMigrationError, match=r"\$\.value\[0\]: no .* NoSuchClass.*import"
        ):
            Bag().load_state_dict(state)

    def test_of_two_classes_of_one_name_the_one_nearest_to_the_owner_is_meant(self) -> None:
        class Memory(Checkpointable):
            def __init__(self) -> None:
                self.local = True

        class Owner(Checkpointable):
            def __init__(self, memory: Any = None) -> None:
                self.memory = memory

        state = Owner(Memory()).state_dict()
        owner = Owner()
        owner.load_state_dict(state)
        outer = Bag()
        outer.load_state_dict(Bag(globals()["Memory"]("x")).state_dict())

        assert type(owner.memory) is Memory
        assert type(outer.value) is globals()["Memory"]

    def test_a_class_name_that_fits_several_is_refused(self) -> None:
        def one() -> type[Checkpointable]:
            class Twin(Checkpointable):
                pass

            return Twin

        def two() -> type[Checkpointable]:
            class Twin(Checkpointable):
                pass

            return Twin

        first, second = one(), two()
        state = Bag(first()).state_dict()

        with pytest.raises(
            SchemaMigrationError, match=r"\$\.value: several classes are named Twin"
        ):
            Bag().load_state_dict(state)

        held = Bag(second())
        held.load_state_dict(state)
        assert type(held.value) is second

    @pytest.mark.parametrize("name", ["__dict__", "__init__", "no name", "", 3])
    def test_a_key_that_is_no_field_is_refused(self, name: Any) -> None:
        bag = Bag.__new__(Bag)

        with pytest.raises(SchemaMigrationError, match="is no name of a field"):
            bag.load_state_dict({**Bag().state_dict(), name: {}})

    def test_a_state_runs_no_setter_that_the_class_did_not_choose(self) -> None:
        class Guarded(Checkpointable):
            @property
            def danger(self) -> int:
                return 0

            @danger.setter
            def danger(self, value: int) -> None:
                raise AssertionError("the setter ran")

        state = {"__class__": "Guarded", "__version__": 1, "danger": 1}

        with pytest.raises(SchemaMigrationError, match="'danger'"):
            Guarded().load_state_dict(state)

    def test_a_class_with_a_finalizer_is_loaded_in_place_alone(self) -> None:
        class Closing(Checkpointable):
            def __init__(self, x: int) -> None:
                self.x = x

            def __del__(self) -> None:
                pass

        state = Bag(Closing(1)).state_dict()
        held = Bag(Closing(2))
        held.load_state_dict(state)

        assert held.value.x == 1
        with pytest.raises(SerializationError, match="__del__"):
            Bag().load_state_dict(state)

    def test_a_value_in_the_state_that_cannot_be_kept_is_named(self) -> None:
        state = {**Bag().state_dict(), "value": [Bag().state_dict(), threading.Lock()]}

        with pytest.raises(SerializationError, match=r"\$\.value\[1\]: "):
            Bag().load_state_dict(state)


class TestOnAnyErrorNothingHasChanged:
    def test_when_a_later_field_is_wrong(self) -> None:
        agent = Agent()
        before = agent.state_dict()
        state = {**Agent().state_dict(), "calls": 7, "zz": {"__class__": "Nope", "__version__": 1}}
        state["memory"]["facts"] = ["other"]

        with pytest.raises(SchemaMigrationError):
            agent.load_state_dict(state)

        assert agent.state_dict() == before

    def test_when_a_setter_raises(self) -> None:
        class Picky(Checkpointable):
            def __init__(self) -> None:
                self.first = Memory("mine")
                self._level = 1

            @property
            def level(self) -> int:
                return self._level

            @level.setter
            def level(self, value: int) -> None:
                self._level = value
                self.__dict__["trace"] = value
                raise ValueError("no such level")

            def _checkpoint_fields(self) -> list[str]:
                return ["first", "level"]

        picky = Picky()
        state = picky.state_dict()
        state["first"]["facts"] = ["theirs"]

        with pytest.raises(ValueError, match="no such level"):
            picky.load_state_dict({**state, "level": 5})

        assert picky.first.facts == ["mine"]
        assert picky.level == 1
        assert not hasattr(picky, "trace")

    def test_when_a_nested_load_state_dict_raises(self) -> None:
        class Failing(Checkpointable):
            def __init__(self) -> None:
                self.inner = Memory("mine")

            def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> Any:
                super().load_state_dict(state, strict)
                raise RuntimeError("refused")

        bag = Bag([Memory("first"), Failing(), Memory("last")])
        state = bag.state_dict()
        for nested in (state["value"][0], state["value"][1]["inner"], state["value"][2]):
            nested["facts"] = ["theirs"]
        before = bag.value

        with pytest.raises(RuntimeError, match="refused"):
            bag.load_state_dict(state)

        assert bag.value is before
        assert [bag.value[0].facts, bag.value[1].inner.facts, bag.value[2].facts] == [
            ["first"],
            ["mine"],
            ["last"],
        ]
