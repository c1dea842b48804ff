"""Checks the arguments of a call by the schema of its tool; a model reads what is wrong."""

from __future__ import annotations

import unicodedata
from typing import Any

_BREAKS = ("Cc", "Zl", "Zp")
"""Characters that end a line or steer a terminal."""


class ArgumentError(Exception):
    """Arguments that are not as the tool takes them."""


def checked(arguments: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments, with what is left out or null as the schema has it."""
    known: dict[str, Any] = schema["properties"]
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise ArgumentError(f"there is no {_short(unknown[0])}; there are {', '.join(known)}")
    given = {name: value for name, value in arguments.items() if value is not None}
    missing = [name for name in schema.get("required", ()) if name not in given]
    if missing:
        raise ArgumentError(f"{missing[0]} is missing: {known[missing[0]]['description']}")
    taken = {name: part["default"] for name, part in known.items() if "default" in part}
    return taken | {name: _value(name, value, known[name]) for name, value in given.items()}


def _value(name: str, value: Any, part: dict[str, Any]) -> Any:
    if part["type"] == "string":
        return _text(name, value, part)
    if part["type"] == "integer":
        return _number(name, value, part)
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} is true or false, not {_short(value)}")
    return value


def _text(name: str, value: Any, part: dict[str, Any]) -> str:
    least, most = part["minLength"], part["maxLength"]
    if not isinstance(value, str) or not least <= len(value) <= most or not _is_plain(value):
        raise ArgumentError(
            f"{name} has {least} to {most} characters of Unicode and no NUL: {_short(value)}"
        )
    return _name(value) if name == "name" else value


def _name(value: str) -> str:
    """Return what is to be called so: it stands in one line of the log, and means just that."""
    if any(unicodedata.category(each) in _BREAKS for each in value):
        raise ArgumentError(f"a name is one line without control characters: {_short(value)}")
    from holdfast.cli.access.naming import relative

    base, _ = relative(value) or (value, "")
    if value.startswith("@") or value.endswith("@") or base.endswith("@"):
        raise ArgumentError(
            f"{_short(value)} would be read as a place (@, @~2, session@): choose another name"
        )
    return value


def _number(name: str, value: Any, part: dict[str, Any]) -> int:
    least, most = part["minimum"], part["maximum"]
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not is_whole or not least <= value <= most:
        raise ArgumentError(f"{name} is a number from {least} to {most}, not {_short(value)}")
    return int(value)


def _is_plain(text: str) -> bool:
    """Return whether a text has no NUL, and no half of a pair, which UTF-8 has no bytes for."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def _short(value: Any) -> str:
    from holdfast.core.short_repr import brief

    return brief(value)
