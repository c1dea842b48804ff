"""Values of a state: one of them by its path, and a readable outline of the whole."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.cli.exits import NotFound, UsageError
from holdfast.cli.parsing import guess
from holdfast.core.raw import Raw
from holdfast.core.short_repr import brief
from holdfast.system.terminal_text import clean, cut

_STEP = re.compile(r"\.?(?P<name>[^.\[\]]+)|\[(?P<key>-?[0-9]+|'[^']*'|\"[^\"]*\")\]")
_INDEX = re.compile(r"-?[0-9]{1,18}")
_SHOWN = 40
_LONGEST = 100


def at_path(value: Any, path: str) -> Any:
    """Return the part of a value at ``$.plan[0].name`` or ``plan[0].name``."""
    where = "$"
    for key, step in _steps(path):
        value = _member(value, key, where)
        where += step if step[0] in ".[" else f".{step}"
    return value


def steps_of(path: str) -> list[Any]:
    """Return the keys and positions that a path leads by."""
    return [key for key, _ in _steps(path)]


def _steps(path: str) -> Iterator[tuple[Any, str]]:
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise UsageError(f"{brief(path)} is no path: write plan[0].name or files['a b']")
        yield step["name"] if step["name"] is not None else _key(step["key"], path), step[0]
        at = step.end()


def _key(text: str, path: str) -> Any:
    try:
        return literal_eval(text)
    except (SyntaxError, ValueError):  # an escape that is none, or a number beyond all numbers
        raise UsageError(f"{brief(path)} is no path: {brief(text)} cannot be a key") from None


def _member(value: Any, key: str | int, where: str) -> Any:
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        if isinstance(key, str) and _INDEX.fullmatch(key) and int(key) in value:
            return value[int(key)]
        known = [each for each in value if isinstance(each, str)]
        raise NotFound(f"{_cut(where)} has no {brief(key)}{guess(str(key), known)}")
    if isinstance(value, (list, tuple)):
        index = int(key) if _INDEX.fullmatch(str(key)) else None
        if index is not None and -len(value) <= index < len(value):
            return value[index]
        raise NotFound(f"{_cut(where)} has {len(value)} items and no {brief(key)}")
    fields = getattr(value, "__dict__", {})
    if isinstance(fields, dict) and key in fields:
        return fields[key]
    raise NotFound(f"{_cut(where)} is {kind_of(value)} and has no {brief(key)}")


def _cut(where: str) -> str:
    return where if len(where) <= _LONGEST else f"{where[:_LONGEST]}…"


def kind_of(value: Any) -> str:
    """Return what a value is, in a word or two."""
    if isinstance(value, Raw):
        return value.type_name.rpartition(":")[2]
    if value is None:
        return "None"
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, (str, bytes)) and len(value) > _SHOWN:
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__


def short(value: Any, columns: int = 70) -> str:
    """Return a value on one line."""
    return cut(clean(brief(value, max(columns, 1))), columns)


def _name_of(key: Any) -> str:
    return cut(clean(key if isinstance(key, str) else brief(key)), _LONGEST)


def outline(value: Any, columns: int, deepest: int = 2) -> list[str]:
    """Return the parts of a value, one line each, opened two levels deep."""
    lines: list[str] = []
    _outline(value, "", columns, deepest, lines)
    return lines


def _outline(value: Any, indent: str, columns: int, deepest: int, lines: list[str]) -> None:
    parts: list[tuple[str, Any]]
    if isinstance(value, Mapping):
        parts = [(_name_of(key), part) for key, part in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"[{index}]", part) for index, part in enumerate(value)]
    else:
        lines.append(indent + short(value, columns - len(indent)))
        return
    for name, part in parts[:_SHOWN]:
        text = brief(part, _LONGEST)
        start = f"{indent}{name}: "
        is_open = isinstance(part, (Mapping, list, tuple)) and bool(part)
        if not is_open or (len(start) + len(text) <= min(columns, _LONGEST) and text.isprintable()):
            lines.append(start + short(part, max(columns - len(start), 20)))
        elif deepest <= 1:
            lines.append(start + kind_of(part))
        else:
            lines.append(start + kind_of(part))
            _outline(part, indent + "  ", columns, deepest - 1, lines)
    if len(parts) > _SHOWN:
        lines.append(f"{indent}… and {len(parts) - _SHOWN} more")
