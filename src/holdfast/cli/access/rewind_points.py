"""Which session of a coding agent goes back, and the points to which it may."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.access.naming import Names
from holdfast.cli.exits import NotFound, Refused, UsageError
from holdfast.coding_agents.recorded import main_session_of, program_of
from holdfast.stores.base import Query
from holdfast.system.terminal_text import clean
from holdfast.workspace import registry
from holdfast.workspace.local_state import directory_of, own_name

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo

Own = tuple[str, str]


def meant(
    client: SyncClient, checkpoint: str | None, session: str | None
) -> tuple[SessionInfo, CheckpointInfo | None]:
    """Return the session that goes back, and the checkpoint if one is named.

    The newest session goes back to all that leads to it; to any other checkpoint goes its own.
    """
    names = Names(client)
    found = _session(names, session)
    if checkpoint is None:
        return found, None
    on_way = points(client, found)
    target = _named(names, checkpoint, found, on_way)
    if target.checkpoint_id in {info.checkpoint_id for info in on_way}:
        return found, target
    if session is None:
        _check_is_coding(target)
        return main_session(names, target), target
    raise UsageError(
        f"{checkpoint} is a checkpoint of session {target.session_id!r}: session "
        f"{found.session_id!r} was never there; leave out --session"
    )


def _named(
    names: Names, given: str, session: SessionInfo, on_way: Sequence[CheckpointInfo]
) -> CheckpointInfo:
    """Return the checkpoint that is meant: by what it is called also one before a fork."""
    try:
        return names.checkpoint(given, f"{session.agent_id}/{session.session_id}")
    except NotFound:
        called = next((info for info in on_way if info.step_name == given), None)
        if called is None:
            raise
        return called


def current(names: Names) -> SessionInfo | None:
    """Return the newest session of a coding agent, one that worked in this directory if any did."""
    for sessions in (sessions_here(names), names.sessions):
        newest = next((each for each in sessions if program_of(each.head) is not None), None)
        if newest is not None:
            return main_session(names, newest.head)
    return None


def sessions_here(names: Names) -> list[SessionInfo]:
    """Return the sessions that worked in this directory, the one touched last first."""
    known = set(_known_here(names))
    return [
        each for each in names.sessions if registry.digest(each.agent_id, each.session_id) in known
    ]


def _known_here(names: Names) -> Sequence[bytes]:
    """Return the sessions that are known to have worked in this directory, or in one above it."""
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        place = directory_of(names.store, own_name(os.fsencode(folder)))
        known = None if place is None else registry.read(place)
        if known is not None and known.root == os.fsencode(folder):
            return known.sessions
    return ()


def _session(names: Names, given: str | None) -> SessionInfo:
    if given is None:
        newest = current(names)
        if newest is None:
            names.session(None)  # which says so if there is none at all
            raise Refused(
                "no session here was recorded of a coding agent: `holdfast hook install` has one "
                "recorded, and `holdfast rollback` takes back any other session"
            )
        return newest
    found = names.session(given)
    _check_is_coding(found.head)
    return main_session(names, found.head)


def _check_is_coding(info: CheckpointInfo) -> None:
    if program_of(info) is None:
        raise Refused(
            f"session {clean(info.session_id)!r} of {clean(info.agent_id)!r} was not recorded of a "
            f"coding agent: `holdfast rollback {info.checkpoint_id}` takes it back"
        )


def main_session(names: Names, info: CheckpointInfo) -> SessionInfo:
    """Return the session of a conversation, for any of its sessions."""
    wanted = [(info.agent_id, main_session_of(info)), (info.agent_id, info.session_id)]
    known = {(each.agent_id, each.session_id): each for each in names.sessions}
    return next(known[own] for own in wanted if own in known)


def points(client: SyncClient, session: SessionInfo) -> list[CheckpointInfo]:
    """Return what leads to the head of a session and what its subagents did, newest first."""
    chain = [session.head, *client.ancestors(session.head.checkpoint_id)]
    mains = {(each.agent_id, each.session_id) for each in chain}
    beside = [each.head for each in client.sessions() if _is_beside(each.head, mains)]
    found = {each.checkpoint_id: each for each in chain}
    on_way = set(found)
    for head in beside:
        own = client.store.query(Query(agent_id=head.agent_id, session_id=head.session_id))
        # What a subagent did on a way that was left is not on the way to this head.
        if own and own[-1].parent_id in on_way:
            found.update((each.checkpoint_id, each) for each in own)
    order = {each: at for at, each in enumerate(found)}
    return sorted(
        found.values(), key=lambda each: (each.created_at, -order[each.checkpoint_id]), reverse=True
    )


def _is_beside(head: CheckpointInfo, mains: set[Own]) -> bool:
    own = (head.agent_id, main_session_of(head))
    return own[1] != head.session_id and own in mains
