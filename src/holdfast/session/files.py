"""The files of a run: its workspace, captured with every checkpoint and put back on resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from holdfast.verbs import plan
from holdfast.verbs.plan import Plan


class WorkspaceLike(Protocol):
    """What a run needs of a workspace."""

    path: Path

    def capture(self) -> dict[str, Any]:
        """The files as they are, kept: what the payload of a checkpoint holds of them."""

    def put_back(self, captured: dict[str, Any]) -> Any:
        """Make the files what they were; what is replaced is kept first."""

    def fork_captured(self, captured: dict[str, Any], path: str | Path) -> WorkspaceLike:
        """A workspace at another path with the files as they were."""


class Files:
    """A workspace, as plans."""

    def __init__(self, workspace: WorkspaceLike) -> None:
        self.workspace = workspace

    def capture(self) -> Plan[dict[str, Any]]:
        """The files as they are, to be kept in a checkpoint."""
        return (yield from plan.do(self.workspace.capture))

    def put_back(self, captured: dict[str, Any]) -> Plan[Any]:
        """Make the files what they were; what is replaced is kept first."""
        return (yield from plan.do(lambda: self.workspace.put_back(captured)))
