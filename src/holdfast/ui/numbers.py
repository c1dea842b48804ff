"""Numbers as every reader of JSON takes them.

Browsers have no whole ones beyond 2**53, and write 1.0 as 1.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from holdfast.cli.exits import UsageError
from holdfast.core.short_repr import brief

LARGEST = 2**53 - 1
_WRITTEN = {"int": re.compile(r"-?[0-9]{1,620}"), "float": re.compile(r"-?[0-9.e+-]{1,30}")}
"""As long as any number that the typed form writes as one."""


def exact(data: Any) -> Any:
    """Return data of the typed form in which numbers that a browser would alter are texts.

    >>> from holdfast.ui.numbers import exact, meant
    >>> exact([7, 2**60, 1.0])
    [7, {'$type': 'int', 'value': '1152921504606846976'}, {'$type': 'float', 'value': '1.0'}]
    """
    cls = type(data)
    if cls is int and not -LARGEST <= data <= LARGEST:
        return {"$type": "int", "value": str(data)}
    if cls is float and math.isfinite(data) and data.is_integer():
        return {"$type": "float", "value": repr(data)}
    if cls is list:
        return [exact(part) for part in data]
    if cls is dict:
        return {key: exact(part) for key, part in data.items()}
    return data


def meant(data: Any) -> Any:
    """Return data of the typed form in which texts are the numbers that ``exact`` wrote so.

    >>> from holdfast.ui.numbers import exact, meant
    >>> meant(exact([7, 2**60, 1.0]))
    [7, 1152921504606846976, 1.0]
    """
    if type(data) is list:
        return [meant(part) for part in data]
    if type(data) is not dict:
        return data
    value, kind = data.get("value"), data.get("$type")
    if kind in ("int", "float") and type(value) is str and _WRITTEN[kind].fullmatch(value):
        try:
            return int(value) if kind == "int" else float(value)
        except ValueError:
            return data
    if kind == "escaped" and type(value) is dict:  # whose own keys mean nothing
        return {**data, "value": {key: meant(part) for key, part in value.items()}}
    return {key: meant(part) for key, part in data.items()}


def text_of(data: Any) -> str:
    """Return data of the typed form as a text to be read, edited and given back unaltered."""
    return json.dumps(data, ensure_ascii=False, indent=2)


def data_of(text: str, name: str) -> Any:
    """Return what such a text says."""
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise UsageError(f"{name} is no JSON: {brief(text)}") from None


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
