"""The workspace: snapshot, roll back and fork the agent's files."""

from __future__ import annotations

from holdfast.errors import WorkspaceError
from holdfast.workspace.async_workspace import AsyncWorkspace
from holdfast.workspace.diff import TreeDiff
from holdfast.workspace.results import Restored, Skipped, Snapshot, TreeEntry
from holdfast.workspace.workspace import Workspace, checkout

__all__ = [
    "AsyncWorkspace",
    "Restored",
    "Skipped",
    "Snapshot",
    "TreeDiff",
    "TreeEntry",
    "Workspace",
    "WorkspaceError",
    "checkout",
]
