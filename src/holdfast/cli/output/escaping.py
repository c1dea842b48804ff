"""What may reach a terminal: the last step of all that is printed, errors and questions too.

Names, messages and paths come from stored data, and data must not steer the terminal. So nothing
but this module knows escape sequences: colours are marks in the text until here, where every other
character that is not harmless is written as Python writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from holdfast.stores.shared.secrets import HIDDEN
from holdfast.system.terminal_text import escaped, is_harmless

STYLES = {
    "id": "35",
    "name": "1",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "head": "1;36",
    "dim": "2",
    "session": "34",
}
# Characters that Unicode keeps free for a program's own use, and that no text has.
_BEGINS = {style: chr(0xFDD0 + number) for number, style in enumerate(STYLES)}
_ENDS = "\ufdef"
_CODES = {_BEGINS[style]: f"\x1b[{code}m" for style, code in STYLES.items()} | {_ENDS: "\x1b[0m"}
_LITERAL = re.compile(r"[^ -~]")
CLEAR_BELOW = "\r\x1b[J"
"""Clears the terminal from the line of the cursor on."""


_hidden: set[str] = set()
_SHORTEST = 3


def hide(secrets: Iterable[str]) -> None:
    """Show these nowhere, whoever has put them into a message: drivers have their own words."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            _hidden.update((secret, json.dumps(secret)[1:-1]))


def _without_secrets(text: str) -> str:
    for secret in sorted(_hidden, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def painted(text: str, style: str) -> str:
    """Return text that is to be in a colour."""
    return f"{_BEGINS[style]}{text}{_ENDS}"


def above(lines: int) -> str:
    """Return what moves the cursor up by so many lines."""
    return f"\x1b[{lines}A" if lines else ""


def printable(text: str, colored: bool = False) -> str:
    """Return text of one or several lines as it may be written."""
    text = _without_secrets(text) if _hidden else text
    if text.isprintable():
        return text
    return "".join(c if is_harmless(c) or c in "\n\t" else _shown(c, colored) for c in text)


def _shown(character: str, colored: bool) -> str:
    if character in _CODES:
        return _CODES[character] if colored else ""
    return escaped(character)


def json_text(data: Any, indent: int | None = None, unicode: bool = False) -> str:
    """JSON in which all that is not harmless is escaped, as JSON has it."""
    text = json.dumps(data, indent=indent, ensure_ascii=not unicode, allow_nan=False)
    text = _without_secrets(text) if _hidden else text
    return _LITERAL.sub(_in_json, text)


def _in_json(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\n" or is_harmless(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
