"""How a record is read, whoever wrote it: every field is checked before anyone sees it.

A checksum is proven when a record is restored. Listings show the record before that, so nothing in
it may surprise them. What cannot be read is ValueError, TypeError, KeyError or OverflowError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.model.field_types import Form
from holdfast.model.fields import BY_NAME, FIELDS, FIRST, LATER, RICH, Field
from holdfast.model.record import NAMES, CheckpointInfo, Values

_FIRST_NAMES = frozenset(NAMES)


def info_of_plain(stored: Any) -> CheckpointInfo:
    """Return the record of a bundle."""
    return _info_of_dict(stored, "plain")


def info_of_text(stored: Any) -> CheckpointInfo:
    """Return the record of a document; each has one text, so no other is taken.

    What may be of any type is taken as it is stored: give it to ``revived`` once it is proven.
    """
    return _info_of_dict(stored, "text", RICH)


def revived(info: CheckpointInfo, value_of: Callable[[str], Any]) -> CheckpointInfo:
    """Return a record with other values for what may be of any type, and is said in it."""
    values = {**info.__dict__}
    for name in RICH:
        f = BY_NAME[name]
        if f in FIRST or values[name] != f.default:
            values[name] = value_of(name)
            if problem := f.type.problem(name, values[name]):
                raise ValueError(problem)
    if info.later is not None:
        values["later"] = {name: value_of(name) for name in info.later}
    return CheckpointInfo.of(values)


def _info_of_dict(stored: Any, form: Form, unchecked: Sequence[str] = ()) -> CheckpointInfo:
    if type(stored) is not dict or not stored.keys() >= _FIRST_NAMES:
        raise ValueError("its fields are others")
    values: dict[str, Any] = {}
    for f in FIRST:
        values[f.name] = value = stored[f.name]
        if both := f.type.both(form):
            write, read = both
            values[f.name] = read(value)
            if write(values[f.name]) != value:
                raise ValueError(f"{f.name} is written in another way")
    values |= {f.name: f.default for f in LATER}
    later = {name: value for name, value in stored.items() if name not in _FIRST_NAMES}
    _add_later(values, later)
    if problem := problem_of(values, unchecked):
        raise ValueError(problem)
    return CheckpointInfo.of(values)


def _add_later(values: dict[str, Any], stored: Any) -> None:
    """Add what a record says of later versions; what this Holdfast does not know as it is."""
    if type(stored) is not dict or not stored.keys().isdisjoint(_FIRST_NAMES):
        raise ValueError("its later fields are of another shape")
    if {type(name) for name in stored} - {str}:
        raise ValueError("a later field has no name")
    unknown = dict(stored)
    for f in LATER:
        if f.name in unknown:
            value = unknown.pop(f.name)
            values[f.name] = f.type.plain[1](value) if f.type.plain else value
    if unknown:
        values["later"] = unknown


def _whole(values: dict[str, Any], later: Any, *more: Any) -> dict[str, Any]:
    """Return the fields of a record with those that follow it in a list."""
    if more:
        raise ValueError("it has more than its fields")
    _add_later(values, later)
    if problem := problem_of(values):
        raise ValueError(problem)
    return values


def problem_of(values: Values, unchecked: Sequence[str] = ()) -> str:
    """Return what is wrong with the fields of a record, or nothing at all."""
    for f in FIELDS:
        if f.name not in unchecked and (problem := f.type.problem(f.name, values[f.name])):
            return problem
    return ""


def _compiled(arguments: Sequence[str], names: Sequence[str], source: str) -> Any:
    """Return a function that reads records from these arguments, the last of which is a list.

    Its code is straight lines, written from the table: a listing reads thousands.
    """
    known: dict[str, Any] = {"of": CheckpointInfo.of, "whole": _whole, "problem_of": problem_of}
    lines = [f"def read({', '.join(arguments)}):", f"    {', '.join(names)}, *later = {source}"]
    wrong: list[str] = []
    for f in FIRST:
        if both := f.type.both("packed"):
            known[f"read_{f.name}"] = both[1]
            lines.append(f"    {f.name} = read_{f.name}({f.name})")
        else:
            wrong.append(_wrong(f))
            known |= {each.__name__: each for each in f.type.types}
    known |= {f"row_{f.name}": f for f in LATER}
    items = [f"{name!r}: {name}" for name in NAMES]
    items += [f"{f.name!r}: row_{f.name}.default" for f in LATER]
    lines += [
        f"    values = {{{', '.join(items)}}}",
        f"    if {' or '.join(wrong)}:",
        "        raise ValueError(problem_of(values))",
        "    return of(whole(values, *later) if later else values)",
    ]
    exec("\n".join(lines), known)  # noqa: S102  (of the table's own words)
    return known["read"]


def _wrong(f: Field) -> str:
    """Return the condition under which the type of a field finds a problem in its value."""
    types = [each.__name__ for each in f.type.types if each is not type(None)]
    is_other = " and ".join(f"type({f.name}) is not {name}" for name in types)
    problems = [f"({is_other})"]
    if f.type.longest is not None:
        problems.append(f"not 0 < len({f.name}) <= {f.type.longest}")
    if f.type.least is not None:
        problems.append(f"not {f.name} >= {f.type.least}")
    condition = f"({' or '.join(problems)})"
    is_optional = len(types) < len(f.type.types)
    return f"({f.name} is not None and {condition})" if is_optional else condition


_COLUMNS = [f.name for f in FIRST if f.column]
_BODY = [f.name for f in FIRST if not f.column]

info_of_packed: Callable[[Sequence[Any]], CheckpointInfo] = _compiled(["packed"], NAMES, "packed")
"""Return the record that ``packed_of`` gave as a list."""

info_of_columns: Callable[..., CheckpointInfo] = _compiled([*_COLUMNS, "body"], _BODY, "body")
"""Return the record of its columns, in the order of the table, and what ``body_of`` gave."""

METADATA_IN_BODY = _BODY.index("metadata")
"""Where the metadata stand in what ``body_of`` gave."""
