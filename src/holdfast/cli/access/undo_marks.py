"""Which rewind or rollback an undo takes back, of those that did not end in the session itself.

A rewind ends in a session of its own, and the one that it was begun from may have gone on since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.access.naming import Names
from holdfast.cli.access.rewind_points import sessions_here
from holdfast.coding_agents.conversations import info_of
from holdfast.coding_agents.keeping import EVENT, REWOUND_FROM
from holdfast.coding_agents.rewinding import APART
from holdfast.session.rollback import ROLLED_BACK_FROM

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo


def is_mark(info: CheckpointInfo) -> bool:
    """Return whether files were put back in their own directory at a checkpoint."""
    goes_back = REWOUND_FROM in info.metadata or ROLLED_BACK_FROM in info.metadata
    return goes_back and APART not in info.metadata


def later_mark(
    client: SyncClient,
    names: Names,
    session: SessionInfo,
    own: CheckpointInfo | None,
    *,
    is_named: bool,
) -> CheckpointInfo | None:
    """Return the newest mark outside of a session that is meant; None if its own one is newer.

    Of a session that is named those are meant that were begun from it; else all in this directory.
    """
    newest = own
    for mark in client.find(agent_id=session.agent_id, tags={"event": EVENT}, limit=None):
        if newest is not None and mark.created_at <= newest.created_at:
            break
        if is_mark(mark) and _is_from(client, mark, session):
            newest = mark
    for each in () if is_named else sessions_here(names):
        if newest is not None and each.head.created_at <= newest.created_at:
            break
        every = client.find(agent_id=each.agent_id, session_id=each.session_id, limit=None)
        found = next(filter(is_mark, every), None)
        if found is not None and (newest is None or found.created_at > newest.created_at):
            newest = found
    return None if newest is own else newest


def _is_from(client: SyncClient, mark: CheckpointInfo, session: SessionInfo) -> bool:
    begun = info_of(client, mark.metadata.get(REWOUND_FROM))
    own = (session.agent_id, session.session_id)
    return begun is not None and (begun.agent_id, begun.session_id) == own
