"""Directories that belong to a store elsewhere, as those that a fork put its files into.

Which they are is kept in the user's own state, never in the directory: a file there could come with
a repository, and would send all that is saved to whoever wrote it. A link is of a directory, not of
a path: what is made in its place later has none.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import StoreConnectionError

_LARGEST = 2**16


@dataclass(frozen=True)
class Link:
    """A directory, the store it belongs to, and where new sessions of an agent begin there."""

    directory: str
    url: str
    agent_id: str | None = None
    begins_at: str | None = None
    """The checkpoint whose files were put there: the first session of that agent follows it."""


def folder() -> str | None:
    """Return where links are kept; None if there is no such directory, as with most users."""
    where = _folder()
    return where if where is not None and os.path.isdir(where) else None


def _folder() -> str | None:
    """Return where links are to be kept; what is relative would be looked for in any directory."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.expanduser("~/.local/state")
    return os.path.join(state, "holdfast", "linked") if os.path.isabs(state) else None


def of(directory: str | Path) -> Link | None:
    """Return the link of a directory itself; None if it has none."""
    where = folder()
    if where is None:
        return None
    place = os.path.realpath(directory)
    return _read(os.path.join(where, _name(place)), place)


def keep(link: Link) -> None:
    """Link a directory to a store, in the place of another link that it had."""
    from holdfast.system import private_files
    from holdfast.system.atomic_files import write_file

    where = _folder()
    if where is None:
        raise StoreConnectionError(
            f"{link.directory} cannot be linked to its store: the user has no home directory, and "
            "XDG_STATE_HOME does not name one"
        )
    private_files.make_directories(where)
    _check_is_mine(os.lstat(where), where)
    tidy()
    place = os.path.realpath(link.directory)
    about = {
        "directory": place,
        "inode": _identity(place),
        "url": link.url,
        "agent_id": link.agent_id,
        "begins_at": link.begins_at,
    }
    text = json.dumps(about, indent=2) + "\n"
    write_file(os.path.join(where, _name(place)), text.encode("utf-8", "surrogateescape"))


def forget(directory: str | Path) -> bool:
    """Take back the link of a directory; returns whether it had one."""
    where = folder()
    if where is None:
        return False
    try:
        os.unlink(os.path.join(where, _name(os.path.realpath(directory))))
    except FileNotFoundError:
        return False
    return True


def tidy() -> None:
    """Remove the links of directories that are gone, or were made anew."""
    from contextlib import suppress

    where = folder()
    for name in sorted(os.listdir(where)) if where is not None else ():
        file = os.path.join(str(where), name)
        try:
            about = _content(file) if name.endswith(".json") else None
        except StoreConnectionError:  # not ours to judge: who asks for that directory is told
            continue
        place = None if about is None else about.get("directory")
        if isinstance(place, str) and about is not None and about.get("inode") != _identity(place):
            with suppress(FileNotFoundError):  # another process tidies too
                os.unlink(file)


def _read(file: str, place: str) -> Link | None:
    about = _content(file)
    if about is None or about.get("directory") != place or about.get("inode") != _identity(place):
        return None
    match about:
        case {"url": str(url), "agent_id": str() | None as agent, "begins_at": str() | None as at}:
            return Link(place, url, agent, at)
    raise StoreConnectionError(
        f"{file} says to which store {place} belongs, but cannot be read: remove it, or `holdfast "
        "init` in the directory makes a store of its own"
    )


def _content(file: str) -> dict[str, Any] | None:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreConnectionError(
            f"{file} says which directory belongs to which store, but cannot be read: "
            f"{error.strerror}"
        ) from error
    try:
        about = os.fstat(fd)
        _check_is_mine(os.lstat(os.path.dirname(file)), os.path.dirname(file))
        _check_is_mine(about, file)
        text = os.read(fd, _LARGEST) if stat.S_ISREG(about.st_mode) else b""
    finally:
        os.close(fd)
    try:
        found = json.loads(text.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _check_is_mine(about: os.stat_result, path: str) -> None:
    """Refuse what another could have written: it says where all that is saved goes."""
    mine = os.geteuid()
    is_owned = about.st_uid == mine or (
        mine == 0 and str(about.st_uid) == os.environ.get("SUDO_UID")
    )
    if not is_owned or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreConnectionError(
            f"{path} says which directories belong to which store, but others than you may write "
            "it: remove it, or make it yours alone (chmod go-w, chown)"
        )


def _identity(place: str) -> str | None:
    try:
        about = os.stat(place)
    except OSError:
        return None
    return f"{about.st_dev}:{about.st_ino}" if stat.S_ISDIR(about.st_mode) else None


def _name(place: str) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(place)).hexdigest()[:32] + ".json"
