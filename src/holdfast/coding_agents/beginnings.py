"""Where a new session begins in a directory that a fork put its files into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.stores import linked
from holdfast.stores.base import Query

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo


def beginning_in(client: SyncClient, directory: str, agent_id: str) -> CheckpointInfo | None:
    """Return the checkpoint that the first session of an agent in a directory follows, if one.

    It is the one that was forked into it, until something follows that.
    """
    link = linked.of(directory)
    if link is None or link.begins_at is None or link.agent_id != agent_id:
        return None
    if client.find(parent_id=link.begins_at, limit=1):
        return None
    found = client.store.query(Query(ids=[link.begins_at]))
    return found[0] if found else None
