"""``holdfast export``: checkpoints in one file that any store can import."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from holdfast.cli.exits import OK
from holdfast.cli.naming import Names
from holdfast.cli.opening import open_client
from holdfast.cli.parsing import Parser
from holdfast.cli.terminal import Terminal
from holdfast.cli.words import clean, many, size


def export(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "Everything, or only what is named. A file that is there is replaced when the new one is "
        "whole, and\nonly if that is confirmed.",
        "holdfast export backup.holdfast",
        "holdfast export fix.holdfast --session fix-42",
        "holdfast export two.holdfast --id 3f9a --id @~2",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the bundle to be written")
    parser.add_argument("--session", metavar="SESSION", help="only this session")
    parser.add_argument("--agent", metavar="NAME", help="only this agent")
    parser.add_argument(
        "--id", dest="ids", action="append", metavar="ID", help="only this checkpoint; repeatable"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="replace a file without asking")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Write the bundle."""
    with open_client(options) as client:
        names = Names(client)
        agent, session = options.agent, None
        if options.session is not None:
            found = names.session(options.session)
            agent, session = found.agent_id, found.session_id
        ids = None
        if options.ids is not None:
            ids = [names.checkpoint(each).checkpoint_id for each in options.ids]
        if options.file.exists():
            terminal.confirm(f"{options.file} is there already. Replace it?")
        done = client.export(
            options.file,
            agent_id=agent,
            session_id=session,
            ids=ids,
            progress=terminal.progress("exporting"),
        )
    if terminal.json:
        terminal.emit(
            {
                "path": str(done.path),
                "checkpoints": done.checkpoints,
                "chunks": done.chunks,
                "notes": done.notes,
                "bytes": done.bytes,
            }
        )
    else:
        terminal.line(
            f"{many(done.checkpoints, 'checkpoint')} written to {clean(str(done.path))} "
            f"({size(done.bytes)})"
        )
    return OK
