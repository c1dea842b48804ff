"""Which project an event is about; read with little, as every hook comes by here."""

from __future__ import annotations

import os

from holdfast.coding_agents.event_paths import at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.coding_agents.hook_options import HookOptions

FOLDER = ".holdfast"
_SAYS_PROJECT = ("claude-code", "gemini-cli", "cursor", "generic")
"""Programs that set CLAUDE_PROJECT_DIR; in others it is that of a program which runs them."""
CWD = {"cursor": "workspace_roots.0|cwd"}
"""Where an event says its directory, if not in ``cwd``; as the programs themselves say."""
_LONGEST = 200


def folder_of(options: HookOptions, event: bytes) -> str:
    """Return the directory that an event is about."""
    folder = options.directory
    if not folder and options.program in _SAYS_PROJECT:
        folder = os.environ.get("CLAUDE_PROJECT_DIR")
    folder = folder or _told_in(options, event) or "."
    found = _real(folder)
    if found is None:
        raise _wrong(f"{folder[:_LONGEST]!r} is no directory")
    if is_everything(found) and not options.directory:
        raise _wrong(
            f"{found} is no project, and is not kept as a whole: start the agent in the directory "
            "of the project, or name that with holdfast hook --directory DIR"
        )
    return found


def _real(folder: str) -> str | None:
    try:
        found = os.path.realpath(folder)
        return found if os.path.isdir(found) else None
    except (OSError, ValueError):  # too long, or it holds a NUL
        return None


def is_everything(folder: str) -> bool:
    """Return whether a directory is a home or a disk, and so nobody's project."""
    return folder in (os.path.realpath(os.path.expanduser("~")), "/")


def data_of(event: bytes) -> object:
    """Return what an event says."""
    import json

    try:
        return json.loads(event)
    except (ValueError, RecursionError) as error:
        raise _wrong(f"a hook is told JSON on its standard input ({error})") from error


def _told_in(options: HookOptions, event: bytes) -> str | None:
    data = data_of(event)
    path = CWD.get(options.program, "cwd")
    for each in options.maps:
        if each.startswith("cwd="):
            path = each[4:]
    found = at(data, path)
    return found if isinstance(found, str) else None


def store_folder_above(folder: str) -> str | None:
    """Return the nearest directory upwards that holds a store; None if there is none."""
    while True:
        if os.path.isdir(os.path.join(folder, FOLDER)):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def root_of(above: str | None, folder: str) -> str:
    """Return what is captured: the project that has the store, never a home directory or a disk.

    An agent may have gone into a directory below, and the session is about all of the project.
    """
    if above is None or is_everything(above):
        return folder
    return above


def _wrong(text: str) -> Exception:
    from holdfast.errors import CodingAgentError

    return CodingAgentError(text)
