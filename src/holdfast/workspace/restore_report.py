"""What is said of a restore: its plan, and what came meanwhile, as users are told."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace

from holdfast.workspace.late_changes import LateChanges
from holdfast.workspace.paths import shown
from holdfast.workspace.restore_plan import RestorePlan
from holdfast.workspace.results import Restored, Snapshot


def where_kept(late: LateChanges) -> str:
    """Return where what came meanwhile is to be found, as messages say it."""
    held = [shown(at) for _, at in late.held]
    return ", ".join([f"the tree {late.tree_id}", *held] if late.tree_id else held)


def with_late_changes(done: Restored, late: LateChanges) -> Restored:
    """Return what a restore did, with what somebody changed meanwhile."""
    return replace(
        done,
        late=_names(late.late),
        held=tuple(os.fsdecode(at) for _, at in late.held),
    )


def restored(
    target: Snapshot,
    undo: Snapshot | None,
    plan: RestorePlan,
    dry_run: bool = False,
    stayed: Collection[bytes] = (),
) -> Restored:
    """Return what a plan did when it was carried out, or would do."""
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
