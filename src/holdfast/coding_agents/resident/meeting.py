"""Where the hooks of a project and its helper meet: a socket in a directory of the user's alone."""

from __future__ import annotations

import os
import stat

from holdfast.coding_agents.hook_project import root_of, store_folder_above

_LONGEST = 100
"""Bytes that the name of a socket may have: 104 on macOS, 108 on Linux, with an end."""
_NAMED = (
    *("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"),
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "SUDO_UID"),
)
_BEGUN = ("HOLDFAST_", "PG", "AWS_", "AZURE_", "GOOGLE_", "REDIS")
"""What the environment says of stores and places: hooks that differ in it have helpers apart."""


_SHARED = "/tmp"  # noqa: S108  (what is made in it is looked at)


class NoHelperError(OSError):
    """There can be no helper here; the event is recorded without one."""


class Meeting:
    """The socket of a project's helper, and the lock of who starts or ends one."""

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self.lock = f"{socket.removesuffix('.sock')}.lock"

    @classmethod
    def of(cls, folder: str, store: str | None) -> Meeting:
        """Return where the helper is met that records what happens in a directory."""
        is_named = store or os.environ.get("HOLDFAST_URL")
        project = folder if is_named else root_of(store_folder_above(folder), folder)
        about = os.stat(project)  # the same path may be another project in a container
        said = [project, f"{about.st_dev}:{about.st_ino}", store or "", *_environment()]
        name = f"{_digest(os.fsencode(chr(0).join(said)))}.sock"
        return cls(os.path.join(_private_folder(len(name)), name))


def _environment() -> list[str]:
    return sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name in _NAMED or name.startswith(_BEGUN)
    )


def _digest(data: bytes) -> str:
    try:
        from _blake2 import blake2b  # hashlib takes longer to import than all of this
    except ImportError:
        from hashlib import blake2b
    return str(blake2b(data, digest_size=12).hexdigest())


def _private_folder(name_length: int) -> str:
    """Return a directory that only this user can reach, made if need be."""
    mine = os.geteuid()
    below = [os.environ[name] for name in ("XDG_RUNTIME_DIR", "TMPDIR") if os.environ.get(name)]
    candidates = [f"{place}/holdfast-{mine}" for place in (*below, _SHARED)]
    problem = "there is no directory for its socket"
    for folder in candidates:
        if not folder.startswith("/") or len(os.fsencode(folder)) + name_length + 1 > _LONGEST:
            continue
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError:
            continue
        about = os.lstat(folder)
        if stat.S_ISDIR(about.st_mode) and about.st_uid == mine and not about.st_mode & 0o077:
            return folder
        problem = f"{folder} is not a directory of yours alone: remove it"
    raise NoHelperError(problem)
