"""Where the files of a session are: named by the user, around here, or known to this machine.

A path is never taken from stored data. What a checkpoint calls its workspace is compared with the
workspaces that this machine has used itself, and only where that very session worked in one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.exits import Refused, UsageError
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Snapshot


def add_workspace(parser: Parser) -> None:
    """Let a command be told where the files of the session are."""
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="the directory of the session's files (default: where it worked on this machine)",
    )


def folder_for(
    client: SyncClient,
    session: SessionInfo | CheckpointInfo,
    snapshot: Snapshot,
    given: Path | None = None,
) -> Path | None:
    """Return the directory of a session's files; None if it is neither named nor known here."""
    from holdfast.cli.access.trees import folder_of
    from holdfast.workspace import registry

    if given is not None:
        if not given.is_dir():
            raise UsageError(f"--workspace {given}: there is no such directory")
        return given.resolve()
    here = folder_of(snapshot)
    if here is not None:
        return here
    own = registry.digest(session.agent_id, session.session_id)
    known = [
        place.root
        for place in registry.find(client.store, snapshot.workspace)
        if own in place.sessions
    ]
    if len(known) > 1:
        listed = ", ".join(clean(os.fsdecode(root)) for root in known)
        raise Refused(
            f"the session worked in several directories ({listed}): name one, --workspace"
        )
    return Path(os.fsdecode(known[0])) if known else None


def elsewhere(session: SessionInfo | CheckpointInfo, snapshot: Snapshot) -> str:
    """Return what to say of files whose directory this machine does not know."""
    name = clean(str(snapshot.workspace).rpartition("-")[0] or str(snapshot.workspace))
    return (
        f"session {clean(session.session_id)!r} has files, of a directory {name!r} in which it has "
        "not worked on this machine"
    )
