"""The workspace: snapshot, roll back and fork the agent's files."""

from __future__ import annotations

from holdfast.errors import WorkspaceError
from holdfast.workspace.diff import TreeDiff
from holdfast.workspace.results import Restored, Snapshot
from holdfast.workspace.scan import Skipped
from holdfast.workspace.workspace import TreeEntry, Workspace, checkout

__all__ = [
    "Restored",
    "Skipped",
    "Snapshot",
    "TreeDiff",
    "TreeEntry",
    "Workspace",
    "WorkspaceError",
    "checkout",
]
