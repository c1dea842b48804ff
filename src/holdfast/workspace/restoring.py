"""Putting a workspace back to a tree, so that nothing is lost whatever happens on the way."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Collection
from typing import Any

from holdfast.core.raw import Link
from holdfast.errors import (
    CheckpointIntegrityError,
    HoldfastError,
    InvalidArgumentError,
    WorkspaceError,
)
from holdfast.workspace.apply import Applier, Moved, remove_staging
from holdfast.workspace.capture import Capturer, Progress
from holdfast.workspace.clone import Cloner
from holdfast.workspace.entries import TEMPORARY
from holdfast.workspace.home import Home, Journal
from holdfast.workspace.inside import Inside
from holdfast.workspace.keeping import PARTIAL
from holdfast.workspace.plan import Plan, in_the_way, make_plan, wanted_paths
from holdfast.workspace.results import Restored, Snapshot
from holdfast.workspace.shelf import Shelf

UNDO_SECONDS = 30 * 24 * 3600.0
"""How long the tree that leads back from a restore is kept, unless a checkpoint keeps it."""
_ATTEMPTS = 5
_SPARE = 2**20


class Restorer:
    """Restores one workspace. Whoever calls it holds the lock of its home."""

    def __init__(self, root: bytes, home: Home, shelf: Shelf, capturer: Capturer) -> None:
        self._root = root
        self._home = home
        self._shelf = shelf
        self._capturer = capturer

    def restore(
        self,
        target: Snapshot,
        paths: list[bytes] | None,
        dry_run: bool,
        progress: Progress | None = None,
    ) -> Restored:
        """Make the workspace, or these paths of it, what the tree says."""
        first: Snapshot | None = None
        for _ in range(_ATTEMPTS):
            undo, plan = self._planned(target, paths, dry_run)
            if dry_run:
                return _restored(target, None, plan, dry_run=True)
            first = first or undo
            if plan.is_empty():
                return _restored(target, undo, plan)
            _check_room(self._root, plan)
            self._capturer.also_know({e.content: e.place for _, e in plan.files if e.size})
            try:
                self._carry_out(plan, undo, target, paths, progress)
            except Moved:
                continue  # somebody works here just now: capture that too, and go on from there
            return _restored(target, first, plan)
        raise WorkspaceError(
            f"{os.fsdecode(self._root)!r} keeps changing while it is restored: stop what writes "
            "there, then restore again"
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
            plan = make_plan(self._capturer.folders, self._shelf, root, paths)
            blocked = in_the_way(plan, self._capturer.folders, self._exists)
            if dry_run or blocked or plan.is_empty():
                return None
            note = {"kind": "undo", "target": target.root, "message": "before a restore"}
            return UNDO_SECONDS, note if paths is None else {**note, PARTIAL: True}

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
        return os.path.lexists(os.path.join(self._root, path))

    def _held_open(self, plan: Plan) -> list[bytes]:
        """Directories that a file is to replace, and that hold what nobody captured."""
        replaced = {path for path, _ in (*plan.files, *plan.symlinks)}
        going = {*plan.removed_directories, *(path for path, _ in plan.removed)}
        held: list[bytes] = []
        for path in plan.removed_directories:
            parts = path.split(b"/")
            if any(b"/".join(parts[:depth]) in replaced for depth in range(1, len(parts) + 1)):
                found = os.listdir(os.path.join(self._root, path))
                held += [path + b"/" + n for n in found if path + b"/" + n not in going]
        return held

    def _carry_out(
        self,
        plan: Plan,
        undo: Snapshot,
        target: Snapshot,
        paths: list[bytes] | None,
        progress: Progress | None,
    ) -> None:
        staging = TEMPORARY + secrets.token_hex(8).encode()
        applier = Applier(self._root, staging, plan, self._shelf, self._capturer.folders, progress)
        is_staged = False
        left = self._home.journal()
        if left is not None:  # of a restore of this process that was interrupted twice
            remove_staging(self._root, left.staging)
        try:
            self._home.begin(Journal(target.root.name, undo.root.name, staging, paths))
            with Inside(self._root) as inside:
                applier.stage(inside)
                is_staged = True
                try:
                    applier.swap(inside)
                except Moved:
                    applier.tighten(inside)
                    raise
        except Moved:
            self._clean_up(staging)
            raise
        except BaseException as error:
            if is_staged:
                self._go_back(staging, undo)
                raise _explained(error, "the workspace is as it was") from error
            self._clean_up(staging)
            raise _explained(error, "nothing was changed") from error
        try:
            self._clean_up(staging)
        except KeyboardInterrupt:  # else the next open would restore what is worked on from now on
            self._clean_up(staging)
            raise

    def _clean_up(self, staging: bytes) -> None:
        """Remove what was made aside, and write down that all is done."""
        remove_staging(self._root, staging)
        self._home.end()

    def _go_back(self, staging: bytes, undo: Snapshot) -> None:
        """Take back a restore that failed half-way; if that fails too, the next open does it."""
        self._home.begin(Journal(undo.root.name, undo.root.name, staging, None))
        try:
            remove_staging(self._root, staging)
            self._capturer.look()
            plan = make_plan(self._capturer.folders, self._shelf, undo.root.name, None)
            back = TEMPORARY + secrets.token_hex(8).encode()
            self._home.begin(Journal(undo.root.name, undo.root.name, back, None))
            with Inside(self._root) as inside:
                applier = Applier(self._root, back, plan, self._shelf, self._capturer.folders)
                applier.stage(inside)
                applier.swap(inside)
            self._clean_up(back)
        except (OSError, HoldfastError, Moved) as error:
            raise WorkspaceError(
                f"the restore failed half-way and could not be taken back either ({error}): open "
                "the workspace again when the cause is gone, and that is done"
            ) from error

    def recover(self) -> Restored | None:
        """Complete a restore that was cut short; what is there now is captured first."""
        journal = self._home.journal()
        if journal is None:
            return None
        remove_staging(self._root, journal.staging)
        for chunk, paths in ((journal.target, journal.paths), (journal.undo, None)):
            try:
                target = self._as_snapshot(chunk)
                done = self.restore(target, paths, dry_run=False)
            except CheckpointIntegrityError:
                continue  # that tree is gone: the other one will do
            self._home.end()
            return done
        self._home.end()
        raise WorkspaceError(
            "a restore was cut short, and both its trees are gone from the store: the workspace "
            "stays as it is, part old and part new"
        )

    def _as_snapshot(self, chunk: bytes) -> Snapshot:
        tree = self._shelf.tree(chunk)
        return Snapshot(
            tree_id=tree.tree_id.hex(), files=0, bytes=0, root=Link(chunk), workspace=""
        )


def fork(
    shelf: Shelf,
    source: Snapshot,
    path: bytes,
    progress: Progress | None = None,
    cloner: Cloner | None = None,
) -> None:
    """Make a new directory of a tree: whole, or not at all."""
    above, name = os.path.split(path)
    if not name:
        raise InvalidArgumentError("a fork needs the path of a new directory")
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
        raise InvalidArgumentError(f"{os.fsdecode(path)!r} is there already, and no directory")
    if os.path.lexists(path) and os.listdir(path):
        raise InvalidArgumentError(
            f"{os.fsdecode(path)!r} is not empty: fork into a new or empty directory"
        )
    os.makedirs(above, exist_ok=True)
    plan = make_plan({}, shelf, source.root.name, None)
    _check_room(above, plan)
    staging = TEMPORARY + secrets.token_hex(8).encode()
    with Inside(above) as inside:
        try:
            applier = Applier(above, staging, plan, shelf, {}, progress, True, cloner)
            applier.stage(inside)
            applier.tighten(inside)
            inside.forget(staging)
            fd = inside.directory(b"")
            os.rename(staging, name, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException as error:
            remove_staging(above, staging)
            raise _explained(error, "nothing was made") from error


def _check_room(directory: bytes, plan: Plan) -> None:
    disk = os.statvfs(directory)
    free = disk.f_bavail * disk.f_frsize
    if plan.bytes() + _SPARE > free:
        raise WorkspaceError(
            f"the tree needs {plan.bytes():,} bytes more, and {_SPARE:,} have to be spared, but "
            f"{free:,} are free on the disk of {os.fsdecode(directory)!r}: nothing was changed"
        )


def _explained(error: BaseException, outcome: str) -> BaseException:
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        if isinstance(error, NotADirectoryError):
            reason = "a directory was replaced meanwhile, and nothing is written through symlinks"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            reason = "the disk is full"
        return WorkspaceError(f"restoring failed: {reason}; {outcome}")
    return error


def _restored(
    target: Snapshot, undo: Snapshot | None, plan: Plan, dry_run: bool = False
) -> Restored:
    replaced = {path for path, _ in (*plan.files, *plan.symlinks)}
    removed: Collection[bytes] = [path for path, _ in plan.removed if path not in replaced]
    return Restored(
        tree_id=target.tree_id,
        undo_tree=None if undo is None else undo.tree_id,
        written=tuple(map(os.fsdecode, plan.written)),
        removed=_names([*removed, *(p for p in plan.removed_directories if p not in replaced)]),
        touched=_names([path for path, _ in (*plan.touched, *plan.modes)]),
        directories=_names([path for path, _ in plan.directories]),
        bytes=plan.bytes(),
        dry_run=dry_run,
    )


def _names(paths: Collection[bytes]) -> tuple[str, ...]:
    return tuple(map(os.fsdecode, sorted(paths)))
