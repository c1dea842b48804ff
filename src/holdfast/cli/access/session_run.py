"""Working on a session from the command line: through a run, so that leases and fences hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import Refused
from holdfast.model import Framework

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.run import Run
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Workspace


class _Left(BaseException):
    """The command line lets go of a session: no checkpoint says that a program has ended."""


class SessionFiles:
    """The files of a session while the command line works on it.

    They are captured as they are, with what was edited since the last checkpoint, so that an undo
    leads back to exactly that. Without their directory at hand they stay what the head says.
    """

    def __init__(self, workspace: Workspace | None, at_head: dict[str, Any]) -> None:
        self.workspace = workspace
        self.path = Path() if workspace is None else Path(workspace.path)
        self.is_opened = False
        self.undo_tree: str | None = None
        """Leads back to the files as they were."""
        self._at_head = at_head

    @property
    def name(self) -> str | None:
        return None if self.workspace is None else self.workspace.name

    def capture(self) -> dict[str, Any]:
        """Return the files as they are, or as they were at the head."""
        if self.workspace is None:
            return self._at_head
        return self.workspace.snapshot_for_checkpoint().as_value()

    def capture_before(self, going_to: dict[str, Any]) -> dict[str, Any]:
        """Return the files as they are, and what putting others back will replace."""
        from holdfast.workspace import Snapshot

        if self.workspace is None:
            return self._at_head
        going = Snapshot.from_value(going_to)
        return self.workspace.snapshot_for_checkpoint(before=going).as_value()

    def put_back(self, captured: dict[str, Any]) -> None:
        """Make the files what they were; opening a session alone changes none."""
        from holdfast.workspace import Snapshot

        if self.workspace is not None and self.is_opened:
            self.undo_tree = self.workspace.restore(Snapshot.from_value(captured)).undo_tree

    def fork_captured(self, captured: dict[str, Any], path: str | Path) -> SessionFiles:
        """Forks have no files of their own here: ``holdfast fork --to`` makes them."""
        return SessionFiles(None, captured)


@contextmanager
def opened(
    client: SyncClient,
    session: SessionInfo,
    files: SessionFiles | None = None,
    takeover: bool = False,
    tools: Sequence[Callable[..., Any]] = (),
) -> Iterator[Run]:
    """Open a run on a session, without the classes of its state; its end adds no checkpoint."""
    from holdfast.session.files import Files
    from holdfast.session.options import options_of
    from holdfast.session.run import Run

    check_is_ours(session)
    options = options_of(
        session.agent_id,
        session.session_id,
        takeover=takeover,
        on_divergence="live",
        tools=tools,
    )
    its = None
    if files is not None:
        its = Files(lambda: files, settles=False, is_there=files.workspace is not None)
    run = Run(client.runtime, replace(options, on_unknown="raw"), its)
    try:
        run._open()
        if files is not None:
            files.is_opened = True
        yield run
    finally:
        run._close(_Left())


def check_is_ours(session: SessionInfo, target: CheckpointInfo | None = None) -> None:
    """Refuse to write into a session that its framework keeps the book of, which LangGraph does.

    Other adapters go on from whatever is the head.
    """
    if session.head.framework is Framework.LANGGRAPH:
        place = (target or session.head).metadata
        raise Refused(
            f"session {session.session_id!r} is kept by langgraph, which decides itself where it "
            f"goes on: invoke the graph with thread_id {place.get('thread_id')!r} and "
            f"checkpoint_id {place.get('checkpoint_id')!r}, or fork the thread (holdfast fork)"
        )
