"""Keeps files and conversation as they are now, before a rewind or its undoing changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.client.with_files import put_with_files, snapshot_of
from holdfast.coding_agents.conversations import Conversation, state_of
from holdfast.coding_agents.told import Moment
from holdfast.errors import TranscriptError

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Snapshot, Workspace

EVENT = "Rewind"
"""The event of checkpoints that rewinding makes."""
REWOUND_FROM = "rewound_from"
"""The tag of a checkpoint at which a session goes on after a rewind: where that was begun."""
_OF_THE_END = ("last_message", "turn_id", "prompt_id")


def keep(
    client: SyncClient,
    workspace: Workspace,
    session: SessionInfo,
    name: str,
    before: Snapshot | None,
) -> tuple[str, Snapshot]:
    """Keep files and conversation as they are now as a checkpoint of a session, unless they are.

    What putting back the files ``before`` which this is done will replace is kept, ignored or not.
    """
    with workspace._local.mutex, workspace._alone():
        heads = client.find(agent_id=session.agent_id, session_id=session.session_id, limit=1)
        head = heads[0] if heads else session.head
        # Before the files: what ends in between is never told as done without what it did.
        state = _state_now(client, head)
        snapshot = workspace.snapshot_for_checkpoint(before=before)
        if head.metadata.get("event") == EVENT and REWOUND_FROM not in head.metadata:
            known = snapshot_of(client, head)
            if known is not None and known.tree_id == snapshot.tree_id:
                return head.checkpoint_id, known
        checkpoint_id = put_with_files(
            client,
            workspace,
            snapshot,
            agent_id=session.agent_id,
            session_id=session.session_id,
            name=name,
            state=state,
            tags={"event": EVENT, "program": state["program"]},
            parent=head,
        )
    return checkpoint_id, snapshot


def _state_now(client: SyncClient, head: CheckpointInfo) -> dict[str, Any]:
    """Return the state of a checkpoint that is made now, after all that was said."""
    before = state_of(client, head)
    state: dict[str, Any] = {
        "program": before.get("program", head.agent_id),
        "event": EVENT,
        "moment": str(Moment.END),
    }
    for name in ("transcript", "conversation", "cwd", *_OF_THE_END):
        if name in before:
            state[name] = before[name]
    try:
        known = Conversation.at(client, head)
    except TranscriptError:  # whose conversation is not known has its files alone
        return state
    if entries := known.now():
        state["conversation"] = known.kept(entries)
    return state
