"""A JSON file of the user's: read, and written again in the style it was written in."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from holdfast.errors import CodingAgentError
from holdfast.system.atomic_files import write_file

_COMMENTED = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_INDENT = re.compile(r"\n([ \t]+)\S")


@dataclass(frozen=True)
class JsonStyle:
    """How a JSON text is written."""

    indent: str | None = "  "
    """What a member stands behind; None if all is on one line."""
    is_dense: bool = False
    """Whether nothing stands behind commas and colons."""
    line_end: str = "\n"
    last: str = "\n"
    """What stands behind the end."""

    @classmethod
    def of(cls, text: str) -> JsonStyle:
        """Return the style of a text; the usual one where it shows none."""
        body = text.rstrip()
        if body in ("", "{}"):
            return cls()
        found = _INDENT.search(text.replace("\r\n", "\n"))
        return cls(
            indent=found[1] if found else None,
            is_dense='":' in body and '": ' not in body,
            line_end="\r\n" if "\r\n" in text else "\n",
            last="\n" if text != body else "",
        )

    def write(self, value: Any) -> bytes:
        """Return a value as JSON in this style; what UTF-8 has no bytes for is escaped."""
        comma = "," if self.is_dense or self.indent is not None else ", "
        style: dict[str, Any] = {
            "indent": self.indent,
            "separators": (comma, ":" if self.is_dense else ": "),
        }
        text = json.dumps(value, ensure_ascii=False, **style) + self.last
        try:
            text.encode()
        except UnicodeEncodeError:
            text = json.dumps(value, **style) + self.last
        return text.replace("\n", self.line_end).encode()


def read(path: Path) -> tuple[Any, JsonStyle] | None:
    """Return the value of a file and how it is written; None if there is none.

    What would not come back as it is (comments, a key given twice) is refused.
    """
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CodingAgentError(f"{path} cannot be read: {error}") from error
    try:
        value = json.loads(
            text if text.strip() else "{}",
            object_pairs_hook=_object,
            parse_float=_float,
            parse_constant=_constant,
        )
    except (ValueError, RecursionError) as error:
        raise CodingAgentError(
            f"{path} is not plain JSON ({error}): nothing was changed. Mend it first; comments "
            "have no place in it"
        ) from error
    return value, JsonStyle.of(text)


def has_comments(path: Path) -> bool:
    """Return whether a file would be JSON but for its comments."""
    try:
        json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return read_commented(path) is not None
    return False


def read_commented(path: Path) -> Any:
    """Return the value of a file that may have comments; None if there is none to be read."""
    try:
        return json.loads(_COMMENTED.sub(lambda found: found["text"] or " ", path.read_text()))
    except (OSError, ValueError, RecursionError):
        return None


def write(path: Path, value: Any, style: JsonStyle) -> None:
    """Replace a file as a whole; its mode stays, and a link goes on leading to it."""
    path.parent.mkdir(exist_ok=True)
    write_file(os.path.realpath(path), style.write(value), is_users=True)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is given twice")
    return found


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is beyond all numbers")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
