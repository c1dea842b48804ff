"""What the measurements of bytes have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sizes:
    """Bytes that an agent's steps cost, kept by Holdfast and by the framework's own means."""

    ours: int
    theirs: int
    peer: str
    """What the framework's own means are called."""
    note: str = ""
    """What a reader has to know to compare the two."""


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files below a directory."""
    if path.is_file():
        beside = path.parent.glob(f"{path.name}-*")
        return sum(each.stat().st_size for each in (path, *beside))
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
