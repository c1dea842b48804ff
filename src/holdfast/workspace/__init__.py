"""The workspace: snapshot, roll back and fork the agent's files."""

from __future__ import annotations

from holdfast.errors import WorkspaceError
from holdfast.workspace.async_workspace import AsyncWorkspace
from holdfast.workspace.capture import Progress
from holdfast.workspace.diff import TreeDiff
from holdfast.workspace.paths import AnyPath
from holdfast.workspace.results import Restored, Skipped, Snapshot, TreeEntry
from holdfast.workspace.workspace import StoreLike, TreeLike, Workspace, checkout

__all__ = [
    "AnyPath",
    "AsyncWorkspace",
    "Progress",
    "Restored",
    "Skipped",
    "Snapshot",
    "StoreLike",
    "TreeDiff",
    "TreeEntry",
    "TreeLike",
    "Workspace",
    "WorkspaceError",
    "checkout",
]
