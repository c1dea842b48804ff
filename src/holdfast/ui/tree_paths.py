"""Paths of files as the page gives and takes them.

A name may be any bytes, and an address or a text of JSON has room for characters alone. So a path
is given twice: as people read it, and as a ``ref`` that leads back to the very same file; in that
bytes that are no UTF-8 are written ``%E9``, and a percent sign ``%25``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from holdfast.cli.exits import UsageError
from holdfast.core.short_repr import brief
from holdfast.workspace.entries import check_name

if TYPE_CHECKING:
    from holdfast.ui.routes import Parameters

_LONGEST = 8192


def shown(path: bytes) -> str:
    """Return a path for people."""
    return path.decode("utf-8", "replace")


def ref_of(path: bytes) -> str:
    """Return what leads back to a path; for nearly all of them it is the path itself.

    >>> from holdfast.ui.tree_paths import ref_of
    >>> ref_of(b"src/main.py"), ref_of(b"caf\\xe9 100%")
    ('src/main.py', 'caf%E9 100%25')
    """
    text = path.decode("utf-8", "surrogateescape").replace("%", "%25")
    return "".join(f"%{ord(each) - 0xDC00:X}" if _is_byte(each) else each for each in text)


def _is_byte(letter: str) -> bool:
    return "\udc80" <= letter <= "\udcff"


def place_of(given: Parameters, name: str = "path", ref: str = "ref") -> bytes | None:
    """Return the path that a request names, by either; None if it names none."""
    exactly = given.text(ref)
    said = given.text(name) if exactly is None else exactly
    if said is None:
        return None
    try:
        path = said.encode() if exactly is None else unquote_to_bytes(exactly)
        if len(path) > _LONGEST:
            raise ValueError("it is too long")
        for each in path.split(b"/"):
            check_name(each)
    except ValueError as error:
        raise UsageError(f"{brief(said)} is no path of a file: {error}") from None
    return path


def needed_place(given: Parameters) -> bytes:
    """Return the path that a request has to name."""
    path = place_of(given)
    if path is None:
        raise UsageError("path has to be given, or ref")
    return path
