"""Putting a workspace back to a tree, so that nothing is lost whatever happens on the way."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import (
    CheckpointIntegrityError,
    HoldfastError,
    WorkspaceError,
)
from holdfast.stores.base import Store
from holdfast.workspace.capture import Capturer, Progress
from holdfast.workspace.diff import differing
from holdfast.workspace.dir_fds import DirFds
from holdfast.workspace.disk_errors import check_room, explained
from holdfast.workspace.entries import DIRECTORY, TEMPORARY, Entry
from holdfast.workspace.late_changes import AsideCleaner, Keep, LateChanges, left_aside
from holdfast.workspace.local_state import LocalState, RestoreJournal
from holdfast.workspace.made_before import MadeBefore
from holdfast.workspace.paths import parent_and_name, shown
from holdfast.workspace.pins import PARTIAL, Pins
from holdfast.workspace.restore_plan import RestorePlan, in_the_way, make_plan, wanted_paths
from holdfast.workspace.restore_report import restored, where_kept, with_late_changes
from holdfast.workspace.results import Restored, Snapshot
from holdfast.workspace.scan import CaptureOptions
from holdfast.workspace.staging import Stager, remove_staging
from holdfast.workspace.swap import EntryMovedError, Swap, removal_slot
from holdfast.workspace.tree_reader import TreeLookup, TreeReader
from holdfast.workspace.undo_tree import UNDO_SECONDS, UndoTree, undo_note

logger = logging.getLogger("holdfast")

_ATTEMPTS = 5


class Restorer:
    """Restores one workspace. Whoever calls it holds the lock of its local state."""

    def __init__(
        self,
        root: bytes,
        store: Store,
        local: LocalState,
        pins: Pins,
        capturer: Capturer,
        options: CaptureOptions,
    ) -> None:
        self._root = root
        self._store = store
        self._reader = TreeReader(store)
        self._local = local
        self._pins = pins
        self._capturer = capturer
        self._options = options
        self._outer: RestoreJournal | None = None
        """A restore that was cut short, while it is completed."""

    def restore(
        self,
        target: Snapshot,
        paths: list[bytes] | None,
        dry_run: bool,
        progress: Progress | None = None,
    ) -> Restored:
        """Make the workspace, or these paths of it, what the tree says."""
        if dry_run:
            _, plan = self._planned(target, paths, dry_run)
            stays = self._would_stay(plan)
            return restored(target, None, plan, dry_run=True, stayed=stays)
        for _ in range(_ATTEMPTS):
            undo, plan = self._planned(target, paths, dry_run)
            assert undo is not None
            if self._outer is not None:
                undo = self._leading_back(self._outer, undo, target, paths)
            if plan.is_empty():
                return restored(target, undo, plan)
            check_room(self._root, plan)
            self._capturer.also_know({e.content: e.location for _, e in plan.files if e.size})
            try:
                return self._carry_out(plan, undo, target, paths, progress)
            except EntryMovedError:
                continue  # somebody works here just now: all is as it was, so look again
        raise WorkspaceError(
            f"{os.fsdecode(self._root)!r} keeps changing while it is restored: stop what writes "
            "there, then restore again (the workspace is as it was)"
        )

    @contextmanager
    def completing(self, journal: RestoreJournal) -> Iterator[None]:
        """Restore to complete a restore that was cut short, which stays noted meanwhile."""
        self._outer = journal
        try:
            yield
        finally:
            self._outer = None

    def _leading_back(
        self, outer: RestoreJournal, now: Snapshot, target: Snapshot, paths: list[bytes] | None
    ) -> Snapshot:
        """Return a tree that leads back to before a restore that was cut short.

        That is what was there when it began, and whatever was found since that is not of the tree.
        """
        undo_tree = UndoTree(
            self._store, self._reader, self._pins, self._kept(outer), undo_note(target, paths)
        )
        began = TreeLookup(self._reader, outer.undo)
        try:
            with closing(undo_tree):
                undo_tree.keep(
                    {
                        path: new
                        for path, old, new in differing(
                            self._reader, target.root.name, now.root.name
                        )
                        if new is not None and new.kind != DIRECTORY
                        if not _is_half_touched(began.find(path), new, old)
                    }
                )
        except CheckpointIntegrityError:  # that tree is gone; what was there just now is kept
            return now
        return undo_tree.snapshot

    def _kept(self, journal: RestoreJournal) -> Snapshot:
        """Return the way back of a restore that was begun, of which only the chunk is known."""
        return Snapshot(
            tree_id="", files=0, bytes=0, root=ContentLink(journal.undo), workspace=self._pins.name
        )

    def _planned(
        self, target: Snapshot, paths: list[bytes] | None, dry_run: bool
    ) -> tuple[Snapshot | None, RestorePlan]:
        """Capture what is there now, but for a dry run; return it, and the way from there.

        One note keeps both ends of the way, if there is anything to do.
        """
        root = target.root.name
        plan, blocked = RestorePlan(), list[bytes]()

        def decide() -> tuple[float, dict[str, Any]] | None:
            nonlocal plan, blocked
            plan = self._plan(target, paths)
            blocked = in_the_way(plan, self._capturer.folders, self._exists)
            if blocked or plan.is_empty():
                return None
            return UNDO_SECONDS, undo_note(target, paths)

        def look(wanted: frozenset[bytes]) -> Snapshot | None:
            if not dry_run:
                return self._capturer.look(wanted, decide)
            self._capturer.see(wanted, decide)
            return None

        undo = look(frozenset())
        if blocked:
            # Ignored, and yet in the tree: captured for once, so that replacing it loses nothing.
            undo = look(wanted_paths(self._reader, root, blocked))
        blocked += self._uncaptured_in(plan)
        if blocked:
            listed = ", ".join(os.fsdecode(path) for path in sorted(blocked)[:5])
            raise WorkspaceError(
                f"in the way of the tree, and not captured: {listed}; move or remove it, "
                "then restore again (nothing was changed)"
            )
        return undo, plan

    def _plan(self, target: Snapshot, paths: list[bytes] | None) -> RestorePlan:
        made_before = None
        if not self._options.include_ignored:  # else a tree has all that was there
            restores = partial(self._pins.restores_from, target.tree_id)
            made_before = MadeBefore(self._reader, restores)
        return make_plan(
            self._capturer.folders,
            self._reader,
            target.root.name,
            paths,
            self._options.private,
            made_before,
        )

    def ignored_in_the_way(self, target: Snapshot) -> frozenset[bytes]:
        """Return what has to be captured though it is ignored, as a restore would replace it."""
        blocked: list[bytes] = []

        def decide() -> None:
            blocked.extend(
                in_the_way(self._plan(target, None), self._capturer.folders, self._exists)
            )

        self._capturer.look(decide=decide)
        return wanted_paths(self._reader, target.root.name, blocked) if blocked else frozenset()

    def _exists(self, path: bytes) -> bool:
        above, name = parent_and_name(path)
        try:
            with DirFds(self._root) as dirs:
                os.stat(name, dir_fd=dirs.directory(above), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _uncaptured_in(self, plan: RestorePlan) -> list[bytes]:
        """Return what nobody captured in directories that a file is to replace."""
        replaced = {path for path, _ in (*plan.files, *plan.symlinks)}
        going = {*plan.removed_directories, *(path for path, _ in plan.removed)}
        uncaptured: list[bytes] = []
        with DirFds(self._root) as dirs:
            for path in plan.removed_directories:
                parts = path.split(b"/")
                if any(b"/".join(parts[:depth]) in replaced for depth in range(1, len(parts) + 1)):
                    found = map(os.fsencode, os.listdir(dirs.directory(path)))
                    uncaptured += [path + b"/" + n for n in found if path + b"/" + n not in going]
        return uncaptured

    def _would_stay(self, plan: RestorePlan) -> list[bytes]:
        """Return the directories that cannot go, as they hold what nobody captured."""
        going = {path for path, _ in plan.removed}
        stays: list[bytes] = []
        with DirFds(self._root) as dirs:
            for path in reversed(plan.removed_directories):
                try:
                    found = map(os.fsencode, os.listdir(dirs.directory(path)))
                except (FileNotFoundError, NotADirectoryError):
                    continue  # somebody was faster
                if all(path + b"/" + name in going for name in found):
                    going.add(path)
                else:
                    stays.append(path)
        return stays

    def _carry_out(
        self,
        plan: RestorePlan,
        undo: Snapshot,
        target: Snapshot,
        paths: list[bytes] | None,
        progress: Progress | None,
    ) -> Restored:
        staging = TEMPORARY + secrets.token_hex(8).encode()
        stager = Stager(self._root, staging, plan, self._reader, progress)
        swap = Swap(staging, plan, stager.staged, self._capturer.folders)
        journal = RestoreJournal(
            target.root.name, undo.root.name, staging, paths, _moves(plan, stager.staged)
        )
        left = self._local.journal()
        if left is not None and left != self._outer:  # this process was interrupted twice
            self.rescue(left)
        is_staged = False
        try:
            self._local.begin(journal)
            with DirFds(self._root) as dirs:
                stager.stage(dirs)
                is_staged = True
                swap.carry_out(dirs)
            return self._let_go(swap, journal, undo, target, plan)
        except BaseException as error:
            if swap.is_done:
                if not isinstance(error, Exception):  # else the next open would complete it,
                    self._let_go(swap, journal, undo, target, plan)  # over what is done until then
                raise
            if not is_staged:
                self._clean_up(staging)
                raise explained(error, swap.at, "nothing was changed") from error
            self._take_back(swap, journal, error)
            if isinstance(error, (EntryMovedError, FileNotFoundError)):
                raise EntryMovedError(swap.at) from error
            raise explained(error, swap.at, "the workspace is as it was") from error

    def _let_go(
        self,
        swap: Swap,
        journal: RestoreJournal,
        undo: Snapshot,
        target: Snapshot,
        plan: RestorePlan,
    ) -> Restored:
        """Keep what changed while it was replaced, and remove what was moved aside."""
        undo_tree = UndoTree(
            self._store, self._reader, self._pins, undo, undo_note(target, journal.paths)
        )
        with closing(undo_tree), DirFds(self._root) as dirs:
            keep = self._keeping(undo_tree, journal)
            cleaner = AsideCleaner(dirs, journal.staging, undo_tree.content_reader, keep)
            try:
                late = cleaner.clean(swap.moved_aside)
            except (HoldfastError, OSError) as error:
                cleaner.put_all_beside(swap.moved_aside)
                self._clean_up(journal.staging)
                raise WorkspaceError(
                    f"the files were restored, but what somebody changed meanwhile could not be "
                    f"kept in the store ({error}): it is in {where_kept(cleaner.done)} in the "
                    "workspace"
                ) from error
        remove_staging(self._root, journal.staging)
        self._local.end()  # also of one that this was to complete
        done = restored(target, undo_tree.snapshot, plan, stayed=swap.stayed)
        return with_late_changes(done, late)

    def _keeping(self, undo_tree: UndoTree, journal: RestoreJournal) -> Keep:
        """Return what keeps more files in the undo tree, and notes that for who completes this."""

        def keep(changes: Mapping[bytes, Entry]) -> None:
            undo_tree.keep(changes)
            self._local.begin(replace(journal, undo=undo_tree.snapshot.root.name))

        return keep

    def _take_back(self, swap: Swap, journal: RestoreJournal, error: BaseException) -> None:
        """Undo what was done of a restore that failed; if that fails too, the next open does it."""
        back = replace(journal, target=journal.undo, paths=None)
        if self._outer is None:
            self._local.begin(back)
        with DirFds(self._root) as dirs:
            failures = swap.take_back(dirs)
        rescued = self.rescue(journal, is_going_back=True)
        if rescued:
            logger.warning(
                "a restore of %s was taken back; what somebody wrote meanwhile is in %s",
                *(os.fsdecode(self._root), where_kept(rescued)),
            )
        if not failures:
            self._end()
            return
        path, why = failures[0]
        raise WorkspaceError(
            f"the restore failed half-way at {shown(swap.at)} ({error}) and could not be taken "
            f"back at {shown(path)} ({why.strerror}): some files are as in the tree and the others "
            "as they were. Open the workspace again when the cause is gone, and that is done"
        ) from error

    def _clean_up(self, staging: bytes) -> None:
        """Remove what was made aside, and write down that all is done."""
        remove_staging(self._root, staging)
        self._end()

    def _end(self) -> None:
        """Write down that a restore has ended, unless it was to complete another."""
        if self._outer is None:
            self._local.end()
        else:
            self._local.begin(self._outer)

    def rescue(self, journal: RestoreJournal, is_going_back: bool = False) -> LateChanges:
        """Keep what a restore left aside and that neither of its trees has; remove the rest."""
        note = {
            "kind": "undo",
            "message": "found after a restore that was cut short",
            PARTIAL: True,
        }
        undo_tree = UndoTree(self._store, self._reader, self._pins, self._kept(journal), note)
        with closing(undo_tree), DirFds(self._root) as dirs:
            keep = undo_tree.keep if is_going_back else self._keeping(undo_tree, journal)
            cleaner = AsideCleaner(dirs, journal.staging, undo_tree.content_reader, keep)
            lookups = [TreeLookup(self._reader, chunk) for chunk in (journal.target, journal.undo)]
            files, directories = left_aside(
                dirs, journal.staging, journal.moves, lambda path: _wanted(lookups, path)
            )
            try:
                cleaner.clean(files)
            except CheckpointIntegrityError:  # the tree they would go with is gone
                cleaner.put_all_beside(files)
            for slot, path in directories:
                cleaner.put_beside(slot, path)
        if cleaner.done.late:
            cleaner.done.tree_id = undo_tree.snapshot.tree_id
        remove_staging(self._root, journal.staging)
        return cleaner.done


def _is_half_touched(before: Entry | None, now: Entry, wanted: Entry | None) -> bool:
    """Return whether a file got the mode that a tree wants, and not the time yet."""
    if before is None or wanted is None:
        return False
    is_touched = (before.kind, before.content) == (wanted.kind, wanted.content)
    return is_touched and now[:5] == before._replace(mode=wanted.mode)[:5]


def _moves(plan: RestorePlan, staged: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    made = [(parent_and_name(at)[1], path) for path, at in staged.items()]
    return made + [(removal_slot(number), path) for number, (path, _) in enumerate(plan.removed)]


def _wanted(lookups: list[TreeLookup], path: bytes) -> Iterable[Entry | None]:
    for lookup in lookups:
        try:
            yield lookup.find(path)
        except CheckpointIntegrityError:
            yield None  # a tree that is gone says nothing
