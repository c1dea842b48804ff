"""The files of a run: its workspace, captured with every checkpoint and put back on resume."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from holdfast.errors import InvalidArgumentError
from holdfast.runtime import Runtime, steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Store

if TYPE_CHECKING:
    from holdfast.workspace import AsyncWorkspace, Restored, TreeDiff, Workspace


class WorkspaceLike(Protocol):
    """What a run needs of a workspace."""

    path: Path

    def capture(self) -> dict[str, Any]:
        """Keep the files as they are, and return what the payload of a checkpoint holds of them."""

    def put_back(self, captured: dict[str, Any]) -> Any:
        """Make the files what they were; what is replaced is kept first."""

    def fork_captured(self, captured: dict[str, Any], path: str | Path) -> WorkspaceLike:
        """Return a workspace at another path with the files as they were."""


@runtime_checkable
class BeforeOthers(Protocol):
    """A workspace that leaves files out, and takes in those that others are about to replace."""

    def capture_before(self, going_to: dict[str, Any]) -> dict[str, Any]:
        """Keep the files as they are, and what putting others back will replace, ignored or not."""


@runtime_checkable
class Named(Protocol):
    """A workspace that says of what it captures where that is."""

    @property
    def name(self) -> str | None:
        """What it is called; None if its directory is not at hand."""


class Directory:
    """A workspace as a run uses it."""

    def __init__(self, given: Workspace | AsyncWorkspace, store: Store) -> None:
        from holdfast.workspace.async_workspace import as_workspace

        self.given = given
        self.workspace = as_workspace(given)
        self.path = Path(self.workspace.path)
        self._store = store

    @property
    def name(self) -> str:
        return self.workspace.name

    def capture(self) -> dict[str, Any]:
        """Keep the files as they are, and return what a checkpoint holds of them."""
        return self.workspace.snapshot_for_checkpoint(store=self._store).as_value()

    def capture_before(self, going_to: dict[str, Any]) -> dict[str, Any]:
        """Keep the files as they are, and what putting others back will replace, ignored or not."""
        from holdfast.workspace import Snapshot

        going = Snapshot.from_value(going_to)
        return self.workspace.snapshot_for_checkpoint(store=self._store, before=going).as_value()

    def put_back(self, captured: dict[str, Any]) -> Restored:
        """Make the files what they were, unless they are; what is replaced is kept first."""
        from holdfast.workspace import Snapshot

        return self.workspace.restore(Snapshot.from_value(captured))

    def changes(self, before: dict[str, Any], after: dict[str, Any]) -> TreeDiff:
        """Return what is other in the files as they were captured later."""
        from holdfast.workspace.diff import compare_captured

        return compare_captured(self._store, before, after)

    def fork_captured(self, captured: dict[str, Any], path: str | Path) -> Directory:
        """Return a workspace at another path with the files as they were."""
        from holdfast.workspace import AsyncWorkspace, Snapshot

        fork = self.workspace.fork(Snapshot.from_value(captured), Path(path))
        is_async = isinstance(self.given, AsyncWorkspace)
        return Directory(AsyncWorkspace.of(fork) if is_async else fork, self._store)


class Files:
    """A workspace, as plans."""

    def __init__(
        self, opening: Callable[[], WorkspaceLike], settles: bool = True, is_there: bool = True
    ) -> None:
        self._opening = opening
        self._is_there = is_there
        """Whether the directory is at hand, or only what was recorded of it."""
        self.settles = settles
        """Whether opening the session puts them back, or captures what was edited meanwhile."""
        self.agree: bool | None = None
        """Whether they are as recorded, but for what others edit; None while nobody looked."""

    @cached_property
    def workspace(self) -> WorkspaceLike:
        """The workspace, opened when it is needed first."""
        return self._opening()

    def open(self) -> Plan[None]:
        """Open it, which may have to wait for others."""
        self.agree = None
        yield from steps.do(lambda: self.workspace)

    @property
    def shown(self) -> Any:
        """The workspace as users know it."""
        return self.workspace.given if isinstance(self.workspace, Directory) else self.workspace

    def capture(self, going_to: dict[str, Any] | None = None) -> Plan[dict[str, Any]]:
        """Keep the files as they are, and return what a checkpoint holds of them.

        Before others are put back, all that these will replace is kept too.
        """
        workspace = self.workspace
        if going_to is None or not isinstance(workspace, BeforeOthers):
            captured = yield from steps.do(workspace.capture)
        else:
            captured = yield from steps.do(lambda: workspace.capture_before(going_to))
        self.agree = True if self._is_there else self.agree
        return captured

    def put_back(self, captured: dict[str, Any]) -> Plan[Any]:
        """Make the files what they were; what is replaced is kept first."""
        done = yield from steps.do(lambda: self.workspace.put_back(captured))
        self.agree = True if self._is_there else self.agree
        return done

    def as_own(self, captured: dict[str, Any]) -> dict[str, Any]:
        """Return files that are put into this directory as those of this directory.

        They may have been captured in another, as those of a fork that is adopted.
        """
        workspace = self.workspace
        if not isinstance(workspace, Named) or workspace.name is None:
            return captured
        if "workspace" not in captured:  # a workspace of the user's own, which says it otherwise
            return captured
        return {**captured, "workspace": workspace.name}

    def opened_for(self, agent_id: str, session_id: str) -> Plan[bool]:
        """Note on this machine that a session works here; returns whether it did before."""
        workspace = self.workspace
        if not isinstance(workspace, Directory):
            return True
        return (yield from steps.do(lambda: workspace.workspace.works_for(agent_id, session_id)))

    def fall_behind(self) -> None:
        """Know that they may not be as recorded: a tool was cut off, or they are to be put back."""
        self.agree = False if self._is_there else self.agree

    def is_home_of(self, captured: dict[str, Any], is_noted: bool, was_run: bool) -> bool:
        """Return whether the files were captured in this very directory, on this machine.

        The session is noted to have worked here; or it was run, before that was noted.
        """
        workspace = self.workspace
        if not isinstance(workspace, Directory):
            return True
        shown = workspace.workspace
        return captured.get("workspace") == shown.name and (
            is_noted or (was_run and shown.was_known)
        )

    def changed(self, before: dict[str, Any], after: dict[str, Any]) -> Plan[int]:
        """Return how many files are other ones; times alone do not count."""
        if before.get("tree_id") == after.get("tree_id"):
            return 0
        workspace = self.workspace
        if not isinstance(workspace, Directory):
            return 1
        found = yield from steps.do(lambda: workspace.changes(before, after))
        every = (found.added, found.removed, found.modified, found.renamed, found.mode)
        return sum(map(len, every))


def files_of(runtime: Runtime, workspace: Any) -> Files | None:
    """Return the files of a run, from a workspace or the path of a directory."""
    if workspace is None:
        return None
    from holdfast.workspace import AsyncWorkspace, Workspace

    known = (str, Path, Workspace, AsyncWorkspace)
    if not isinstance(workspace, known) and not hasattr(workspace, "capture"):
        raise InvalidArgumentError(
            f"workspace is a Workspace or the path of a directory, not {type(workspace).__name__}"
        )

    def opening() -> Any:
        found = workspace
        if isinstance(found, (str, Path)):
            found = Workspace(Path(found), store=runtime)
        if isinstance(found, (Workspace, AsyncWorkspace)):
            return Directory(found, runtime.store)
        return found

    return Files(opening)
