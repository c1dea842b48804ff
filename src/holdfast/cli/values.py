"""Values of a state: one of them by its path, and a readable outline of the whole."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping
from typing import Any

from holdfast.cli.exits import NotFound, UsageError
from holdfast.cli.parsing import guess
from holdfast.cli.words import clean, cut
from holdfast.core.raw import Raw
from holdfast.core.shown import shown

_STEP = re.compile(r"\.?(?P<name>[^.\[\]]+)|\[(?P<key>-?[0-9]+|'[^']*'|\"[^\"]*\")\]")
_SHOWN = 40


def at_path(value: Any, path: str) -> Any:
    """The part of a value at ``$.plan[0].name`` or ``plan[0].name``."""
    at = 1 if path.startswith("$") else 0
    where = "$"
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise UsageError(f"{path!r} is no path: write plan[0].name or files['a b']")
        key = step["name"] if step["name"] is not None else literal_eval(step["key"])
        value = _member(value, key, where)
        where += step[0] if step[0][0] in ".[" else f".{step[0]}"
        at = step.end()
    return value


def _member(value: Any, key: str | int, where: str) -> Any:
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        known = [_name(each) for each in value]
        raise NotFound(f"{where} has no {key!r}{guess(str(key), known)}")
    if isinstance(value, (list, tuple)):
        index = int(key) if str(key).lstrip("-").isdecimal() else None
        if index is not None and -len(value) <= index < len(value):
            return value[index]
        raise NotFound(f"{where} has {len(value)} items and no {key!r}")
    fields = getattr(value, "__dict__", {})
    if key in fields:
        return fields[key]
    raise NotFound(f"{where} is {kind_of(value)} and has no {key!r}")


def kind_of(value: Any) -> str:
    """What a value is, in a word or two."""
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
    """A value on one line."""
    return cut(clean(readable(value)), columns)


def readable(value: Any) -> str:
    """The repr of a value, with those of unknown classes as one would write them.

    Their fields that say nothing are left out.
    """
    if isinstance(value, Raw):
        said = [f"{name}={readable(part)}" for name, part in value.items() if not _is_empty(part)]
        return f"{kind_of(value)}({', '.join(said)})"
    if type(value) is list:
        return f"[{', '.join(map(readable, value))}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{shown(k)}: {readable(part)}" for k, part in value.items()) + "}"
    return shown(value)


def _name(key: Any) -> str:
    return key if type(key) is str else shown(key)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple, dict)) and not value)


def outline(value: Any, columns: int, deepest: int = 2) -> list[str]:
    """The parts of a value, one line each, opened two levels deep."""
    lines: list[str] = []
    _outline(value, "", columns, deepest, lines)
    return lines


def _outline(value: Any, indent: str, columns: int, deepest: int, lines: list[str]) -> None:
    parts: list[tuple[str, Any]]
    if isinstance(value, Mapping):
        parts = [(clean(_name(key)), part) for key, part in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"[{index}]", part) for index, part in enumerate(value)]
    else:
        lines.append(indent + short(value, columns - len(indent)))
        return
    for name, part in parts[:_SHOWN]:
        text = readable(part)
        start = f"{indent}{name}: "
        is_open = isinstance(part, (Mapping, list, tuple)) and bool(part)
        if not is_open or (len(start) + len(text) <= min(columns, 100) and text.isprintable()):
            lines.append(start + short(part, max(columns - len(start), 20)))
        elif deepest <= 1:
            lines.append(start + kind_of(part))
        else:
            lines.append(start + kind_of(part))
            _outline(part, indent + "  ", columns, deepest - 1, lines)
    if len(parts) > _SHOWN:
        lines.append(f"{indent}… and {len(parts) - _SHOWN} more")
