"""What a rewind would do, in words and in JSON, and the points among which one is chosen."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.opening import LazyClient
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.file_changes import MANY, changes_of, lines_by_file, plus_minus
from holdfast.cli.output.units import age, many
from holdfast.coding_agents.keeping import EVENT
from holdfast.coding_agents.recorded import main_session_of, program_of
from holdfast.coding_agents.told import Moment
from holdfast.system.terminal_text import clean, clean_lines, pad, width

if TYPE_CHECKING:
    from holdfast.cli.access.rewind_since import Since
    from holdfast.cli.access.short_ids import ShortIds
    from holdfast.cli.output.terminal import Terminal
    from holdfast.client import SyncClient
    from holdfast.coding_agents.rewinding import Rewind
    from holdfast.core.conversation.said import Said
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import Restored, Workspace

_LISTED = 10
_RECENT = 600.0
"""Seconds for which a session that did not end is taken to be at work."""


class PointLines:
    """The points of a session, a line each; what is not seen is not worked out."""

    def __init__(
        self,
        client: SyncClient,
        infos: Sequence[CheckpointInfo],
        head: CheckpointInfo,
        terminal: Terminal,
    ) -> None:
        self._client = LazyClient(client.store)
        self._infos = infos
        self._head = head.checkpoint_id
        self._terminal = terminal
        self._names = [_name(each) for each in infos]
        room = max(terminal.width - 36, 20)
        self._widest = min(max(map(width, self._names), default=0), min(room, 64))
        self._changed: dict[str, str] = {}

    def __call__(self, numbers: Sequence[int]) -> list[str]:
        new = [self._infos[n] for n in numbers if self._infos[n].checkpoint_id not in self._changed]
        found = changes_of(self._client, new)
        for info in new:
            changed = found.get(info.checkpoint_id)
            said = "" if changed is None else changed.said(self._terminal.unicode)
            self._changed[info.checkpoint_id] = said.removeprefix("~")
        return [self._line(n) for n in numbers]

    def _line(self, number: int) -> str:
        info = self._infos[number]
        mark = "@" if info.checkpoint_id == self._head else " "
        name = pad(self._names[number], self._widest)
        changed = self._changed[info.checkpoint_id]
        return f"{mark} {_when(info.created_at)}  {name}  {changed}".rstrip()

    @property
    def texts(self) -> list[str]:
        """What is filtered by."""
        return self._names


def _name(info: CheckpointInfo) -> str:
    name = step_of(info)
    if main_session_of(info) == info.session_id:
        return name
    kind = info.metadata.get("subagent_type")
    return f"  {clean(kind) if isinstance(kind, str) else 'subagent'}: {name}"


def _when(moment: datetime) -> str:
    there = moment.astimezone()
    is_today = there.date() == datetime.now(UTC).astimezone().date()
    return there.strftime("%H:%M:%S" if is_today else "%d %b %H:%M").rjust(8)


def preview(
    going: Rewind,
    happened: Since,
    workspace: Workspace | None,
    short: ShortIds,
    terminal: Terminal,
) -> None:
    """Say what would be done, what is left behind, and what stays."""
    program = program_of(going.session.head)
    title = clean(going.session.agent_id) if program is None else program.title
    place = f"{step_of(going.target)} ({short(going.target.checkpoint_id)})"
    terminal.line(f"{title}, session {clean(going.session.session_id)}, goes back to {place}")
    if going.files is not None and workspace is not None:
        counts = _counts(going, workspace)
        _files(going.files, counts, workspace.path, terminal)
    elif going.to is not None:
        terminal.line(f"  files         as they were, in the new directory {clean(str(going.to))}")
    _conversation(going, happened.unsaid, terminal)
    if going.snapshot is not None and going.to is None:
        _stays(happened, terminal)
    _live(going, terminal)


def _counts(going: Rewind, workspace: Workspace) -> dict[str, tuple[int, int]]:
    files = going.files
    if files is None or not 0 < len(files.written) + len(files.removed) <= MANY:
        return {}
    text = workspace.diff(going.snapshot, text=True).text if going.snapshot is not None else ""
    # From there to now: going back is the other way round.
    return {path: (removed, added) for path, (added, removed) in lines_by_file(text or "").items()}


def _files(
    planned: Restored, counts: dict[str, tuple[int, int]], folder: str, terminal: Terminal
) -> None:
    numbers = f"{len(planned.written)} written, {len(planned.removed)} removed"
    terminal.line(f"  files         {numbers} in {clean(folder)}")
    shown = [*(("write ", p) for p in planned.written), *(("remove", p) for p in planned.removed)]
    for what, path in shown[:_LISTED]:
        plus = counts.get(path)
        counted = "" if plus is None else f"  {plus_minus(*plus, terminal.unicode)}"
        terminal.line(f"    {what} {clean(path)}{counted}")
    if len(shown) > _LISTED:
        terminal.line(f"    … and {len(shown) - _LISTED} more")


def _conversation(going: Rewind, left: Sequence[Said], terminal: Terminal) -> None:
    at, cut = going.conversation, going.cut
    if at is None or cut is None:
        return
    step = step_of(at.info)
    is_before = at.point.moment is Moment.PROMPT
    ends = "begins anew" if cut.is_empty else f"ends {'before' if is_before else 'after'} {step}"
    terminal.line(f"  conversation  {ends}, as a new session{_gone(left)}")
    if at.info.session_id != going.target.session_id:
        terminal.line("                (the files are those of a subagent: it is called anew)")
    if cut.note:
        terminal.line(f"                {clean(cut.note)}")


def _gone(left: Sequence[Said]) -> str:
    if not left:
        return ""
    prompts = sum(
        each.role == "user" and all(part["type"] != "tool_call_response" for part in each.parts)
        for each in left
    )
    among = f", {many(prompts, 'prompt')} among them" if prompts else ""
    are = "is" if len(left) == 1 else "are"
    return f"; {many(len(left), 'message')} {are} left out{among}"


def _stays(happened: Since, terminal: Terminal) -> None:
    if happened.shells:
        done = many(happened.shells, "shell command")
        terminal.line(f"  stays done    what {done} since then did outside of the directory")
    for info in happened.outside[:_LISTED]:
        terminal.line(f"    {step_of(info)}")
    for session, number in list(happened.others.items())[:_LISTED]:
        terminal.line(
            f"  also taken back: {many(number, 'checkpoint')} of session {clean(session)}, which "
            "works in the same directory"
        )


def _live(going: Rewind, terminal: Terminal) -> None:
    head = going.session.head
    seconds = (datetime.now(UTC) - head.created_at).total_seconds()
    if going.conversation is None or not 0 <= seconds < _RECENT:
        return
    program, event = program_of(head), str(head.metadata.get("event"))
    is_over = event == EVENT or (program is not None and program.moments.get(event) is Moment.END)
    if not is_over:
        terminal.line(
            f"  still at work? its last event came {age(head.created_at)}: end the program first, "
            "or what it does next stays"
        )


def command(words: Sequence[str], folder: Path | None) -> str:
    """Return a command as it is typed, from here."""
    typed = shlex.join(words)
    if folder is None or os.path.realpath(folder) == os.path.realpath(os.curdir):
        return typed
    return f"cd {shlex.quote(str(folder))} && {typed}"


def say_how_to_go_on(
    words: Sequence[str] | None, prompt: str | None, folder: Path | None, terminal: Terminal
) -> None:
    """Print the command that goes on, and the prompt to word anew."""
    if words is not None:
        terminal.line(f"go on with: {command(words, folder)}")
    if prompt is not None:
        terminal.line("the prompt was:")
        for line in clean_lines(prompt).splitlines() or [""]:
            terminal.line(f"  {line}")


def files_json(files: Restored | None) -> dict[str, Any] | None:
    """Return what is done to files, in JSON."""
    if files is None:
        return None
    return {"written": list(files.written), "removed": list(files.removed)}
