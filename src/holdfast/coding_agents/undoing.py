"""The way back from a rewind: the files as they were, and the session that was left.

Going back marks its end as a rewind does, so that an undo can be undone too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.client.with_files import put_with_files, snapshot_of
from holdfast.coding_agents.conversations import Conversation, info_of, state_of
from holdfast.coding_agents.keeping import EVENT, REWOUND_FROM, keep
from holdfast.coding_agents.rewinding import written_at
from holdfast.coding_agents.transcript import Cut
from holdfast.errors import CodingAgentError
from holdfast.system.crash_points import reach

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Restored, Snapshot, Workspace


@dataclass(frozen=True, kw_only=True)
class WayBack:
    """What undoing a rewind would do."""

    session: SessionInfo
    """The session that is left."""
    target: CheckpointInfo
    """From which the rewind was begun, in the session that goes on."""
    conversation: Conversation | None
    """None if only files were put back, in the session as it is."""
    snapshot: Snapshot
    files: Restored

    @property
    def cut(self) -> Cut | None:
        """Return the whole conversation."""
        at = self.conversation
        return None if at is None else Cut(entries=list(at.point.entries))

    @property
    def is_gone(self) -> bool:
        """Whether the program has removed the conversation: then it is written as a new one.

        Under its old id a program may know of it, and where it was.
        """
        at = self.conversation
        return at is not None and bool(at.point.entries) and not at.is_there()


@dataclass(frozen=True, kw_only=True)
class WentBack:
    """What undoing a rewind did."""

    session_id: str
    """The session that goes on."""
    checkpoint_id: str
    path: Path | None
    """The file of its conversation, if that was written anew."""
    resume: list[str] | None
    """The command that goes on; None where the session is the same."""


def last_rewind(chain: Sequence[CheckpointInfo]) -> CheckpointInfo | None:
    """Return the newest checkpoint of a chain, the newest first, at which a rewind ended."""
    return next((info for info in chain if REWOUND_FROM in info.metadata), None)


def look_back(
    client: SyncClient, session: SessionInfo, mark: CheckpointInfo, workspace: Workspace
) -> WayBack:
    """Return what undoing a rewind would do. Nothing is changed."""
    target = info_of(client, mark.metadata[REWOUND_FROM])
    snapshot = None if target is None else snapshot_of(client, target)
    if target is None or snapshot is None:
        raise CodingAgentError(
            f"the rewind of session {mark.session_id!r} cannot be undone: the checkpoint from "
            "which it was begun was removed"
        )
    is_same = (target.agent_id, target.session_id) == (session.agent_id, session.session_id)
    return WayBack(
        session=session,
        target=target,
        conversation=None if is_same else Conversation.at(client, target),
        snapshot=snapshot,
        files=workspace.restore(snapshot, dry_run=True),
    )


def carry_back(client: SyncClient, back: WayBack, workspace: Workspace, project: Path) -> WentBack:
    """Go back to the session that was left."""
    before, _ = keep(client, workspace, back.session, "before undo", back.snapshot)
    reach("rewind:kept")
    conversation, cut = back.conversation, back.cut
    session_id, state, path = back.target.session_id, state_of(client, back.target), None
    if conversation is not None and cut is not None and back.is_gone:
        session_id, path = conversation.write_as_new(cut, project)
        state["transcript"] = written_at(path)
    reach("rewind:written")
    workspace.restore(back.snapshot)
    reach("rewind:restored")
    checkpoint_id = put_with_files(
        client,
        workspace,
        back.snapshot,
        agent_id=back.target.agent_id,
        session_id=session_id,
        name="rewind undone",
        state=state,
        tags={"event": EVENT, "program": state.get("program"), REWOUND_FROM: before},
        parent=back.target,
    )
    resume = None
    if conversation is not None and cut is not None:
        resume = conversation.transcript.resume(session_id, cut)
    return WentBack(session_id=session_id, checkpoint_id=checkpoint_id, path=path, resume=resume)
