"""Rewinding: files and conversation back to a checkpoint, together.

The order is such that a kill at any instant loses nothing and the same can be done again: the files
as they are become a checkpoint, the conversation is written as a new session of the program, that
session is forked at the target here, and only then files are put back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.client.with_files import put_with_files, snapshot_of
from holdfast.coding_agents.conversations import Conversation, info_of, state_of
from holdfast.coding_agents.keeping import EVENT, REWOUND_FROM, keep
from holdfast.coding_agents.recorded import main_session_of
from holdfast.coding_agents.told import Moment
from holdfast.errors import CodingAgentError, TranscriptError
from holdfast.system.crash_points import reach

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.coding_agents.transcript import Cut
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Restored, Snapshot, Workspace

APART = "rewound_apart"
"""The tag of one whose files are in a directory of their own: nothing was put back."""
_BEFORE = "before rewind"


@dataclass(frozen=True, kw_only=True)
class Rewind:
    """What going back to a checkpoint would do."""

    session: SessionInfo
    """The session that is left, the main one of the conversation."""
    target: CheckpointInfo
    """Whose files they are."""
    conversation: Conversation | None
    """The one that is cut; None if it is left alone. That of a subagent's parent is cut before it
    was called."""
    cut: Cut | None
    snapshot: Snapshot | None
    """The files that are put back; None if they are left alone."""
    files: Restored | None
    """What that would do; None where they go into a directory of their own."""
    to: Path | None

    @property
    def prompt(self) -> str | None:
        """What the user had said at that point, to be worded anew."""
        at = None if self.conversation is None else self.conversation.point
        return at.prompt if at is not None and at.moment is Moment.PROMPT else None


@dataclass(frozen=True, kw_only=True)
class Rewound:
    """What a rewind did."""

    session_id: str
    checkpoint_id: str
    before: str
    """The checkpoint from which it was begun."""
    path: Path | None
    """The file of the conversation; None if nothing had been said yet, or it has none."""
    resume: list[str] | None
    """The command that goes on; None where the session is the same."""
    files: Restored | None


def look(
    client: SyncClient,
    session: SessionInfo,
    target: CheckpointInfo,
    workspace: Workspace | None,
    *,
    with_files: bool = True,
    with_conversation: bool = True,
    to: Path | None = None,
) -> Rewind:
    """Return what going back would do; an error if it cannot be done. Nothing is changed."""
    snapshot = snapshot_of(client, target) if with_files else None
    if with_files and snapshot is None:
        raise CodingAgentError(f"checkpoint {target.checkpoint_id} was saved without files")
    conversation = cut = None
    if with_conversation:
        conversation = Conversation.at(client, _spoken_at(client, target))
        cut = conversation.cut(client)
    files = None
    if snapshot is not None and to is None and workspace is not None:
        files = workspace.restore(snapshot, dry_run=True)
    return Rewind(
        session=session,
        target=target,
        conversation=conversation,
        cut=cut,
        snapshot=snapshot,
        files=files,
        to=to,
    )


def _spoken_at(client: SyncClient, target: CheckpointInfo) -> CheckpointInfo:
    """Return the checkpoint at which the conversation is cut: of a subagent, before its call."""
    main = main_session_of(target)
    if main == target.session_id:
        return target
    for info in client.ancestors(target.checkpoint_id):
        if (info.agent_id, info.session_id) == (target.agent_id, main):
            return info
    raise TranscriptError(
        f"where the subagent of session {target.session_id!r} was called is not known: no "
        f"checkpoint of session {main!r} leads to it"
    )


def project_of(client: SyncClient, session: SessionInfo, root: Path) -> Path:
    """Return the directory in which the program was started, below the root of the workspace.

    What is stored never leads out of the workspace, and never to what is not there.
    """
    first = client.timeline(session.agent_id, main_session_of(session.head), limit=None)[-1:]
    cwd = state_of(client, first[0]).get("cwd") if first else None
    if not isinstance(cwd, str) or "\0" in cwd:
        return root
    found = Path(os.path.realpath(cwd))
    return found if found.is_relative_to(root) and found.is_dir() else root


def carry_out(client: SyncClient, rewind: Rewind, workspace: Workspace, project: Path) -> Rewound:
    """Go back: a new session of the program, begun at the target, and the files put back.

    ``workspace`` is where the files are, or with ``to`` the new directory, which has them already;
    ``project`` where in it the program goes on.
    """
    conversation, cut = rewind.conversation, rewind.cut
    if conversation is None or cut is None:
        raise CodingAgentError("without its conversation a session is rolled back, not rewound")
    done = _done_before(client, rewind, workspace, cut)
    if done is None:
        done = _begin(client, rewind, conversation, cut, workspace, project)
    files = None
    if rewind.snapshot is not None and rewind.to is None:
        files = workspace.restore(rewind.snapshot)
    reach("rewind:restored")
    return Rewound(
        session_id=done.session_id,
        checkpoint_id=done.checkpoint_id,
        before=str(done.tags[REWOUND_FROM]),
        path=done.path,
        resume=conversation.transcript.resume(done.session_id, cut),
        files=files,
    )


def put_files_back(client: SyncClient, rewind: Rewind, workspace: Workspace) -> Rewound:
    """Put the files of a checkpoint back in the session as it is: the conversation goes on."""
    if rewind.snapshot is None:
        raise CodingAgentError(f"checkpoint {rewind.target.checkpoint_id} was saved without files")
    session = rewind.session
    before, _ = keep(client, workspace, session, _BEFORE, rewind.snapshot)
    reach("rewind:kept")
    files = workspace.restore(rewind.snapshot)
    reach("rewind:restored")
    head = info_of(client, before) or session.head
    checkpoint_id = put_with_files(
        client,
        workspace,
        rewind.snapshot,
        agent_id=session.agent_id,
        session_id=session.session_id,
        name=f"files of {rewind.target.step_name or rewind.target.checkpoint_id[:13]}",
        state=state_of(client, head),
        tags={"event": EVENT, "program": head.metadata["program"], REWOUND_FROM: before},
        parent=head,
    )
    return Rewound(
        session_id=session.session_id,
        checkpoint_id=checkpoint_id,
        before=before,
        path=None,
        resume=None,
        files=files,
    )


@dataclass(frozen=True)
class _Begun:
    """The session that goes on."""

    session_id: str
    checkpoint_id: str
    path: Path | None
    tags: Mapping[str, Any]


def _begin(
    client: SyncClient,
    rewind: Rewind,
    conversation: Conversation,
    cut: Cut,
    workspace: Workspace,
    project: Path,
) -> _Begun:
    head = rewind.session.head
    before, now = head.checkpoint_id, None
    if rewind.to is None:
        before, now = keep(client, workspace, rewind.session, _BEFORE, rewind.snapshot)
    reach("rewind:kept")
    new_id, path = conversation.write_as_new(cut, project)
    reach("rewind:written")
    state = {
        **conversation.state,
        "conversation": conversation.kept(cut.entries),
        "transcript": written_at(path),
        "cwd": str(project),
    }
    tags = {"event": EVENT, "program": conversation.state.get("program", head.agent_id)}
    tags[REWOUND_FROM] = before
    if rewind.to is not None:
        tags[APART] = True
    target = rewind.target
    snapshot = rewind.snapshot if rewind.to is None else workspace.snapshot_for_checkpoint()
    checkpoint_id = put_with_files(
        client,
        workspace,
        snapshot or now or workspace.snapshot_for_checkpoint(),
        agent_id=target.agent_id,
        session_id=new_id,
        name=f"rewound to {target.step_name or target.checkpoint_id[:13]}",
        state=state,
        tags=tags,
        parent=target,
    )
    reach("rewind:forked")
    return _Begun(new_id, checkpoint_id, path, tags)


def written_at(path: Path | None) -> dict[str, Any]:
    """Return what a state says of a conversation that was just written."""
    return {"path": None if path is None else str(path), "bytes": None, "lines": None}


def _done_before(
    client: SyncClient, rewind: Rewind, workspace: Workspace, cut: Cut
) -> _Begun | None:
    """Return the session of the same rewind, if it was cut short or nothing was done since.

    Then only the files are put back, once more if need be.
    """
    head = rewind.session.head
    if rewind.to is not None or rewind.snapshot is None or REWOUND_FROM not in head.metadata:
        return None
    if head.parent_id != rewind.target.checkpoint_id or APART in head.metadata:
        return None
    path = state_of(client, head).get("transcript", {}).get("path")
    if not cut.is_empty and not (isinstance(path, str) and os.path.isfile(path)):
        return None
    before = info_of(client, head.metadata[REWOUND_FROM])
    known = [snapshot_of(client, each) for each in (head, before) if each is not None]
    now = workspace.snapshot_for_checkpoint(before=rewind.snapshot)
    if now.tree_id not in {each.tree_id for each in known if each is not None}:
        return None
    return _Begun(
        head.session_id, head.checkpoint_id, None if path is None else Path(path), head.metadata
    )
