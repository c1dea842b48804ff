"""Completing a restore that was cut short, or taking it back, when the workspace is opened next."""

from __future__ import annotations

import logging
import os
from dataclasses import replace

from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import CheckpointIntegrityError, WorkspaceError
from holdfast.stores.base import Store
from holdfast.workspace.late_changes import LateChanges
from holdfast.workspace.local_state import LocalState, RestoreJournal
from holdfast.workspace.restore import Restorer
from holdfast.workspace.restore_report import with_late_changes
from holdfast.workspace.results import Restored, Snapshot
from holdfast.workspace.tree_reader import TreeReader

logger = logging.getLogger("holdfast")


class Recoverer:
    """Ends what an earlier process began. Whoever calls it holds the lock of the local state."""

    def __init__(self, root: bytes, store: Store, local: LocalState, restorer: Restorer) -> None:
        self._root = root
        self._reader = TreeReader(store)
        self._local = local
        self._restorer = restorer

    def recover(self) -> Restored | None:
        """Complete a restore that was cut short, or take it back; what is there is captured first.

        What somebody changed while it was under way, or since, is in the tree that leads back.
        """
        journal = self._local.journal()
        if journal is None:
            return None
        rescued = self._restorer.rescue(journal)
        journal = self._local.journal() or journal  # its way back may lead to more by now
        journal = replace(journal, moves=[])
        with self._restorer.completing(journal):
            done = self._complete(journal, rescued)
        self._local.end()
        logger.warning(
            "a restore of %s was cut short and is ended now, as in the tree %s; %s leads back",
            *(os.fsdecode(self._root), done.tree_id, done.undo_tree),
        )
        return done

    def _complete(self, journal: RestoreJournal, rescued: LateChanges) -> Restored:
        problem: WorkspaceError | None = None
        for chunk, paths in ((journal.target, journal.paths), (journal.undo, None)):
            try:
                target = self._as_snapshot(chunk)
                done = self._restorer.restore(target, paths, dry_run=False)
            except CheckpointIntegrityError:
                continue  # that tree is gone: the other one will do
            except WorkspaceError as error:
                problem = problem or error
                continue
            return with_late_changes(done, rescued)
        if problem is not None:
            raise WorkspaceError(
                "a restore was cut short, and can neither be completed nor taken back: some files "
                f"are as in the tree and the others as they were. {problem}. Open the workspace "
                "again when the cause is gone"
            ) from problem
        self._local.end()
        raise WorkspaceError(
            "a restore was cut short, and both its trees are gone from the store: the workspace "
            "stays as it is, part old and part new"
        )

    def _as_snapshot(self, chunk: bytes) -> Snapshot:
        tree = self._reader.tree(chunk)
        return Snapshot(
            tree_id=tree.tree_id.hex(), files=0, bytes=0, root=ContentLink(chunk), workspace=""
        )
