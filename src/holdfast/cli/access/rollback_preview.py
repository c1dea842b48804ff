"""What a rollback from the command line would do, and whether it may."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.session_run import SessionFiles
from holdfast.cli.access.short_ids import ShortIds
from holdfast.cli.exits import Refused
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many
from holdfast.errors import RunError
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.effects import Effect
    from holdfast.session.functions import Functions
    from holdfast.session.rollback import RolledBack
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Restored

_LISTED = 10


@dataclass(frozen=True)
class Terms:
    """How far a rollback may go, as whoever asked for it said."""

    scope: str = "all"
    """What goes back: ``all``, ``state`` or ``files``."""
    accept_irreversible: bool = False
    takeover: bool = False
    workspace: Path | None = None
    """Where the files are, if that was said."""
    tools: Sequence[Callable[..., Any]] = ()
    """Functions that undo calls."""


@dataclass(frozen=True)
class RollbackPreview:
    """What a rollback would do."""

    session: SessionInfo
    target: CheckpointInfo
    changes: int
    undone: list[Effect]
    standing: list[Effect]
    files: Restored | None
    folder: str | None
    """Where the files are."""
    short: ShortIds


@contextmanager
def files_of(
    client: SyncClient, session: SessionInfo, target: CheckpointInfo, scope: str, given: Path | None
) -> Iterator[SessionFiles | None]:
    """Give the files of a session, if its head or where it goes back to has any."""
    from holdfast.cli.access.directories import elsewhere, folder_for
    from holdfast.client.with_files import snapshot_of

    at_head = snapshot_of(client, session.head) or snapshot_of(client, target)
    if at_head is None:
        yield None
        return
    folder = folder_for(client, session, at_head, given)
    if folder is not None:
        from holdfast.workspace import Workspace

        with Workspace(folder, store=client) as workspace:
            yield SessionFiles(workspace, at_head.as_value())
    elif scope == "state":
        yield SessionFiles(None, at_head.as_value())
    else:
        raise Refused(
            f"{elsewhere(session, at_head)}: name it with --workspace DIR, or leave the files "
            "alone with --scope state"
        )


def look(
    client: SyncClient,
    session: SessionInfo,
    target: CheckpointInfo,
    files: SessionFiles | None,
    terms: Terms,
) -> RollbackPreview:
    """Return what would be done; an error if it cannot be."""
    from holdfast.cli.access.calls import calls_after, calls_behind
    from holdfast.client.with_files import snapshot_of
    from holdfast.session.functions import Functions, named

    since: list[Effect] = []
    if terms.scope != "files":  # the files alone undo no call
        after = calls_after(client, session.head)
        left = calls_behind(client, target, session.head, after)
        since = [call for call in left if call.stands() and not call.abandoned]
    lasting = [call for call in since if call.is_final or call.is_unknown]
    undone = [call for call in since if call not in lasting]
    _check_given(
        Functions(named(terms.tools)), [call for call in undone if call.compensate is not None]
    )
    if lasting and not terms.accept_irreversible:
        raise Refused(
            "this would go back past what cannot be undone:\n"
            + "\n".join(f"  {_told(call)}" for call in lasting)
            + "\nTo go back all the same and leave it done, pass --accept-irreversible",
            unless="accept_irreversible",
        )
    tree = snapshot_of(client, target)
    planned = None
    workspace = None if files is None or terms.scope == "state" else files.workspace
    if workspace is not None and tree is not None:
        planned = workspace.restore(tree, dry_run=True)
    changes = client.diff(session.head.checkpoint_id, target.checkpoint_id).part("$")
    folder = None if planned is None or workspace is None else workspace.path
    short = ShortIds(client.store, [session.head, target])
    return RollbackPreview(session, target, len(changes), undone, lasting, planned, folder, short)


def _check_given(functions: Functions, undone: list[Effect]) -> None:
    """Refuse where a call can only be undone by a function that no named module gives."""
    lost = []
    for call in undone:
        try:
            functions.find(call)
        except RunError as error:
            lost.append((call, error))
    if not lost:
        return
    if all("several that were given" in str(error) for _, error in lost):
        raise Refused(clean(str(lost[0][1])))
    raise Refused(
        "these calls can be undone, but only by functions that are not here:\n"
        + "\n".join(f"  {clean(f'{call}: undone by {call.compensate}')}" for call, _ in lost)
        + "\nName the modules that define them with --import, or roll back in the program that "
        "made them"
    )


def _told(call: Effect) -> str:
    return clean(str(call)) + (" (its end is unknown)" if call.is_unknown else "")


def preview(going: RollbackPreview, terminal: Terminal) -> None:
    """Say what would be done."""
    head, target = (
        f"{step_of(info)} ({going.short(info.checkpoint_id)})"
        for info in (going.session.head, going.target)
    )
    terminal.line(f"session {clean(going.session.session_id)} goes back from {head} to {target}")
    terminal.line(f"  state  {many(going.changes, 'change')}")
    if going.files is not None:
        preview_files(going.files, going.folder or "", terminal)
    for call in going.undone:
        terminal.line(f"  undo   {clean(str(call))}")
    for call in going.standing:
        terminal.line(f"  stays done  {_told(call)}")


def preview_files(planned: Restored, folder: str, terminal: Terminal) -> None:
    """Say what is about to be done to the files in a directory."""
    written, removed = planned.written, planned.removed
    terminal.line(f"  files  {len(written)} written, {len(removed)} removed in {clean(folder)}")
    shown = [*(f"write {each}" for each in written), *(f"remove {each}" for each in removed)]
    for line in shown[:_LISTED]:
        terminal.line(f"    {clean(line)}")
    if len(shown) > _LISTED:
        terminal.line(f"    … and {len(shown) - _LISTED} more")


def as_json(going: RollbackPreview, done: RolledBack | None) -> dict[str, Any]:
    """Return what is or would be done, in JSON."""
    files = going.files
    undone = going.undone if done is None else done.compensated
    remaining = going.standing if done is None else done.remaining
    return {
        "agent_id": going.session.agent_id,
        "session_id": going.session.session_id,
        "from": going.session.head.checkpoint_id,
        "target": going.target.checkpoint_id,
        "checkpoint_id": None if done is None else done.checkpoint_id,
        "dry_run": done is None,
        "changes": going.changes,
        "files": None
        if files is None
        else {"written": list(files.written), "removed": list(files.removed)},
        "workspace": going.folder,
        "undone": [call.id for call in undone],
        "remaining": [call.id for call in remaining],
        "calls": {call.id: str(call) for call in (*undone, *remaining)},
        "problems": {} if done is None else dict(done.problems),
    }
