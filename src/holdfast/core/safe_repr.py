"""Text of values for people: ``repr``, where it works, and else what can be said all the same.

Python refuses to write an integer of more than 4300 digits in decimal, so ``repr`` of anything that
holds one fails; it is written in hexadecimal here. The process-wide limit is left as it is.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from fractions import Fraction
from typing import Any

_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    deque: ("[", "]"),
}


def shown(value: Any) -> str:
    """Return the repr of a value; never an error, whatever the value holds or its class does.

    >>> from holdfast.core.safe_repr import shown
    >>> shown([1, 16**4000])[:12]
    '[1, 0x100000'
    """
    try:
        return repr(value)
    except Exception:
        return _spelled(value)


def shortened(text: str, width: int) -> str:
    """Return the text, or its beginning and how long it is.

    >>> from holdfast.core.safe_repr import shortened
    >>> shortened("word " * 20, 30)
    'word word word word … (100 characters)'
    """
    return text if len(text) <= width else f"{text[: width - 10]}… ({len(text)} characters)"


def briefly(value: Any) -> str:
    """Return what a value is, at a length that an error can hold.

    >>> from holdfast.core.safe_repr import briefly
    >>> briefly(16**5000)
    '0x100000000000000000000000000000000000000000000000… (5003 characters)'
    """
    return shortened(shown(value), 60)


def _spelled(value: Any) -> str:
    cls = type(value)
    try:
        if issubclass(cls, int):
            return hex(int.__index__(value))
        if cls is Fraction:
            return f"Fraction({shown(value.numerator)}, {shown(value.denominator)})"
        if cls in _BRACKETS:
            start, end = _BRACKETS[cls]
            text = start + ", ".join(map(shown, value)) + ("," if _is_single(value) else "") + end
            return text if cls in (list, tuple, set) else f"{cls.__name__}({text})"
        if cls is dict or cls is OrderedDict:
            return "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
        fields = object.__getattribute__(value, "__dict__")
        parts = ", ".join(f"{name}={shown(part)}" for name, part in dict(fields).items())
        return f"{cls.__qualname__}({parts})"
    except Exception:
        # Without the address, so that the same value has the same text in every process.
        return f"<{cls.__qualname__} object>"


def _is_single(value: Any) -> bool:
    return type(value) is tuple and len(value) == 1
