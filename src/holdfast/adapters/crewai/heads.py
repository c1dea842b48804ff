"""Writing behind the head that a run began at: two that work on one session are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.errors import NotTheHeadError, SessionLostError
from holdfast.runtime.steps import Plan


def follow(
    kept: KeptSessions,
    session_id: str,
    state: Any,
    *,
    name: str,
    after: Kept | None,
    tags: Mapping[str, Any] | None = None,
) -> Plan[Kept]:
    """Keep a state behind a head; SessionLostError if another has written there since."""
    try:
        return (yield from kept.write(session_id, state, name=name, after=after, tags=tags))
    except NotTheHeadError as error:
        raise SessionLostError(
            f"session {session_id!r} was written by another since this run began ({name!r} is not "
            "kept): one works on a session at a time; start again to go on from its head, or use "
            "another session_id"
        ) from error
