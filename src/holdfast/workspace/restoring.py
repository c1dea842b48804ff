"""Putting a workspace back to a tree, so that nothing is lost whatever happens on the way."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import (
    CheckpointIntegrityError,
    HoldfastError,
    WorkspaceError,
)
from holdfast.stores.base import Store
from holdfast.workspace.apply import Applier, remove_staging
from holdfast.workspace.capture import Capturer, Progress
from holdfast.workspace.diff import differing
from holdfast.workspace.dir_fds import Inside, parent_and_name
from holdfast.workspace.disk_errors import check_room, explained
from holdfast.workspace.entries import DIRECTORY, TEMPORARY, Entry
from holdfast.workspace.local_state import Home, Journal
from holdfast.workspace.pins import PARTIAL, Keeper
from holdfast.workspace.restore_plan import Plan, in_the_way, make_plan, wanted_paths
from holdfast.workspace.results import Restored, Snapshot
from holdfast.workspace.settle import Keep, Settled, Settler, left_aside
from holdfast.workspace.swap import Moved, Swap, removal_slot
from holdfast.workspace.tree_reader import Shelf
from holdfast.workspace.undo_tree import UNDO_SECONDS, Lookup, WayBack, shown

logger = logging.getLogger("holdfast")

_ATTEMPTS = 5


class Restorer:
    """Restores one workspace. Whoever calls it holds the lock of its home."""

    def __init__(
        self,
        root: bytes,
        store: Store,
        home: Home,
        keeper: Keeper,
        capturer: Capturer,
        private: Collection[bytes],
    ) -> None:
        self._root = root
        self._store = store
        self._shelf = Shelf(store)
        self._home = home
        self._keeper = keeper
        self._capturer = capturer
        self._private = private
        self._outer: Journal | None = None
        """A restore that was cut short, while it is completed."""

    def restore(
        self,
        target: Snapshot,
        paths: list[bytes] | None,
        dry_run: bool,
        progress: Progress | None = None,
    ) -> Restored:
        """Make the workspace, or these paths of it, what the tree says."""
        for _ in range(_ATTEMPTS):
            undo, plan = self._planned(target, paths, dry_run)
            if dry_run:
                return _restored(target, None, plan, dry_run=True)
            if plan.is_empty():
                return _restored(target, undo, plan)
            check_room(self._root, plan)
            self._capturer.also_know({e.content: e.place for _, e in plan.files if e.size})
            try:
                return self._carry_out(plan, undo, target, paths, progress)
            except Moved:
                continue  # somebody works here just now: all is as it was, so look again
        raise WorkspaceError(
            f"{os.fsdecode(self._root)!r} keeps changing while it is restored: stop what writes "
            "there, then restore again (the workspace is as it was)"
        )

    def _planned(
        self, target: Snapshot, paths: list[bytes] | None, dry_run: bool
    ) -> tuple[Snapshot, Plan]:
        """What is there now, captured, and the way from there.

        One note keeps both ends of the way, if there is anything to do.
        """
        root = target.root.name
        plan, blocked = Plan(), list[bytes]()

        def decide() -> tuple[float, dict[str, Any]] | None:
            nonlocal plan, blocked
            plan = make_plan(self._capturer.folders, self._shelf, root, paths, self._private)
            blocked = in_the_way(plan, self._capturer.folders, self._exists)
            if dry_run or blocked or plan.is_empty():
                return None
            return UNDO_SECONDS, _note(target, paths)

        undo = self._capturer.look(decide=decide)
        if blocked:
            # Ignored, and yet in the tree: captured for once, so that replacing it loses nothing.
            undo = self._capturer.look(wanted_paths(self._shelf, root, blocked), decide)
        blocked += self._held_open(plan)
        if blocked:
            shown = ", ".join(os.fsdecode(path) for path in sorted(blocked)[:5])
            raise WorkspaceError(
                f"in the way of the tree, and not captured: {shown}; move or remove it, "
                "then restore again (nothing was changed)"
            )
        return undo, plan

    def _exists(self, path: bytes) -> bool:
        above, name = parent_and_name(path)
        try:
            with Inside(self._root) as inside:
                os.stat(name, dir_fd=inside.directory(above), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _held_open(self, plan: Plan) -> list[bytes]:
        """Directories that a file is to replace, and that hold what nobody captured."""
        replaced = {path for path, _ in (*plan.files, *plan.symlinks)}
        going = {*plan.removed_directories, *(path for path, _ in plan.removed)}
        held: list[bytes] = []
        with Inside(self._root) as inside:
            for path in plan.removed_directories:
                parts = path.split(b"/")
                if any(b"/".join(parts[:depth]) in replaced for depth in range(1, len(parts) + 1)):
                    found = map(os.fsencode, os.listdir(inside.directory(path)))
                    held += [path + b"/" + n for n in found if path + b"/" + n not in going]
        return held

    def _carry_out(
        self,
        plan: Plan,
        undo: Snapshot,
        target: Snapshot,
        paths: list[bytes] | None,
        progress: Progress | None,
    ) -> Restored:
        staging = TEMPORARY + secrets.token_hex(8).encode()
        applier = Applier(self._root, staging, plan, self._shelf, progress)
        swap = Swap(staging, plan, applier.staged, self._capturer.folders)
        journal = Journal(
            target.root.name, undo.root.name, staging, paths, _moves(plan, applier.staged)
        )
        left = self._home.journal()
        if left is not None and left != self._outer:  # this process was interrupted twice
            self._rescue(left)
        is_staged = False
        try:
            self._home.begin(journal)
            with Inside(self._root) as inside:
                applier.stage(inside)
                is_staged = True
                swap.carry_out(inside)
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
            if isinstance(error, (Moved, FileNotFoundError)):
                raise Moved(swap.at) from error
            raise explained(error, swap.at, "the workspace is as it was") from error

    def _let_go(
        self, swap: Swap, journal: Journal, undo: Snapshot, target: Snapshot, plan: Plan
    ) -> Restored:
        """Keep what changed while it was replaced, and remove what was moved aside."""
        way_back = WayBack(
            self._store, self._shelf, self._keeper, undo, _note(target, journal.paths)
        )
        with closing(way_back), Inside(self._root) as inside:
            keep = self._keeping(way_back, journal)
            settler = Settler(inside, journal.staging, way_back.contents, keep)
            try:
                settled = settler.settle(swap.held)
            except (HoldfastError, OSError) as error:
                settler.put_all_beside(swap.held)
                self._clean_up(journal.staging)
                raise WorkspaceError(
                    f"the files were restored, but what somebody changed meanwhile could not be "
                    f"kept in the store ({error}): it is in {_places(settler.done)} in the "
                    "workspace"
                ) from error
        self._clean_up(journal.staging)
        done = _restored(target, way_back.snapshot, plan, stayed=swap.stayed)
        return _with_late(done, settled)

    def _keeping(self, way_back: WayBack, journal: Journal) -> Keep:
        """Has the way back lead to more files, and whoever completes the restore know of it."""

        def keep(changes: Mapping[bytes, Entry]) -> None:
            way_back.keep(changes)
            self._home.begin(replace(journal, undo=way_back.snapshot.root.name))

        return keep

    def _take_back(self, swap: Swap, journal: Journal, error: BaseException) -> None:
        """Undo what was done of a restore that failed; if that fails too, the next open does it."""
        back = replace(journal, target=journal.undo, paths=None)
        if self._outer is None:
            self._home.begin(back)
        with Inside(self._root) as inside:
            failures = swap.take_back(inside)
        rescued = self._rescue(journal, is_going_back=True)
        if rescued:
            logger.warning(
                "a restore of %s was taken back; what somebody wrote meanwhile is in %s",
                *(os.fsdecode(self._root), _places(rescued)),
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
            self._home.end()
        else:
            self._home.begin(self._outer)

    def _rescue(self, journal: Journal, is_going_back: bool = False) -> Settled:
        """Keep what a restore left aside and that neither of its trees has; remove the rest."""
        note = {
            "kind": "undo",
            "message": "found after a restore that was cut short",
            PARTIAL: True,
        }
        undo = Snapshot(
            tree_id="",
            files=0,
            bytes=0,
            root=ContentLink(journal.undo),
            workspace=self._keeper.name,
        )
        way_back = WayBack(self._store, self._shelf, self._keeper, undo, note)
        with closing(way_back), Inside(self._root) as inside:
            keep = way_back.keep if is_going_back else self._keeping(way_back, journal)
            settler = Settler(inside, journal.staging, way_back.contents, keep)
            lookups = [Lookup(self._shelf, chunk) for chunk in (journal.target, journal.undo)]
            files, directories = left_aside(
                inside, journal.staging, journal.moves, lambda path: _wanted(lookups, path)
            )
            try:
                settler.settle(files)
            except CheckpointIntegrityError:  # the tree they would go with is gone
                settler.put_all_beside(files)
            for slot, path in directories:
                settler.put_beside(slot, path)
        if settler.done.late:
            settler.done.tree_id = way_back.snapshot.tree_id
        remove_staging(self._root, journal.staging)
        return settler.done

    def recover(self) -> Restored | None:
        """Complete a restore that was cut short, or take it back; what is there is captured first.

        What somebody changed while it was under way, or since, is in the tree that leads back.
        """
        journal = self._home.journal()
        if journal is None:
            return None
        rescued = self._rescue(journal)
        journal = self._home.journal() or journal  # its way back may lead to more by now
        self._outer = replace(journal, moves=[])
        try:
            done = self._complete(self._outer, rescued)
        finally:
            self._outer = None
        self._home.end()
        logger.warning(
            "a restore of %s was cut short and is ended now, as in the tree %s; %s leads back",
            *(os.fsdecode(self._root), done.tree_id, done.undo_tree),
        )
        return done

    def _complete(self, journal: Journal, rescued: Settled) -> Restored:
        problem: WorkspaceError | None = None
        for chunk, paths in ((journal.target, journal.paths), (journal.undo, None)):
            try:
                target = self._as_snapshot(chunk)
                done = self.restore(target, paths, dry_run=False)
            except CheckpointIntegrityError:
                continue  # that tree is gone: the other one will do
            except WorkspaceError as error:
                problem = problem or error
                continue
            return self._leading_back(done, journal, target, rescued)
        if problem is not None:
            raise WorkspaceError(
                "a restore was cut short, and can neither be completed nor taken back: some files "
                f"are as in the tree and the others as they were. {problem}. Open the workspace "
                "again when the cause is gone"
            ) from problem
        self._home.end()
        raise WorkspaceError(
            "a restore was cut short, and both its trees are gone from the store: the workspace "
            "stays as it is, part old and part new"
        )

    def _leading_back(
        self, done: Restored, journal: Journal, target: Snapshot, rescued: Settled
    ) -> Restored:
        """What was done, with a tree that leads back to before the restore that was cut short.

        That is what was there when it began, and whatever was found since that is not of the tree.
        """
        now = self._keeper.resolve(done.undo_tree)
        try:
            changes = {
                path: new
                for path, old, new in differing(self._shelf, target.root.name, now.root.name)
                if new is not None and new.kind != DIRECTORY
            }
            undo = self._as_snapshot(journal.undo)
            way_back = WayBack(
                self._store, self._shelf, self._keeper, undo, _note(target, journal.paths)
            )
            with closing(way_back):
                way_back.keep(changes)
        except CheckpointIntegrityError:  # that tree is gone; what was there just now is kept
            return _with_late(done, rescued)
        return _with_late(replace(done, undo_tree=way_back.snapshot.tree_id), rescued)

    def _as_snapshot(self, chunk: bytes) -> Snapshot:
        tree = self._shelf.tree(chunk)
        return Snapshot(
            tree_id=tree.tree_id.hex(), files=0, bytes=0, root=ContentLink(chunk), workspace=""
        )


def _note(target: Snapshot, paths: list[bytes] | None) -> dict[str, Any]:
    """What the note of a tree that leads back says besides."""
    note = {"kind": "undo", "target": target.root, "message": "before a restore"}
    return note if paths is None else {**note, PARTIAL: True}


def _moves(plan: Plan, staged: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    made = [(parent_and_name(place)[1], path) for path, place in staged.items()]
    return made + [(removal_slot(number), path) for number, (path, _) in enumerate(plan.removed)]


def _wanted(lookups: list[Lookup], path: bytes) -> Iterable[Entry | None]:
    for lookup in lookups:
        try:
            yield lookup.find(path)
        except CheckpointIntegrityError:
            yield None  # a tree that is gone says nothing


def _places(settled: Settled) -> str:
    """Where what came meanwhile is to be found."""
    places = [shown(place) for _, place in settled.beside]
    return ", ".join([f"the tree {settled.tree_id}", *places] if settled.tree_id else places)


def _with_late(done: Restored, settled: Settled) -> Restored:
    return replace(
        done,
        late=_names(settled.late),
        held=tuple(os.fsdecode(place) for _, place in settled.beside),
    )


def _restored(
    target: Snapshot,
    undo: Snapshot | None,
    plan: Plan,
    dry_run: bool = False,
    stayed: Collection[bytes] = (),
) -> Restored:
    replaced = {*(path for path, _ in (*plan.files, *plan.symlinks)), *stayed}
    removed: Collection[bytes] = [path for path, _ in plan.removed if path not in replaced]
    return Restored(
        tree_id=target.tree_id,
        undo_tree=None if undo is None else undo.tree_id,
        written=tuple(map(os.fsdecode, plan.written)),
        removed=_names([*removed, *(p for p in plan.removed_directories if p not in replaced)]),
        touched=_names([path for path, _ in (*plan.touched, *plan.modes)]),
        directories=_names([path for path, _ in plan.directories]),
        bytes=plan.bytes(),
        stayed=_names(stayed),
        dry_run=dry_run,
    )


def _names(paths: Collection[bytes]) -> tuple[str, ...]:
    return tuple(map(os.fsdecode, sorted(paths)))
