"""The files of a run: its workspace, captured with every checkpoint and put back on resume."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.stores.base import Store
from holdfast.verbs import plan
from holdfast.verbs.plan import Plan

if TYPE_CHECKING:
    from holdfast.workspace import Workspace


class WorkspaceLike(Protocol):
    """What a run needs of a workspace."""

    path: Path

    def capture(self) -> dict[str, Any]:
        """The files as they are, kept: what the payload of a checkpoint holds of them."""

    def put_back(self, captured: dict[str, Any]) -> Any:
        """Make the files what they were; what is replaced is kept first."""

    def fork_captured(self, captured: dict[str, Any], path: str | Path) -> WorkspaceLike:
        """A workspace at another path with the files as they were."""


class Directory:
    """A workspace as a run uses it."""

    def __init__(self, workspace: Workspace, store: Store) -> None:
        self.workspace = workspace
        self.path = Path(workspace.path)
        self._store = store

    def capture(self) -> dict[str, Any]:
        """The files as they are, kept."""
        return self.workspace.snapshot_for_checkpoint(store=self._store).as_value()

    def put_back(self, captured: dict[str, Any]) -> None:
        """Make the files what they were, unless they are; what is replaced is kept first."""
        from holdfast.workspace import Snapshot

        self.workspace.restore(Snapshot.from_value(captured))

    def fork_captured(self, captured: dict[str, Any], path: str | Path) -> Directory:
        """A workspace at another path with the files as they were."""
        from holdfast.workspace import Snapshot

        fork = self.workspace.fork(Snapshot.from_value(captured), Path(path))
        return Directory(fork, self._store)


class Files:
    """A workspace, as plans."""

    def __init__(self, opening: Callable[[], WorkspaceLike]) -> None:
        self._opening = opening

    @cached_property
    def workspace(self) -> WorkspaceLike:
        """The workspace, opened when it is needed first."""
        return self._opening()

    def open(self) -> Plan[None]:
        """Open it, which may have to wait for others."""
        yield from plan.do(lambda: self.workspace)

    @property
    def shown(self) -> Any:
        """The workspace as users know it."""
        return self.workspace.workspace if isinstance(self.workspace, Directory) else self.workspace

    def capture(self) -> Plan[dict[str, Any]]:
        """The files as they are, to be kept in a checkpoint."""
        return (yield from plan.do(self.workspace.capture))

    def put_back(self, captured: dict[str, Any]) -> Plan[Any]:
        """Make the files what they were; what is replaced is kept first."""
        return (yield from plan.do(lambda: self.workspace.put_back(captured)))
