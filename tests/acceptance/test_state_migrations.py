"""register_migration: a state of an earlier version becomes one of the current version."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import (
    Checkpointable,
    CheckpointManager,
    InvalidArgumentError,
    SchemaMigrationError,
    register_migration,
)

_numbers = itertools.count()


def versioned(version: Any, **attributes: Any) -> Checkpointable:
    """An object of a new class with a name of its own, at a version."""

    def init(self: Any) -> None:
        vars(self).update(attributes)

    name = f"Versioned{next(_numbers)}"
    body = {"__init__": init, "_checkpoint_version": classmethod(lambda cls: version)}
    made: Checkpointable = type(name, (Checkpointable,), body)()
    return made


def state(agent: Checkpointable, version: Any, **fields: Any) -> dict[str, Any]:
    return {"__class__": type(agent).__name__, "__version__": version, **fields}


def name_of(agent: Checkpointable) -> str:
    return type(agent).__name__


def adding(key: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda state: {**state, key: value}


def test_steps_are_followed_one_after_the_other() -> None:
    agent = versioned(3, a=0, b=0, c=0)
    register_migration(name_of(agent), 1, adding("b", 2))
    register_migration(name_of(agent), 2, lambda state: {**state, "c": state["b"] + 1})

    agent.load_state_dict(state(agent, 1, a=1))

    assert vars(agent) == {"a": 1, "b": 2, "c": 3}


def test_a_later_state_skips_the_steps_it_has_had() -> None:
    agent = versioned(3, a=0)
    register_migration(name_of(agent), 1, lambda state: pytest.fail("this step is not needed"))
    register_migration(name_of(agent), 2, lambda state: state)

    agent.load_state_dict(state(agent, 2, a=1))

    assert agent.a == 1  # type: ignore[attr-defined]


def test_it_is_a_decorator_too() -> None:
    agent = versioned(2, new=0)

    @register_migration(name_of(agent), 1)
    def renamed(state: dict[str, Any]) -> dict[str, Any]:
        state["new"] = state.pop("old")
        return state

    agent.load_state_dict(state(agent, 1, old=5))

    assert agent.new == 5  # type: ignore[attr-defined]
    assert renamed({"old": 1}) == {"new": 1}


def test_the_state_given_is_not_changed_by_a_step_that_changes_its_copy() -> None:
    agent = versioned(2, parts=[])
    given = state(agent, 1, parts=[1])

    def append(state: dict[str, Any]) -> dict[str, Any]:
        state["parts"].append(2)
        return state

    register_migration(name_of(agent), 1, append)
    agent.load_state_dict(given)

    assert agent.parts == [1, 2]  # type: ignore[attr-defined]
    assert given == state(agent, 1, parts=[1])


def test_versions_may_have_dots() -> None:
    agent = versioned("1.10", a=0, b=0, c=0)
    register_migration(name_of(agent), "1.0", adding("b", 1))
    register_migration(name_of(agent), "1.2", adding("c", 2))

    agent.load_state_dict(state(agent, "1.0", a=1))

    assert vars(agent) == {"a": 1, "b": 1, "c": 2}
    with pytest.raises(SchemaMigrationError, match="newer"):
        agent.load_state_dict(state(agent, "1.11"))


def test_a_step_may_lead_over_several_versions() -> None:
    agent = versioned(5, a=0)
    register_migration(name_of(agent), 1, lambda state: {**state, "__version__": 5})

    agent.load_state_dict(state(agent, 1, a=1))

    assert agent.a == 1  # type: ignore[attr-defined]


def test_a_class_may_be_renamed() -> None:
    agent = versioned(2, a=0)
    old = f"Old{name_of(agent)}"
    register_migration(old, 1, lambda state: {**state, "__class__": name_of(agent)})

    agent.load_state_dict({"__class__": old, "__version__": 1, "a": 1})

    assert agent.a == 1  # type: ignore[attr-defined]


def test_nested_states_are_brought_up_as_well() -> None:
    inner = versioned(2, new=0)
    outer = versioned(2, inner=None, all=None)
    register_migration(name_of(inner), 1, lambda state: {"new": state["old"]})
    register_migration(name_of(outer), 1, lambda state: {**state, "all": [state["inner"]]})

    outer.load_state_dict(state(outer, 1, inner=state(inner, 1, old=7)))

    assert outer.inner.new == outer.all[0].new == 7  # type: ignore[attr-defined]


def test_a_nested_class_may_be_renamed() -> None:
    inner, outer = versioned(2, a=0), versioned(1, inner=None)
    old = f"Old{name_of(inner)}"
    register_migration(old, 1, lambda state: {**state, "__class__": name_of(inner)})

    outer.load_state_dict(state(outer, 1, inner={"__class__": old, "__version__": 1, "a": 1}))

    assert type(outer.inner) is type(inner)  # type: ignore[attr-defined]


def test_saved_states_are_brought_up_when_loaded_and_compared() -> None:
    with CheckpointManager() as manager:
        old = versioned(1, count="3")
        manager.save("agent", old)
        type(old)._checkpoint_version = classmethod(lambda cls: 2)  # type: ignore[method-assign,assignment]
        register_migration(name_of(old), 1, lambda state: {**state, "count": int(state["count"])})
        old.count = 3  # type: ignore[attr-defined]

        difference = manager.diff("agent", agent=old)
        manager.load("agent", old)

    assert difference == {"added": {}, "removed": {}, "changed": {}}
    assert old.count == 3  # type: ignore[attr-defined]


def test_a_missing_step_is_named() -> None:
    agent = versioned(3, a=0)
    register_migration(name_of(agent), 1, lambda state: state)

    with pytest.raises(
        SchemaMigrationError,
        match=r"from version 2 of \w+ to 3: register_migration\('\w+', 2, fn\)",
    ):
        agent.load_state_dict(state(agent, 1, a=1))

    assert agent.a == 0  # type: ignore[attr-defined]


def test_a_newer_state_is_refused() -> None:
    agent = versioned(1, a=0)

    with pytest.raises(SchemaMigrationError, match="has version 2, newer than the program's 1"):
        agent.load_state_dict(state(agent, 2, a=1))


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (lambda state: state["absent"], r"failed: KeyError\('absent'\)"),
        (lambda state: None, "returns the new state, not NoneType"),
        (lambda state: {**state, "__version__": 0}, "no step forward"),
        (lambda state: {**state, "__class__": None}, "no step forward"),
        (lambda state: {**state, "__version__": 9}, "newer"),
    ],
)
def test_a_step_that_goes_wrong_is_an_error_and_changes_nothing(step: Any, complaint: str) -> None:
    agent = versioned(2, a=0)
    register_migration(name_of(agent), 1, step)

    with pytest.raises(SchemaMigrationError, match=complaint):
        agent.load_state_dict(state(agent, 1, a=1))

    assert agent.a == 0  # type: ignore[attr-defined]


def test_another_function_for_the_same_step_is_refused() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return state

    register_migration("Twice", 1, step)
    register_migration("Twice", 1, step)

    with pytest.raises(InvalidArgumentError, match="Twice has a migration from version 1 already"):
        register_migration("Twice", 1, lambda state: state)


@pytest.mark.parametrize(
    ("class_name", "from_version", "fn"),
    [
        ("", 1, dict),
        (None, 1, dict),
        (dict, 1, dict),
        ("Agent", None, dict),
        ("Agent", True, dict),
        ("Agent", -1, dict),
        ("Agent", 1.5, dict),
        ("Agent", "one", dict),
        ("Agent", "1..2", dict),
        ("Agent", 1, "not a function"),
    ],
)
def test_wrong_arguments_are_refused(class_name: Any, from_version: Any, fn: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        register_migration(class_name, from_version, fn)


def test_a_class_with_a_wrong_version_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="a version is"):
        versioned("newest", a=0).state_dict()


class TestTheFirstVersion:
    """A class that says nothing has version "1.0"; 0.2 wrote 1."""

    def test_a_class_that_says_nothing_has_version_one(self) -> None:
        class Fresh(Checkpointable):
            def __init__(self) -> None:
                self.step = 1

        assert Fresh().state_dict()["__version__"] == "1.0"

    def test_a_state_of_version_1_is_one_of_version_one_point_nothing(self) -> None:
        class Kept(Checkpointable):
            def __init__(self) -> None:
                self.step = 1

        kept = Kept()
        kept.load_state_dict({"__class__": "Kept", "__version__": 1, "step": 5})
        assert kept.step == 5
        manager = CheckpointManager()
        manager.client.save(
            "holdfast.state",
            execution_state={"__class__": "Kept", "__version__": 1, "step": 5},
            session_id="k",
        )
        assert manager.diff("k", agent=kept) == {"added": {}, "removed": {}, "changed": {}}
        first = manager.history("k")[0]["id"]
        manager.save("k", kept)
        assert manager.diff("k", checkpoint_id_a=first)["changed"] == {}

    @pytest.mark.parametrize("stored", [1, "1", "1.0"])
    @pytest.mark.parametrize("wanted", [3, "3.0"])
    def test_it_is_migrated_however_it_is_written(self, stored: Any, wanted: Any) -> None:
        class Grown(Checkpointable):
            def __init__(self) -> None:
                self.log: list[str] = []

            @classmethod
            def _checkpoint_version(cls) -> Any:
                return wanted

        name = f"Grown{type(stored).__name__}{len(str(stored))}{type(wanted).__name__}"
        Grown.__name__ = name
        register_migration(name, 1, lambda state: {**state, "log": [*state["log"], "from 1"]})
        register_migration(name, "2.0", lambda state: {**state, "log": [*state["log"], "from 2"]})

        grown = Grown()
        grown.load_state_dict({"__class__": name, "__version__": stored, "log": []})

        assert grown.log == ["from 1", "from 2"]
