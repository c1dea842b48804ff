"""What the checkpoints of a wrapped program are called."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from holdfast.coding_agents.masking import HIDDEN, masked_text

if TYPE_CHECKING:
    from holdfast.workspace import TreeDiff

_LONGEST = 60
_NAMED = 2
_SECRET = re.compile(
    r"(?P<name>--?[\w-]*(?:key|token|secret|password))(?P<value>=.*)?", re.IGNORECASE | re.DOTALL
)


def shown(command: Sequence[str]) -> str:
    """Return a command on one line, its program without the path, and nothing that is secret.

    >>> from holdfast.coding_agents.wrapped_names import shown
    >>> shown(["/usr/bin/aider", "--api-key", "hunter2", "add tests"])
    "aider --api-key *** 'add tests'"
    """
    words = [PurePath(command[0]).name or command[0]]
    hides_next = False
    for word in command[1:]:
        secret = _SECRET.fullmatch(word)
        if hides_next and not word.startswith("-"):
            words.append(HIDDEN)
        elif secret is not None and secret["value"]:
            words.append(f"{secret['name']}={HIDDEN}")
        else:
            words.append(masked_text(word))
        hides_next = secret is not None and not secret["value"]
    return " ".join(word if word.endswith(HIDDEN) else shlex.quote(word) for word in words)


def before(command: str) -> str:
    """Return what the checkpoint before a program is called."""
    return _short(f"before: {command}")


def late(command: str) -> str:
    """Return what the first checkpoint is called where there is none from before."""
    return _short(f"during: {command}")


def after(command: str, code: int, how: str) -> str:
    """Return what the checkpoint after a program is called; a good end is not worth a word."""
    return _short(f"after: {command}", "" if code == 0 else f" ({how})")


def resting(changes: TreeDiff) -> str:
    """Return what a checkpoint is called whose files have come to rest."""
    paths = [
        *(*changes.added, *changes.modified, *changes.removed),
        *(new for _, new in changes.renamed),
        *changes.mode,
    ]
    return _short(_listed(paths, "came to rest") if paths else _listed(changes.touched, "touched"))


def _listed(paths: Sequence[str], what: str) -> str:
    number = f"{len(paths):,} file{'' if len(paths) == 1 else 's'}"
    names = ", ".join(paths[:_NAMED])
    rest = len(paths) - _NAMED
    return f"{number} {what}: {names}" + (f" and {rest:,} more" if rest > 0 else "")


def _short(text: str, end: str = "") -> str:
    text, room = " ".join(text.split()), _LONGEST - len(end)
    return (text if len(text) <= room else text[: room - 1] + "…") + end
