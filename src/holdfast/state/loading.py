"""Loading a state: everything is checked and made first, then set, all or nothing."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from holdfast.core.kinds.objects import set_attributes
from holdfast.core.state_migrations import migrated
from holdfast.core.state_tags import (
    CLASS,
    MARK,
    VERSION,
    State,
    Version,
    fields_of,
    is_escaped,
    is_tagged,
    ordered,
)
from holdfast.core.value_paths import child_path
from holdfast.errors import InvalidArgumentError, SchemaMigrationError, SerializationError
from holdfast.state import known_classes
from holdfast.state.attributes import (
    checked_names,
    declared_names,
    is_cache,
    keep,
    stored,
    why_not_set,
    write,
)
from holdfast.state.checkpointable import Checkpointable, LoadedKeys
from holdfast.state.options import isolated, options, packed, unpacked
from holdfast.state.state_dicts import map_parts
from holdfast.state.state_diff import same
from holdfast.state.torch_objects import (
    check_place,
    is_live_state,
    keep_live,
    live_class,
    load_live,
)

A = TypeVar("A", bound=Checkpointable)


def load(obj: Checkpointable, state: State, strict: bool) -> LoadedKeys:
    """Load a state into an object, as Checkpointable.load_state_dict says."""
    if not isinstance(state, dict):
        raise InvalidArgumentError(
            f"load_state_dict wants what state_dict() gave, not {type(state).__name__}"
        )
    loading = _Loading(strict)
    loading.plan(*_brought_up(_checked(state, "$"), *_only(obj)), "$")
    loading.refuse_what_does_not_fit(type(obj).__name__)
    loading.commit()
    return LoadedKeys(loading.missing, loading.unexpected)


def current(state: State, obj: Checkpointable) -> State:
    """Return a state at the version of an object's class."""
    return _brought_up(_checked(state, "$"), *_only(obj))[1]


def _brought_up(
    state: State,
    target_of: Callable[[str], Checkpointable | None],
    why_none: Callable[[str], str],
) -> tuple[Checkpointable, State]:
    """Return the object that a state is for, and the state at the version of that object's class.

    ``target_of`` gives the object for a class name, or None where none of that name is wanted.
    """
    targets: dict[str, Checkpointable] = {}

    def wanted_of(name: str) -> Version | None:
        target = target_of(name)
        if target is None:
            return None
        targets[name] = target
        return target._checkpoint_version()

    state = migrated(state, wanted_of, why_none, isolated)
    return targets[state[CLASS]], state


def clone(obj: A) -> A:
    """Return a copy of an object, as Checkpointable.clone says."""
    state = obj.state_dict()
    twin = _twin(obj, {})
    twin.load_state_dict(state)
    return twin


def _twin(obj: A, memo: dict[int, Any]) -> A:
    """Return an object that shares all attributes, but for nested objects, of which it has twins.

    The memo is one of ``deepcopy``: the twin of an optimizer works on the twin of its module.
    """
    twin = blank(type(obj), "$")
    state_names = set(obj._checkpoint_fields())
    values = {
        name: _with_twins(value, memo) if name in state_names else value
        for name, value in stored(obj).items()
        if not is_cache(type(obj), name)
    }
    set_attributes(twin, values)
    return twin


def _with_twins(value: Any, memo: dict[int, Any]) -> Any:
    if isinstance(value, Checkpointable):
        return _twin(value, memo)
    if live_class(value) is not None:
        return copy.deepcopy(value, memo)
    return map_parts(value, lambda part, _: _with_twins(part, memo))


def blank(cls: type[A], path: str) -> A:
    """Return an object of a class without anything in it; no constructor is called."""
    try:
        return object.__new__(cls)
    except TypeError as error:
        raise SerializationError(path, f"{cls.__name__} cannot be made ({error})") from error


def _only(
    obj: Checkpointable,
) -> tuple[Callable[[str], Checkpointable | None], Callable[[str], str]]:
    own = type(obj).__name__
    return (
        lambda name: obj if name == own else None,
        lambda name: (
            f"this is the state of {name}, not of {own}: load it into an object of {name}; if the "
            f"class was renamed, register_migration({name!r}, …) with a function that sets {CLASS}"
        ),
    )


def _checked(state: Any, path: str) -> State:
    missing = [tag for tag in (CLASS, VERSION) if tag not in state]
    if missing:
        raise SchemaMigrationError(
            f"{path}: the state has no {' and no '.join(missing)}: give it what state_dict() gave"
        )
    if not isinstance(state[CLASS], str):
        raise SchemaMigrationError(f"{path}: {CLASS} is the name of a class, not {state[CLASS]!r}")
    try:
        ordered(state[VERSION])
    except InvalidArgumentError as error:
        raise SchemaMigrationError(f"{path}: {error}") from error
    return dict(state)


class _Loading:
    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self._steps: list[tuple[list[Any], Callable[[], object]]] = []
        self._taken: dict[int, tuple[Checkpointable, State]] = {}

    def plan(self, obj: Checkpointable, state: State, path: str) -> None:
        """Note what to set on an object, and on those in it, once all has been checked."""
        self._taken[id(obj)] = (obj, state)
        fields = fields_of(state)
        chosen = lists_fields(type(obj))
        drop = self._compare_names(obj, fields, chosen, path)
        held = stored(obj)
        values = {
            name: self._value(value, held.get(name), type(obj), child_path(path, name))
            for name, value in fields.items()
        }
        self._steps.append(([obj], lambda: write(obj, values, drop, chosen)))

    def _compare_names(
        self, obj: Checkpointable, fields: State, chosen: bool, path: str
    ) -> list[str]:
        """Leave out of the fields what is not to be set; return the names to be removed."""
        # What was made without a constructor has no attributes that could be compared or asked.
        expected = checked_names(obj, obj._checkpoint_fields()) if stored(obj) else []
        prefix = path.removeprefix("$").removeprefix(".")
        dotted = f"{prefix}." if prefix else ""
        missing = [name for name in expected if name not in fields]
        unexpected = [name for name in fields if name not in expected] if expected else []
        if unexpected and not chosen:
            declared = declared_names(type(obj))
            unexpected = [name for name in unexpected if name not in declared]
        drop: list[str] = []
        if options().exact:
            drop = [name for name in missing if name in stored(obj)]
        else:
            self.missing += [dotted + name for name in missing]
            self.unexpected += [dotted + str(name) for name in unexpected]
            for name in unexpected:
                del fields[name]
        for name in fields:
            why = why_not_set(obj, name, chosen)
            if why:
                raise SchemaMigrationError(
                    f"{path}: {type(obj).__name__} cannot take {name!r}, which {why}"
                )
        return drop

    def _value(self, value: Any, held: Any, owner: type, path: str) -> Any:
        try:
            data = packed(value)
        except SerializationError as error:
            raise SerializationError(path + error.path.removeprefix("$"), error.problem) from error
        copy = unpacked(data)
        return self._revived(copy, held, owner, path) if MARK in data else copy

    def _revived(self, value: Any, held: Any, owner: type, path: str) -> Any:
        """Return the value with objects in place of states; what is held is loaded in place."""
        if is_tagged(value):
            if is_live_state(value):
                return self._live(value, held, path)
            if not is_escaped(value):
                return self._nested(value, held, owner, path)
            value = value["items"]
        return map_parts(
            value,
            lambda part, key: self._revived(
                part, _part_of(held, key), owner, child_path(path, key)
            ),
        )

    def _live(self, state: State, held: Any, path: str) -> Any:
        """Return the module or optimizer of torch into which its state is to be loaded."""
        check_place(state, held, path)
        self._steps.append(([held], lambda: load_live(held, state, self.strict, path)))
        return held

    def _nested(self, state: State, held: Any, owner: type, path: str) -> Checkpointable:
        def target_of(name: str) -> Checkpointable | None:
            if isinstance(held, Checkpointable) and type(held).__name__ == name:
                return held
            cls = known_classes.find(name, owner, path)
            return None if cls is None else _made(cls, path)

        obj, state = _brought_up(
            _checked(state, path),
            target_of,
            lambda name: (
                f"{path}: no Checkpointable class {name} is known here: import its module; if it "
                f"was renamed, register_migration({name!r}, …) with a function that sets {CLASS}"
            ),
        )
        if id(obj) in self._taken:  # it stands in two places now
            if same(self._taken[id(obj)][1], state):
                return obj
            obj = _made(type(obj), path)
        if type(obj).load_state_dict is Checkpointable.load_state_dict:
            self.plan(obj, state, path)
        else:
            self._taken[id(obj)] = (obj, state)
            self._steps.append((list(_with_nested(obj)), lambda: self._ask(obj, state)))
        return obj

    def _ask(self, obj: Checkpointable, state: State) -> None:
        """Let a class with its own ``load_state_dict`` load itself."""
        if self.strict:
            obj.load_state_dict(state)
        else:
            obj.load_state_dict(state, strict=False)

    def refuse_what_does_not_fit(self, name: str) -> None:
        """Name all keys that do not fit, as PyTorch does."""
        if not self.strict or not (self.missing or self.unexpected):
            return
        parts = [
            f"{what} key(s): {', '.join(map(repr, keys))}"
            for what, keys in (("missing", self.missing), ("unexpected", self.unexpected))
            if keys
        ]
        raise SchemaMigrationError(
            f"the state does not fit {name}: {'; '.join(parts)}. Raise _checkpoint_version() and "
            "register_migration(...), declare the attribute in the class, or load with strict=False"
        )

    def commit(self) -> None:
        """Do all that was planned; if anything fails, put everything back."""
        undo: list[Callable[[], None]] = []
        try:
            for touched, step in self._steps:
                undo += map(_kept, touched)
                step()
        except BaseException:
            for put_back in reversed(undo):
                put_back()
            raise


def _kept(value: Any) -> Callable[[], None]:
    return keep(value) if isinstance(value, Checkpointable) else keep_live(value)


def lists_fields(cls: type[Checkpointable]) -> bool:
    """Return whether a class says itself which attributes are state."""
    return cls._checkpoint_fields is not Checkpointable._checkpoint_fields


def _made(cls: type, path: str) -> Checkpointable:
    if hasattr(cls, "__del__"):
        raise SerializationError(
            path,
            f"{cls.__name__} has a __del__ method, which data must not trigger; set the attribute "
            "to an object of it before loading",
        )
    made: Checkpointable = blank(cls, path)
    return made


def _part_of(held: Any, key: Any) -> Any:
    """Return what stands at this place of the container held now, or None."""
    if isinstance(held, dict):
        return dict.get(held, key)
    if isinstance(held, (list, tuple, deque)) and isinstance(key, int):
        return held[key] if key < len(held) else None
    return None


def _with_nested(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Return an object and those in its attributes, lists, tuples and dicts, those of torch too."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Checkpointable):
        yield value
        value = stored(value)
    elif live_class(value) is not None:
        yield value
        return
    parts: list[Any] = []
    map_parts(value, lambda part, _: parts.append(part))
    for part in parts:
        yield from _with_nested(part, seen)
