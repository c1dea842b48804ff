"""Reads the files of JSON lines in which programs keep conversations: only what is new.

An event names the file, so it is looked at with care: never waited for, and only so far.
"""

from __future__ import annotations

import json
import os
import stat
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.coding_agents.masking import masked, masked_text, may_hold_secrets
from holdfast.errors import TranscriptError
from holdfast.system.atomic_files import Draft, remove_drafts
from holdfast.system.directories import sync_directory

_LARGEST = 256 * 2**20
"""Of a file that is longer only the bytes are told."""
_REMEMBERED = 16
_DEEPEST = 200
"""More brackets than that in a line, and it is kept as text: no conversation is nested so."""


@dataclass
class _Known:
    """A file as far as it was read."""

    file: tuple[int, int]
    offset: int = 0
    entries: list[Any] = field(default_factory=list)


class JsonLines:
    """Files of JSON lines, of which each line is read and masked once."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def read(self, path: str) -> list[Any] | None:
        """Return the entries of a file, secrets hidden; None if it cannot be read.

        A line that is not JSON is kept as its text, and one that is still being written left out.
        """
        with _opened(path) as file:
            status = None if file is None else os.fstat(file)
            if file is None or status is None or status.st_size > _LARGEST:
                return None
            known = self._known.pop(path, None)
            its = (status.st_dev, status.st_ino)
            if known is None or known.file != its or known.offset > status.st_size:
                known = _Known(its)
            for line in _lines(file, known.offset, status.st_size):
                known.offset += len(line)
                known.entries.append(_entry(line))
        self._known[path] = known
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return list(known.entries)


def write_new(path: Path, entries: Iterable[Any]) -> None:
    """Write a file of JSON lines, whole or not at all; one that is there is left as it is."""
    folder = str(path.parent)
    remove_drafts(folder)
    with Draft(folder) as draft:
        draft.write(b"".join(map(_line, entries)))
        draft.sync()
        try:
            draft.link(str(path))
        except FileExistsError as error:
            raise TranscriptError(f"{path} is there already, and is left as it is") from error
    sync_directory(folder)


def _line(entry: Any) -> bytes:
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a character, which JSON can only name
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def position(transcript: str) -> dict[str, Any]:
    """Return how far a transcript has come: the file, its bytes and its lines.

    One that is not there yet, lies on another machine or is no file has no position.
    """
    said: dict[str, Any] = {"path": transcript, "bytes": None, "lines": None}
    with _opened(transcript) as file:
        if file is None:
            return said
        size = said["bytes"] = os.fstat(file).st_size
        if size <= _LARGEST:
            said["lines"] = sum(part.count(b"\n") for part in _parts(file, 0, size))
    return said


@contextmanager
def _opened(path: str) -> Iterator[int | None]:
    """Open a regular file; None if it is not there or anything else."""
    try:
        # A fifo would be waited for, and a terminal would become ours.
        how = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        file = os.open(Path(path).expanduser(), how)
    except (OSError, ValueError, RuntimeError):  # a NUL in the name; the home of nobody
        yield None
        return
    try:
        yield file if stat.S_ISREG(os.fstat(file).st_mode) else None
    finally:
        os.close(file)


def _parts(file: int, begin: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a part of a file: it may grow, or shrink, while it is read."""
    while begin < end and (part := os.pread(file, min(end - begin, 2**20), begin)):
        begin += len(part)
        yield part


def _lines(file: int, begin: int, end: int) -> Iterator[bytes]:
    rest = b""
    for part in _parts(file, begin, end):
        *whole, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in whole)


def _entry(line: bytes) -> Any:
    text = line.decode("utf-8", "replace").strip()
    # Of what is escaped letters and strokes may be part of a secret.
    may_hold = may_hold_secrets(text) or "\\u" in text or "\\/" in text
    if text.count("{") + text.count("[") <= _DEEPEST or _depth(text) <= _DEEPEST:
        try:
            entry = json.loads(text)
        except ValueError:
            pass
        else:
            return masked(entry) if may_hold else entry
    return masked_text(text)


def _depth(text: str) -> int:
    """Return how deep brackets are nested, at most: those in strings count too."""
    depth = deepest = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest
