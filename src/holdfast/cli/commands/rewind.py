"""``holdfast rewind``: take files and conversation of a coding agent back together."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.directories import add_workspace
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.rewind_points import meant, points
from holdfast.cli.exits import OK, NotFound, Refused, UsageError
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.errors import TranscriptError
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.coding_agents.rewinding import Rewind, Rewound
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Workspace

_LISTED = 20


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "For sessions that `holdfast hook` recorded of Claude Code, Codex, Gemini CLI or opencode. "
        "Without a\ncheckpoint it shows the points of the session, and you choose: arrows or j k, "
        "enter, / to filter, q.\n\nThe files become what they were; the conversation up to there "
        "is written as a new session of the\nprogram, and the command that goes on with it is "
        "printed. At a prompt you are given its text, to\nword it anew. Nothing is lost: the files "
        "as they are now and the old session stay, and `holdfast\nundo` leads back to both.\n\n"
        "What commands did elsewhere (a push, a deployment, a database) stays done.",
        "holdfast rewind",
        "holdfast rewind @- --dry-run",
        "holdfast rewind 019a9563e5d2 --yes",
        "holdfast rewind 'Bash npm test (failed, 3)' --files",
        "holdfast rewind 019a9563e5d2 --to ../second-try",
    )
    add_checkpoint(parser)
    add_session(parser)
    parser.add_argument(
        "--files", action="store_true", help="the files alone, in the session as it is"
    )
    parser.add_argument(
        "--conversation", action="store_true", help="the conversation alone, files stay as they are"
    )
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="leave all as it is, and go on in a new directory"
    )
    add_workspace(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Take a session back to the point that is meant."""
    if options.files and options.conversation:
        options.files = options.conversation = False  # both is what it does anyway
    if options.to is not None and (options.files or options.conversation):
        raise UsageError("--to takes files and conversation: leave out --files and --conversation")
    with open_client(options) as client:
        session, target = meant(client, options.checkpoint, options.session)
        _check_conversation(session, options)
        if target is None:
            target = _chosen(client, session, options, terminal)
        try:
            return _rewind(client, session, target, options, terminal)
        except TranscriptError as error:
            raise TranscriptError(
                f"{error}. The files alone can be put back: holdfast rewind "
                f"{target.checkpoint_id} --files"
            ) from error


def _check_conversation(session: SessionInfo, options: Namespace) -> None:
    """Take the files alone where there is no conversation: with a program that was wrapped."""
    from holdfast.coding_agents.programs import WRAPPED

    if session.head.metadata.get("program") != WRAPPED:
        return
    if options.conversation or options.to is not None:
        what = "--conversation" if options.conversation else "--to"
        raise Refused(
            f"session {clean(session.session_id)!r} is of a program that was wrapped, and has "
            f"files alone: leave out {what}"
            + (", and use `holdfast fork --to`" if options.to is not None else "")
        )
    options.files = True


def _chosen(
    client: SyncClient, session: SessionInfo, options: Namespace, terminal: Terminal
) -> CheckpointInfo:
    """Return the point that the user chooses; without a terminal the points are named."""
    from holdfast.cli.access.short_ids import ShortIds
    from holdfast.cli.output.picker import pick
    from holdfast.cli.output.rewind_preview import PointLines

    every = points(client, session)
    if terminal.json or not (sys.stdin.isatty() and terminal.is_terminal):
        short = ShortIds(client.store, every[:_LISTED])
        listed = [f"  {short(each.checkpoint_id)}  {step_of(each)}" for each in every[:_LISTED]]
        more = len(every) - len(listed)
        listed += [f"  … and {more} older: holdfast log"] if more > 0 else []
        raise UsageError(
            "say where to, there is no terminal to choose on: holdfast rewind ID with one of\n"
            + "\n".join(listed)
        )
    lines = PointLines(client, every, session.head, terminal)
    question = f"Rewind {clean(session.agent_id)} to (@ is where it is):"
    return every[pick(lines.texts, lines, question, terminal)]


def _rewind(
    client: SyncClient,
    session: SessionInfo,
    target: CheckpointInfo,
    options: Namespace,
    terminal: Terminal,
) -> int:
    from holdfast.cli.access.rewind_since import since
    from holdfast.cli.access.short_ids import ShortIds
    from holdfast.cli.output.rewind_preview import preview, say_how_to_go_on
    from holdfast.coding_agents import rewinding

    with _workspace_of(client, session, target, options) as workspace:
        going = rewinding.look(
            client,
            session,
            target,
            workspace,
            with_files=not options.conversation,
            with_conversation=not options.files,
            to=None if options.to is None else Path(os.path.abspath(options.to)),
        )
        if not terminal.json:
            happened = since(client, going)
            preview(going, happened, workspace, ShortIds(client.store, [target]), terminal)
        if options.dry_run:
            if terminal.json:
                terminal.emit(_json(going, None, workspace))
            return OK
        terminal.confirm(f"Rewind {clean(session.session_id)}?")
        if going.to is not None or workspace is None:
            done, project = _elsewhere(client, going, workspace, options, terminal)
        elif options.files:
            done, project = rewinding.put_files_back(client, going, workspace), None
        else:
            project = rewinding.project_of(client, session, Path(workspace.path))
            done = rewinding.carry_out(client, going, workspace, project)
    if terminal.json:
        terminal.emit(_json(going, done, workspace))
        return OK
    _say_done(going, done, terminal)
    say_how_to_go_on(done.resume, going.prompt, project, terminal)
    return OK


def _say_done(going: Rewind, done: Rewound, terminal: Terminal) -> None:
    name = step_of(going.target)
    if done.resume is None:
        said = f"the files are those of {name} now; the session goes on as it is"
    else:
        said = f"rewound to {name}: session {clean(done.session_id)} goes on from there"
    back = "" if going.to is not None else "; `holdfast undo` leads back"
    terminal.line(said + back)


@contextmanager
def _workspace_of(
    client: SyncClient, session: SessionInfo, target: CheckpointInfo, options: Namespace
) -> Iterator[Workspace | None]:
    """Give the directory of the session; None if it is not needed, and not known here."""
    from holdfast.cli.access.directories import elsewhere, folder_for
    from holdfast.client.with_files import snapshot_of
    from holdfast.workspace import Workspace

    at_head = snapshot_of(client, session.head) or snapshot_of(client, target)
    if at_head is None:
        raise NotFound(f"the checkpoints of session {session.session_id!r} hold no files")
    folder = folder_for(client, session, at_head, options.workspace)
    if folder is not None:
        with Workspace(folder, store=client) as workspace:
            yield workspace
    elif options.to is not None:
        yield None
    else:
        raise Refused(
            f"{elsewhere(session, at_head)}: name it with --workspace DIR, or go on in a new one "
            "with --to DIR"
        )


def _elsewhere(
    client: SyncClient,
    going: Rewind,
    old: Workspace | None,
    options: Namespace,
    terminal: Terminal,
) -> tuple[Rewound, Path | None]:
    """Go on in a new directory: its files, its link to this store, then the session."""
    from holdfast.cli.access.links import link, say_hook, say_linked
    from holdfast.cli.access.trees import unpack
    from holdfast.coding_agents import rewinding
    from holdfast.workspace import Workspace

    if going.to is None or going.snapshot is None:
        raise UsageError("name the new directory: --to DIR")
    if old is not None and going.to.resolve().is_relative_to(Path(old.path)):
        raise UsageError(f"--to {going.to}: a new directory lies outside of {old.path}")
    if not (going.to.is_dir() and _has_files(client, going, going.to)):
        unpack(client, going.snapshot, going.to, terminal.progress("files"))
    is_linked = link(options, going.to)
    if not terminal.json:
        say_linked(is_linked, terminal)
    project = root = going.to.resolve()
    if old is not None:
        before = Path(old.path)
        below = rewinding.project_of(client, going.session, before).relative_to(before)
        project = root / below if (root / below).is_dir() else root
    with Workspace(root, store=client) as workspace:
        done = rewinding.carry_out(client, going, workspace, project)
    if not terminal.json:
        say_hook(going.target, project, terminal)
    return done, project


def _has_files(client: SyncClient, going: Rewind, directory: Path) -> bool:
    """Return whether a directory was made by a try that was cut short: it has just the files."""
    from holdfast.stores import linked
    from holdfast.workspace import Workspace

    if going.snapshot is None or linked.of(directory) is None:
        return False
    with Workspace(directory, store=client) as workspace:
        if workspace.sessions_known():
            return False
        return not workspace.restore(going.snapshot, dry_run=True).changed


def _json(going: Rewind, done: Rewound | None, workspace: Workspace | None) -> dict[str, Any]:
    from holdfast.cli.output.rewind_preview import files_json

    conversation = None
    if going.cut is not None:
        path = None if done is None or done.path is None else str(done.path)
        conversation = {"path": path, "entries": len(going.cut.entries)}
    folder = going.to if going.to is not None else None if workspace is None else workspace.path
    return {
        "agent_id": going.session.agent_id,
        "session_id": going.session.session_id,
        "target": going.target.checkpoint_id,
        "from": going.session.head.checkpoint_id if done is None else done.before,
        "new_session_id": None if done is None or done.resume is None else done.session_id,
        "checkpoint_id": None if done is None else done.checkpoint_id,
        "dry_run": done is None,
        "files": files_json(going.files),
        "workspace": None if folder is None else str(folder),
        "conversation": conversation,
        "note": None if going.cut is None else going.cut.note,
        "prompt": going.prompt,
        "resume": None if done is None else done.resume,
    }
