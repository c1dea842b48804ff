"""Has a session go on from the head of another: looked at first, and then carried out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.rollback_preview import files_of
from holdfast.cli.access.session_run import SessionFiles, check_is_ours, opened
from holdfast.cli.exits import UsageError

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Restored


@dataclass(frozen=True)
class Adopting:
    """What adopting the head of another session would do, and does."""

    client: SyncClient
    session: SessionInfo
    other: SessionInfo
    changes: int
    planned: Restored | None
    folder: str | None
    """Where the files are that would be changed."""
    files: SessionFiles | None

    def carry_out(self, takeover: bool) -> str:
        """Do it, through a run; returns the new head."""
        with opened(self.client, self.session, self.files, takeover) as run:
            return run.adopt(self.other.head)

    def as_json(self, made: str | None) -> dict[str, Any]:
        """Return what is or would be done, in JSON."""
        files = self.planned
        return {
            "agent_id": self.session.agent_id,
            "session_id": self.session.session_id,
            "from": self.session.head.checkpoint_id,
            "adopted": self.other.head.checkpoint_id,
            "checkpoint_id": made,
            "dry_run": made is None,
            "changes": self.changes,
            "files": None
            if files is None
            else {"written": list(files.written), "removed": list(files.removed)},
            "workspace": self.folder,
        }


@contextmanager
def adopting(
    client: SyncClient, session: SessionInfo, other: SessionInfo, given: Path | None = None
) -> Iterator[Adopting]:
    """Give what adopting would do, and does."""
    from holdfast.client.with_files import snapshot_of

    if (session.agent_id, session.session_id) == (other.agent_id, other.session_id):
        raise UsageError(f"session {session.session_id!r} cannot adopt itself")
    check_is_ours(session)
    tree = snapshot_of(client, other.head)
    with files_of(client, session, other.head, "all", given) as files:
        workspace = None if files is None or tree is None else files.workspace
        planned = None
        if workspace is not None and tree is not None:
            planned = workspace.restore(tree, dry_run=True)
        changes = client.diff(session.head.checkpoint_id, other.head.checkpoint_id).part("$")
        folder = None if workspace is None else workspace.path
        yield Adopting(client, session, other, len(changes), planned, folder, files)
