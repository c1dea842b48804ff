"""``holdfast export``: checkpoints in one file that any store can import."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many, size
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean

STREAM = "-"


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Everything, or only what is named. A file that is there is replaced when the new one is "
        "whole, and\nonly if that is confirmed.",
        "holdfast export backup.holdfast",
        "holdfast export fix.holdfast --session fix-42",
        "holdfast export two.holdfast --id 019a9563e5d2 --id @~2",
        "holdfast export - | ssh elsewhere holdfast import -",
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="the bundle to be written; - for standard output"
    )
    parser.add_argument("--session", metavar="SESSION", help="only this session")
    parser.add_argument("--agent", metavar="NAME", help="only this agent")
    parser.add_argument(
        "--id", dest="ids", action="append", metavar="ID", help="only this checkpoint; repeatable"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="replace a file without asking")
    parser.set_defaults(run=run)


def _check_stream(terminal: Terminal) -> None:
    if terminal.json:
        raise UsageError("--json and - would both go to standard output: name a file")
    if terminal.is_terminal:
        raise UsageError("a bundle is nothing for a terminal: name a file, or write it to a pipe")


@contextmanager
def _written_to(file: Path) -> Iterator[Path]:
    """Give where the bundle goes; what is for standard output goes there when it is whole."""
    if str(file) != STREAM:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-export-") as directory:
        whole = Path(directory, "bundle")
        yield whole
        with whole.open("rb") as bundle:
            shutil.copyfileobj(bundle, sys.stdout.buffer)


@contextmanager
def read_from(file: Path) -> Iterator[Path]:
    """Give where the bundle is; one from standard input is kept meanwhile."""
    if str(file) != STREAM:
        yield file
        return
    if sys.stdin.isatty():
        raise UsageError("no bundle comes from a terminal: name a file, or give it on a pipe")
    with tempfile.TemporaryDirectory(prefix="holdfast-import-") as directory:
        whole = Path(directory, "bundle")
        with whole.open("wb") as bundle:
            shutil.copyfileobj(sys.stdin.buffer, bundle)
        yield whole


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
        is_stream = str(options.file) == STREAM
        if is_stream:
            _check_stream(terminal)
        elif options.file.exists():
            terminal.confirm(f"{options.file} is there already. Replace it?")
        with _written_to(options.file) as file:
            done = client.export(
                file,
                agent_id=agent,
                session_id=session,
                ids=ids,
                progress=terminal.progress("exporting"),
            )
    if is_stream:
        terminal.hint(f"{many(done.checkpoints, 'checkpoint')} written ({size(done.bytes)})")
    elif terminal.json:
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
