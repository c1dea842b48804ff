"""The files when a session is opened again: people's own after a clean end, put back after a crash.

A run says when it lets go of a session whether the files are as recorded. If so, whatever is other
when it is opened again was edited by people, and is kept: it becomes a checkpoint of its own. If
not, a call was cut off or the process was killed: the files are put back to what was recorded last,
so that they and the recorded outputs agree, and that is said, noted, and can be taken back.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from holdfast.errors import CheckpointIntegrityError
from holdfast.ids import new_id
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session.effects import Effect
from holdfast.session.files import Files
from holdfast.session.open_session import Opening, OpenSession
from holdfast.verbs import notes

EDITED = "edited_outside"
"""The tag of a checkpoint of what people edited between two runs: how many files."""
RECOVERED = "recovered"
"""How the keys of notes begin that tell of files that were put back."""
_SHOWN = 5


@dataclass(frozen=True)
class Recovered:
    """What was done to the files when a session was opened."""

    reason: Literal["crash", "elsewhere"]
    """Why: the run before was cut off, or the session has not worked in this directory before."""
    undo_tree: str
    """The files as they were found: ``workspace.restore`` and ``holdfast restore`` take it."""
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    """Files that only got another mode or time."""
    call: Effect | None = None
    """The call that was cut off, if one was."""
    session_id: str = ""
    path: str | None = None
    """The directory."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that were changed."""
        return tuple(dict.fromkeys((*self.written, *self.removed, *self.touched)))

    def __str__(self) -> str:
        named = ", ".join(self.paths[:_SHOWN])
        more = f" and {len(self.paths) - _SHOWN} more" if len(self.paths) > _SHOWN else ""
        why = "after a crash" if self.reason == "crash" else "as the session left them elsewhere"
        during = f", which cut off {self.call}" if self.call is not None else ""
        return (
            f"session {self.session_id!r}: files put back {why}{during}: {named}{more} "
            f"(undo: holdfast restore {self.undo_tree}{_to(self.path)})"
        )


def _to(path: str | None) -> str:
    return "" if path is None else f" --to {shlex.quote(path)}"


def settle(session: OpenSession) -> Plan[Recovered | None]:
    """See to the files of a session that is being opened; returns what was done to them."""
    files, opening = session.files, session.opening
    if files is None or not files.settles:
        return None
    is_noted = yield from files.opened_for(*session.options.session)
    if opening is None or opening.files is None:
        return None
    if not isinstance(opening.files, dict):
        raise CheckpointIntegrityError(session.head_id, "its workspace is of another shape")
    lease, unknown = session.checkpointer.lease, session.history.unknown()
    was_run = lease.before is not None
    is_home = files.is_home_of(opening.files, is_noted, was_run)
    if not is_home or (opening.is_fork_root and not was_run):
        return (yield from _put_back(session, files, opening, "elsewhere", None))
    if not lease.was_clean(bool(unknown)):
        cut_off = unknown[-1] if unknown else None
        return (yield from _put_back(session, files, opening, "crash", cut_off))
    if opening.rollback is None:
        yield from _keep(session, files, opening)
    return None


def _keep(session: OpenSession, files: Files, opening: Opening) -> Plan[None]:
    """Capture what people edited since a clean end: it is the truth."""
    now = yield from files.capture()
    edited = yield from files.changed(opening.files, now)
    if edited:
        yield from session.recapture("edited outside", now, {EDITED: edited})


def _put_back(
    session: OpenSession,
    files: Files,
    opening: Opening,
    reason: Literal["crash", "elsewhere"],
    call: Effect | None,
) -> Plan[Recovered | None]:
    """Make the files what was recorded last, and say so if that changed any."""
    done = yield from files.put_back(opening.files)
    if done is None or not done.changed:
        return None
    found = Recovered(
        reason,
        done.undo_tree,
        done.written,
        done.removed,
        done.touched,
        call,
        session.options.session_id,
        str(files.workspace.path),
    )
    value = {
        "reason": found.reason,
        "undo_tree": found.undo_tree,
        "files": len(found.paths),
        "call": None if found.call is None else found.call.id,
        "at": datetime.now(UTC),
    }
    yield from session.checkpointer.note(f"{RECOVERED}/{new_id()}", value)
    logging.getLogger("holdfast").warning("%s", found)
    return found


@dataclass(frozen=True)
class Recovery:
    """A note that files were put back when a session was opened at that checkpoint."""

    checkpoint_id: str
    reason: str
    undo_tree: str
    files: int
    at: datetime | None = None

    def __str__(self) -> str:
        why = "after a crash" if self.reason == "crash" else "as the session left them elsewhere"
        return f"files put back {why} (undo: {self.undo_tree})"


def recoveries(engine: Engine, checkpoint_ids: Iterable[str]) -> Plan[list[Recovery]]:
    """Return where files were put back among these checkpoints, the oldest first."""
    found: list[Recovery] = []
    for note, value in (yield from notes.read(engine, list(checkpoint_ids), on_unknown="raw")):
        if not note.key.startswith(f"{RECOVERED}/") or not isinstance(value, dict):
            continue
        tree, number, at = value.get("undo_tree"), value.get("files"), value.get("at")
        if isinstance(tree, str) and isinstance(number, int):
            when = at if isinstance(at, datetime) else None
            found.append(Recovery(note.scope, str(value.get("reason")), tree, number, when))
    return found
