"""Where the keys of Strands are kept: all of one session of Strands in one session of Holdfast.

Within it the names of entries do not have the session's id in them: so a fork, which has another
id, holds the same entries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.adapters.strands.errors import HoldfastStorageError

OTHERS = "storage"
"""The session of keys that belong to none."""
_OF_SESSIONS = ("session", "context")
"""What Strands puts before a session's id: for snapshots, and for what was moved out of them."""
_SCOPES, _OTHER = "scopes", "key"
_LATEST = re.compile(r"((?:session/)?scopes/agent/)[^/]+(/snapshots/snapshot_latest\.json)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key is kept."""

    session_id: str
    name: str
    """Of the entry within the session."""

    @classmethod
    def of(cls, key: str) -> Place:
        """Return where a key is kept, as Strands' own storages understand keys."""
        parts = checked_key(key).split("/")
        if parts[0] in _OF_SESSIONS and len(parts) > 2:
            return cls(parts[1], "/".join([parts[0], *parts[2:]]))
        if _SCOPES in parts[2:]:  # a view of the storage with a prefix of its own
            at = parts.index(_SCOPES, 2)
            return cls("/".join(parts[:at]), "/".join(parts[at:]))
        return cls(OTHERS, f"{_OTHER}/{'/'.join(parts)}")

    @classmethod
    def of_latest(cls, session_id: str, agent_id: str) -> Place:
        """Return where the latest snapshot of an agent is kept."""
        return cls(session_id, f"session/scopes/agent/{agent_id}/snapshots/snapshot_latest.json")

    @property
    def key(self) -> str:
        """The key that is kept here."""
        first, _, rest = self.name.partition("/")
        if first == _OTHER:
            return rest
        if first in _OF_SESSIONS:
            return f"{first}/{self.session_id}/{rest}"
        return f"{self.session_id}/{self.name}"


def carried(name: str) -> str | None:
    """Return under which name the latest snapshot of any agent is, if a name is that of one's.

    What comes from another framework does not know by which id the agent goes.
    """
    match = _LATEST.fullmatch(name)
    return None if match is None else f"{match[1]}*{match[2]}"


def is_latest(name: str) -> bool:
    """Return whether an entry is the latest snapshot of an agent."""
    return _LATEST.fullmatch(name) is not None


def checked_key(key: object) -> str:
    """Return a key with one slash where there are several, and none around it."""
    found = _checked("key", key).strip("/")
    if not found:
        raise HoldfastStorageError("Storage key must not be empty")
    return found


def checked_prefix(prefix: object) -> str:
    """Return what keys are to begin with; nothing is all of them."""
    return _checked("prefix", prefix).lstrip("/")


def session_of(prefix: str) -> str | None:
    """Return the session in which all keys with a prefix are; None if they may be in several."""
    parts = prefix.split("/")
    return parts[1] if parts[0] in _OF_SESSIONS and len(parts) > 2 else None


def _checked(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise HoldfastStorageError(f"a storage {what} is a text, not {type(value).__name__}")
    if "\\" in value:
        raise HoldfastStorageError(f"Invalid storage {what} {value!r}: backslashes are not allowed")
    found = re.sub(r"/+", "/", value)
    if ".." in found.split("/"):
        raise HoldfastStorageError(
            f"Invalid storage {what} {value!r}: '..' path segments are not allowed"
        )
    return found
