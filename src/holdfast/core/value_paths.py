"""Paths of values within a state: ``$.tasks[3].status``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from holdfast.core.safe_repr import shown


def child_path(path: str, key: object) -> str:
    """Return the path of a dict's value: ``$.name`` if the key is a name, else ``$['a b']``."""
    if type(key) is str and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{short_key(key)}]"


def short_key(key: object) -> str:
    """Return a key as a path shows it, cut where it is long."""
    text = shown(key)
    return text if len(text) <= 60 else text[:57] + "..."


def path_to(steps: Sequence[Any]) -> str:
    """Return the path of a place that so many keys and positions lead to.

    >>> from holdfast.core.value_paths import path_to
    >>> path_to(["tasks", 3, "status"])
    '$.tasks[3].status'
    """
    return functools.reduce(child_path, steps, "$")
