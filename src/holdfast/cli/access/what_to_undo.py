"""What an undo takes back: the last rollback or rewind, or what was put back after a crash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from holdfast.cli.access.naming import Names
from holdfast.cli.access.recoveries import UNDONE, last_recovery
from holdfast.cli.access.rewind_points import main_session
from holdfast.cli.access.session_run import SessionFiles, opened
from holdfast.cli.access.undo_marks import is_mark, later_mark
from holdfast.cli.exits import Refused
from holdfast.coding_agents.recorded import program_of
from holdfast.coding_agents.undoing import last_rewind

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.recovery import Recovery
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Restored, Workspace


@dataclass(frozen=True)
class ToUndo:
    """What would be taken back, and in which session."""

    kind: Literal["rollback", "rewind", "recovery"]
    session: SessionInfo
    target: CheckpointInfo | None = None
    """Of a rollback, where it was begun; of a rewind, the checkpoint that it ended at."""
    recovery: Recovery | None = None


def what_to_undo(
    client: SyncClient,
    names: Names,
    session: SessionInfo,
    *,
    is_named: bool,
    within: int | None = None,
) -> ToUndo:
    """Return what an undo of a session means; it is refused if there is nothing.

    ``within`` is how many checkpoints before the head are looked at for it.
    """
    from holdfast.session.rollback import ROLLED_BACK_FROM

    chain = [session.head, *client.ancestors(session.head.checkpoint_id, within)]
    if program_of(session.head):
        own = next(filter(is_mark, chain), None)
        mark = later_mark(client, names, session, own, is_named=is_named)
        if mark is not None:
            session = main_session(names, mark)
            chain = [mark, *client.ancestors(mark.checkpoint_id, within)]
    back = next((info for info in chain if ROLLED_BACK_FROM in info.metadata), None)
    rewound = last_rewind(chain)
    if rewound is not None and (back is None or chain.index(rewound) < chain.index(back)):
        return ToUndo("rewind", main_session(names, session.head), rewound)
    if (recovery := last_recovery(client, chain, back)) is not None:
        return ToUndo("recovery", session, recovery=recovery)
    if back is None:
        raise Refused(f"session {session.session_id!r} has no rollback or rewind to undo")
    return ToUndo("rollback", session, names.checkpoint(str(back.metadata[ROLLED_BACK_FROM])))


class RecoveryUndo:
    """The undoing of what was put back after a crash, looked at before it is carried out."""

    def __init__(
        self,
        client: SyncClient,
        session: SessionInfo,
        recovery: Recovery,
        workspace: Workspace,
        files: SessionFiles,
    ) -> None:
        self.folder = workspace.path
        self.planned: Restored = workspace.restore(recovery.undo_tree, dry_run=True)
        self._client = client
        self._session = session
        self._recovery = recovery
        self._workspace = workspace
        self._files = files

    def carry_out(self, takeover: bool) -> str | None:
        """Make the files what they were found as, and return the checkpoint that holds them."""
        with opened(self._client, self._session, self._files, takeover) as run:
            self.planned = self._workspace.restore(self._recovery.undo_tree)
            captured = self._files.capture()
            tags = {UNDONE: self._recovery.undo_tree}
            run._runtime.run(run._session.recapture("files as they were found", captured, tags))
            return run.head

    def as_json(self, now: str | None) -> dict[str, Any]:
        """Return what is or would be done, in the shape of any undo."""
        done = self.planned
        return {
            "agent_id": self._session.agent_id,
            "session_id": self._session.session_id,
            "from": self._session.head.checkpoint_id,
            "target": self._recovery.checkpoint_id,
            "checkpoint_id": now,
            "dry_run": now is None,
            "changes": 0,
            "files": {"written": list(done.written), "removed": list(done.removed)},
            "workspace": self.folder,
            "undone": [],
            "remaining": [],
            "calls": {},
            "problems": {},
        }


@contextmanager
def recovery_undo(
    client: SyncClient, session: SessionInfo, recovery: Recovery, given: Path | None
) -> Iterator[RecoveryUndo]:
    """Give the undoing of what was put back; it is refused where the files are not at hand."""
    from holdfast.cli.access.directories import elsewhere, folder_for
    from holdfast.client.with_files import snapshot_of
    from holdfast.workspace import Workspace

    at_head = snapshot_of(client, session.head)
    if at_head is None:
        raise Refused(f"the head of session {session.session_id!r} has no files")
    folder = folder_for(client, session, at_head, given)
    if folder is None:
        raise Refused(f"{elsewhere(session, at_head)}: name it with --workspace DIR")
    with Workspace(folder, store=client) as workspace:
        files = SessionFiles(workspace, at_head.as_value())
        yield RecoveryUndo(client, session, recovery, workspace, files)
