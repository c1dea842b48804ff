"""Puts the files of a checkpoint into a directory: looked at first, and then carried out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.trees import unpack

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.workspace import Restored, Snapshot, Workspace
    from holdfast.workspace.capture import Progress


class PuttingBack:
    """Files that can be put into a directory; ``planned`` is None where that is new or empty."""

    def __init__(
        self,
        client: SyncClient,
        tree: Snapshot,
        target: Path,
        paths: Sequence[str],
        workspace: Workspace | None,
    ) -> None:
        self.tree = tree
        self.target = target
        self.planned: Restored | None = None
        self._client = client
        self._paths = list(paths) or None
        self._workspace = workspace
        if workspace is not None:
            self.planned = workspace.restore(tree, self._paths, dry_run=True)

    @property
    def is_needed(self) -> bool:
        """Whether anything would be changed."""
        return self.planned is None or bool(self.planned.changed)

    def carry_out(self, progress: Progress | None = None) -> Restored | None:
        """Do it; what was replaced is kept, and the answer says which tree leads back."""
        if self._workspace is None:
            unpack(self._client, self.tree, self.target, progress)
            return None
        return self._workspace.restore(self.tree, self._paths, progress=progress)

    def as_json(self, done: Restored | None, dry_run: bool) -> dict[str, Any]:
        """Return what is or would be done, in JSON."""
        return {
            "directory": str(self.target),
            "tree_id": self.tree.tree_id,
            "dry_run": dry_run,
            "undo_tree": None if done is None else done.undo_tree,
            "written": None if done is None else list(done.written),
            "removed": [] if done is None else list(done.removed),
            "touched": [] if done is None else list(done.touched),
            "late": [] if done is None else list(done.late),
            "stayed": [] if done is None else list(done.stayed),
            "held": [] if done is None else list(done.held),
        }


@contextmanager
def put_back(
    client: SyncClient, tree: Snapshot, target: Path, paths: Sequence[str] = ()
) -> Iterator[PuttingBack]:
    """Give what putting files into a directory would do, and does."""
    from holdfast.workspace import Workspace

    is_new = not target.exists() or not any(target.iterdir())
    if is_new and not paths:
        yield PuttingBack(client, tree, target, paths, None)
        return
    target.mkdir(parents=True, exist_ok=True)
    with Workspace(target, store=client) as workspace:
        yield PuttingBack(client, tree, target, paths, workspace)
