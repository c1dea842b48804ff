"""What was kept, read back: every field is of its kind before anything is made of it.

Records and notes may come from elsewhere, with a bundle or by another hand. What reads them asks
here, so that a field of another kind is an error that names it, wherever it is met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.errors import CheckpointIntegrityError

Kind = tuple[Any, ...]
"""The types that a field may have, exactly; or the words that it may be."""

TEXT: Kind = (str,)
MAYBE_TEXT: Kind = (str, type(None))
NUMBER: Kind = (int,)
TRUTH: Kind = (bool,)
MOMENT: Kind = (datetime,)
MAYBE_MOMENT: Kind = (datetime, type(None))
FIELDS: Kind = (dict,)
LIST: Kind = (list, tuple)
ANYTHING: Kind = ()

_LARGEST = 2**63


def fields_of(
    what: str, value: Any, kinds: Mapping[str, Kind], needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the known fields of what was kept; those of a later version are left out."""
    if not isinstance(value, Mapping):
        raise damaged(what, f"is {_kind_of(value)} where fields were kept")
    found = {}
    for name, kind in kinds.items():
        if name in value:
            found[name] = part = value[name]
            if kind and not _is(part, kind):
                raise damaged(what, f"has {_kind_of(part)} as its {name}")
        elif name in needed:
            raise damaged(what, f"has no {name}")
    return found


def items(what: str, values: Any) -> Sequence[Any]:
    """Return the items of a list that was kept."""
    if isinstance(values, (list, tuple)):
        return values
    raise damaged(what, f"is {_kind_of(values)} where a list was kept")


def number_in(what: str, text: str) -> int:
    """Return the number that a part of a key is."""
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return int(text)
    raise damaged(what, f"has {text[:40]!r} in its key where a number was kept")


def texts_in(what: str, values: Any) -> list[str]:
    """Return a list of texts."""
    if isinstance(values, (list, tuple)) and all(type(each) is str for each in values):
        return list(values)
    raise damaged(what, "has something else where names were kept")


def damaged(what: str, problem: str) -> CheckpointIntegrityError:
    """Return what to say of what was kept and cannot be read."""
    return CheckpointIntegrityError(None, f"{what} {problem}")


def _is(value: Any, kind: Kind) -> bool:
    if isinstance(kind[0], str):
        return type(value) is str and value in kind
    if type(value) not in kind:
        return False
    if type(value) is int:
        return -_LARGEST <= value < _LARGEST
    return type(value) is not datetime or value.tzinfo is not None


def _kind_of(value: Any) -> str:
    if value is None:
        return "nothing"
    if type(value) is str:
        return repr(value if len(value) <= 40 else value[:39] + "…")
    return f"a value of type {type(value).__name__}"
