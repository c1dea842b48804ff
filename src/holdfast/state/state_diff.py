"""What differs between two states, by exact type and value."""

from __future__ import annotations

from typing import Any, TypedDict

from holdfast.core.state_tags import VERSION, State, same_version
from holdfast.state.options import packed


class StateDiff(TypedDict):
    """Fields by name; a changed one with its old and its new value."""

    added: dict[str, Any]
    removed: dict[str, Any]
    changed: dict[str, tuple[Any, Any]]


def diff_states(old: State, new: State) -> StateDiff:
    """Return what the new state has in addition, has not, and has otherwise.

    >>> from holdfast.state.state_diff import diff_states
    >>> diff_states({"a": 1, "b": 2}, {"a": True, "c": 3})
    {'added': {'c': 3}, 'removed': {'b': 2}, 'changed': {'a': (1, True)}}
    """
    return {
        "added": {name: value for name, value in new.items() if name not in old},
        "removed": {name: value for name, value in old.items() if name not in new},
        "changed": {
            name: (value, new[name])
            for name, value in old.items()
            if name in new and not _same_part(name, value, new[name])
        },
    }


def same(a: Any, b: Any) -> bool:
    """Return whether two values are equal, types too; the order of dicts does not matter.

    >>> from holdfast.state.state_diff import same
    >>> same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    True
    >>> same([1], [True])
    False
    """
    if type(a) is not type(b):
        return False
    return packed(a) == packed(b) or _same_parts(a, b)


def _same_part(key: object, a: Any, b: Any) -> bool:
    return same(a, b) or (key == VERSION and same_version(a, b))


def _same_parts(a: Any, b: Any) -> bool:
    """Return whether only the order of dicts makes two values of one type differ."""
    if type(a) not in (dict, list, tuple) or len(a) != len(b):
        return False
    if type(a) is dict:
        others = {(type(key), key): value for key, value in b.items()}
        return all(
            (type(key), key) in others and _same_part(key, value, others[type(key), key])
            for key, value in a.items()
        )
    return all(map(same, a, b))
