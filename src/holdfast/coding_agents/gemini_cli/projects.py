"""Where Gemini CLI keeps the chats of a directory: it gives each project a short name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from holdfast.errors import TranscriptError

_MARKER = ".project_root"
_SHORT = re.compile("[a-z0-9-]+")
_MOST_NAMES = 1000


def home() -> Path:
    """Return where Gemini CLI keeps what is the user's."""
    return Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini"


def hash_of(folder: Path) -> str:
    """Return what a chat calls the project of a directory."""
    return hashlib.sha256(_root(folder).encode("utf-8", "surrogateescape")).hexdigest()


def folder_of(folder: Path) -> Path:
    """Return what Gemini CLI keeps of a directory; named as it would if it has never seen it."""
    root, base = _root(folder), home()
    taken = _registered(base)
    if (name := taken.get(root)) and all(
        _owner(each) in (None, root) for each in _both(base, name)
    ):
        return base / "tmp" / name
    for kind in ("tmp", "history"):
        for marker in sorted((base / kind).glob(f"*/{_MARKER}")):
            if _owner(marker.parent) == root:
                return base / "tmp" / marker.parent.name
    for name in _names(os.path.basename(root)):
        if name not in taken.values() and _claim(base, name, root):
            return base / "tmp" / name
    raise TranscriptError(f"Gemini CLI has no name left for {root} in {base / 'tmp'}")


def _root(folder: Path) -> str:
    return os.path.realpath(folder)


def _both(base: Path, name: str) -> tuple[Path, Path]:
    return base / "tmp" / name, base / "history" / name


def _registered(base: Path) -> dict[str, str]:
    """Return the names of projects; none if the list is not as known: the program begins anew."""
    try:
        data = json.loads((base / "projects.json").read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    projects = data.get("projects") if isinstance(data, Mapping) else None
    if not isinstance(projects, Mapping) or not all(
        isinstance(name, str) and _SHORT.fullmatch(name) for name in projects.values()
    ):
        return {}
    return dict(projects)


def _owner(folder: Path) -> str | None:
    """Return the project that a folder is marked as being of; None if it is not marked."""
    try:
        return os.path.normpath((folder / _MARKER).read_text().strip())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return ""


def _names(text: str) -> Iterator[str]:
    short = re.sub("-+", "-", re.sub("[^a-z0-9]", "-", text.lower()))
    short = re.sub("^-|-$", "", short) or "project"
    for number in count():
        if number == _MOST_NAMES:
            return
        yield f"{short}-{number}" if number else short


def _claim(base: Path, name: str, root: str) -> bool:
    """Mark a name as a project's; return whether it is."""
    if any(_owner(each) not in (None, root) for each in _both(base, name)):
        return False
    folder = base / "tmp" / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with open(folder / _MARKER, "x") as marker:
            marker.write(root)
    except FileExistsError:  # another was faster
        return _owner(folder) == root
    return True
