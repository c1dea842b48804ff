"""Tables for notebooks: values as harmless HTML, cut to a length that a page can hold.

Every value is text: markup is escaped, what steers a page or turns its direction is shown as Python
writes it, and what is long is cut. Colours are seen on light and dark pages alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import islice
from typing import Any, Literal

from holdfast.core.short_repr import brief
from holdfast.system.terminal_text import clean

Tint = Literal["added", "removed", "changed", "moved", "chosen"]

LONGEST = 200
"""Characters of a value that are shown."""
_DEEPEST = 24
_LINE = "rgba(128,128,128,.35)"
_TABLE = "border-collapse:collapse;color:inherit;background:transparent;font-size:.9em"
_CAPTION = "caption-side:top;text-align:left;color:inherit;padding:.3em 0"
_FAINT = "opacity:.7"
_CELL = (
    "text-align:left;vertical-align:top;padding:.2em .7em;color:inherit;max-width:42em;"
    f"white-space:pre-wrap;overflow-wrap:anywhere;border-bottom:1px solid {_LINE}"
)
_NAME = f"{_CELL};font-weight:600"
_HEAD = f"{_NAME};border-bottom-color:currentColor"
_TINTS: dict[Tint, str] = {
    "added": "rgba(46,160,67,.18)",
    "removed": "rgba(248,81,73,.18)",
    "changed": "rgba(210,153,34,.18)",
    "moved": "rgba(56,139,253,.18)",
    "chosen": "rgba(46,160,67,.18)",
}


@dataclass(frozen=True, slots=True)
class Literally:
    """A value that is shown as Python writes it, so that ``'1'`` and ``1`` differ."""

    value: Any


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its cells, its colour, and how far its first cell is moved in."""

    cells: Sequence[Any]
    tint: Tint | None = None
    depth: int = 0


def table(
    title: str,
    about: Iterable[Any],
    heads: Sequence[str],
    rows: Iterable[Row],
    most: int,
    total: int,
) -> str:
    """Return a table of the first rows, which says how many more there are.

    >>> from holdfast.core.html_form import Row, table
    >>> shown = table("Steps", ["<b>"], ["name"], [Row(["one"]), Row(["two"])], most=1, total=2)
    >>> "&lt;b&gt;" in shown, "one" in shown, "two" in shown, "1 more" in shown
    (True, True, False, True)
    """
    names = "".join(f'<th scope="col" style="{_HEAD}">{escaped(each)}</th>' for each in heads)
    kept = list(islice(rows, most))
    body = "".join(map(_row, kept))
    if total > len(kept):
        left = f"… and {total - len(kept):,} more"
        body += f'<tr><td colspan="{len(heads)}" style="{_CELL};{_FAINT}">{left}</td></tr>'
    return _whole(title, about, f"<thead><tr>{names}</tr></thead><tbody>{body}</tbody>")


def facts(title: str, about: Iterable[Any], pairs: Iterable[tuple[str, Any]]) -> str:
    """Return a table of what is known of one thing: a name and a value in each row."""
    body = "".join(
        f'<tr><th scope="row" style="{_NAME}">{escaped(name)}</th>{_cell(value)}</tr>'
        for name, value in pairs
    )
    return _whole(title, about, f"<tbody>{body}</tbody>")


def escaped(value: Any, longest: int = LONGEST) -> str:
    """Return a value as text that is safe in HTML, also within an attribute.

    >>> from holdfast.core.html_form import escaped
    >>> escaped('<a href="x">'), escaped("a\\u202eb")
    ('&lt;a href=&quot;x&quot;&gt;', 'a\\\\u202eb')
    """
    return escape(clean(_text(value, longest)), quote=True)


def field_of(thing: Any, name: str) -> Any:
    """Return an attribute, or None where there is none or it cannot be read."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def _text(value: Any, longest: int) -> str:
    """Return what is shown of a value; its type where its own text cannot be had."""
    try:
        if value is None:
            return ""
        if isinstance(value, datetime):
            text = value.isoformat(" ", "seconds").replace("+00:00", " UTC")
        elif isinstance(value, str):
            text = str.__str__(value)
        else:
            text = brief(value.value if type(value) is Literally else value, longest)
        return text if len(text) <= longest else f"{text[: longest - 1]}…"
    except Exception:
        inner = value.value if type(value) is Literally else value
        return f"<{type(inner).__name__} object>"[:longest]


def _cell(value: Any, more: str = "") -> str:
    return f'<td style="{_CELL}{more}">{escaped(value)}</td>'


def _row(row: Row) -> str:
    style = f' style="background:{_TINTS[row.tint]}"' if row.tint else ""
    moved = f";padding-left:{0.7 + min(row.depth, _DEEPEST) * 1.2:.1f}em" if row.depth else ""
    cells = [_cell(each, "" if number else moved) for number, each in enumerate(row.cells)]
    return f"<tr{style}>{''.join(cells)}</tr>"


def _whole(title: str, about: Iterable[Any], body: str) -> str:
    # Each value stands by itself, so that one written from right to left does not turn the others.
    said = "".join(f" · <bdi>{escaped(each)}</bdi>" for each in about)
    caption = f'<caption style="{_CAPTION}"><b>{escaped(title)}</b>{said}</caption>'
    return f'<table style="{_TABLE}">{caption}{body}</table>'
