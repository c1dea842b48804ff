"""Which session is worked on: that of the coding agent that works in this workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.mcp.caller import Caller
from holdfast.client.with_files import snapshot_of
from holdfast.coding_agents.recorded import main_session_of, program_of
from holdfast.stores.base import Query
from holdfast.workspace import registry

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Workspace

_LOOKED_INTO = 20
"""So many sessions are looked into that this machine does not know to have worked here."""


def current_session(client: SyncClient, workspace: Workspace, caller: Caller) -> SessionInfo | None:
    """Return the session of who calls, else the newest that a coding agent has here.

    It is asked for anew at each call: an agent begins another session, and goes back to an older.
    """
    here = _sessions_here(client, workspace, caller.program)
    if not here:
        return None
    named = {each.session_id: each for each in here}
    if caller.session in named:
        return named[caller.session]
    first = named.get(caller.first_session or "")
    newest = here[0]
    if first is None or first is newest or _began_after(client, newest, first):
        return newest
    return first


def _began_after(client: SyncClient, later: SessionInfo, first: SessionInfo) -> bool:
    """Return whether a session began when another was heard of for the last time: took its place.

    Two that go on side by side are of two programs, and each has its own.
    """
    until = first.head.created_at
    query = Query(agent_id=later.agent_id, session_id=later.session_id, until=until, limit=1)
    return not client.store.query(query)


def _sessions_here(
    client: SyncClient, workspace: Workspace, program: str | None
) -> list[SessionInfo]:
    """Return the sessions of coding agents that have files of this workspace, the newest first."""
    place = registry.read(workspace._local.directory)
    known = frozenset() if place is None else frozenset(place.sessions)
    found: list[SessionInfo] = []
    looked_into = 0
    for session in client.store.heads():
        if not _is_of(session, program):
            continue
        if registry.digest(session.agent_id, session.session_id) not in known:
            if looked_into == _LOOKED_INTO:
                continue
            looked_into += 1
            files = snapshot_of(client, session.head)
            if files is None or files.workspace != workspace.name:
                continue
        found.append(session)
    return found


def may_be_of_subagent(client: SyncClient, session: SessionInfo) -> bool:
    """Return whether a subagent of a session was heard of last: then it may be who calls."""
    return any(
        each.agent_id == session.agent_id
        and each.session_id != session.session_id == main_session_of(each.head)
        and each.head.created_at > session.head.created_at
        for each in client.store.heads()
    )


def _is_of(session: SessionInfo, program: str | None) -> bool:
    """Return whether a coding agent works in a session: itself, and no subagent of it."""
    head = session.head
    its = program_of(head)
    is_only_forked = session.checkpoints == 1 and head.parent_id is not None
    if its is None or is_only_forked or main_session_of(head) != session.session_id:
        return False
    return program is None or its.name == program
