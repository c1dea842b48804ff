"""``holdfast import``: bring in checkpoints that others have written."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.access.opening import location_of, open_client
from holdfast.cli.commands.export import read_from
from holdfast.cli.exits import OK, CommandError, NotFound, UsageError
from holdfast.cli.output.escaping import hide
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many
from holdfast.cli.parsing import Parser
from holdfast.errors import HoldfastError, InvalidArgumentError
from holdfast.stores.shared.secrets import secrets_in
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.adapters.langgraph import Moved

LANGGRAPH = ("langgraph-sqlite", "langgraph-postgres")


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Brings in a bundle that holdfast export has written, or all checkpoints of a LangGraph "
        "saver with\ntheir ids and writes. The source is only read. What is there already is "
        "skipped, so it can be run\nagain. A store that is not there yet is made. Of LangGraph's "
        "threads only plain values,\nmessages and LangGraph's own types are read; other classes "
        "are named, and allowed by --trust.",
        "holdfast import backup.holdfast",
        "holdfast export - --store old.db | holdfast import -",
        "holdfast import langgraph-sqlite checkpoints.sqlite",
        "holdfast import langgraph-sqlite checkpoints.sqlite --trust shop.orders:Order",
        "holdfast import langgraph-postgres postgresql://user:password@host/database --json",
    )
    parser.add_argument(
        "source",
        nargs="+",
        metavar="FILE | KIND SOURCE",
        help=f"a bundle (- for standard input), or {' or '.join(LANGGRAPH)}",
    )
    parser.add_argument(
        "--agent",
        metavar="NAME",
        default="langgraph",
        help="the agent's name for LangGraph's threads (%(default)s)",
    )
    parser.add_argument(
        "--trust",
        metavar="MODULE:CLASS",
        action="append",
        default=[],
        help="a class of yours that LangGraph's threads hold; can be given again",
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Bring in what the options name; returns the exit code."""
    match options.source:
        case [str() as kind, str() as source] if kind in LANGGRAPH:
            return _threads(kind, source, options, terminal)
        case [str() as file] if file not in LANGGRAPH:
            if options.trust:
                raise UsageError("--trust is for LangGraph's threads: a bundle needs no such thing")
            return _bundle(Path(file), options, terminal)
    raise UsageError(f"import takes a bundle, or one of {', '.join(LANGGRAPH)} and its file or URL")


def _bundle(given: Path, options: Namespace, terminal: Terminal) -> int:
    with read_from(given) as file:
        return _read(file, options, terminal)


def _read(file: Path, options: Namespace, terminal: Terminal) -> int:
    if not file.exists():
        raise NotFound(f"there is no file {file}")
    store = location_of(options, create=True).path
    if store is not None and not store.exists():  # then none is made for a file that is no bundle
        from holdfast.verbs.bundle_file import Reader

        Reader(file).close()
    with open_client(options, create=True) as client:
        done = client.import_(file, progress=terminal.progress("importing"))
        name = client.store.name
    if terminal.json:
        terminal.emit(
            {
                "checkpoints": done.checkpoints,
                "skipped": done.skipped,
                "notes": done.notes,
                "problems": list(done.problems),
            }
        )
    else:
        for problem in done.problems:
            terminal.line(f"{terminal.paint('warning', 'warn')}  {clean(problem)}")
        terminal.line(
            f"{many(done.checkpoints, 'checkpoint')} brought into {name}; "
            f"{many(done.skipped, 'checkpoint')} there already"
        )
    return OK


def _threads(kind: str, source: str, options: Namespace, terminal: Terminal) -> int:
    try:
        moved, store = _move(kind, source, options, terminal)
    except (ImportError, HoldfastError) as error:  # LangGraph or psycopg may not be installed
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        print("\nholdfast: interrupted; run it again to go on", file=sys.stderr)
        return 130
    if terminal.json:
        terminal.emit(asdict(moved))
    else:
        terminal.line(
            f"{many(moved.checkpoints, 'checkpoint')} of {many(moved.threads, 'thread')} and "
            f"{many(moved.writes, 'write')} brought into {store}; "
            f"{many(moved.skipped, 'checkpoint')} there already"
        )
    return OK


def _move(kind: str, source: str, options: Namespace, terminal: Terminal) -> tuple[Moved, str]:
    from holdfast.adapters.langgraph import move_in
    from holdfast.adapters.langgraph.importing.open_source import is_dsn, open_source
    from holdfast.adapters.langgraph.importing.source import loader_of

    # Behind the others, which say how to get it where it is missing.

    hide(secrets_in(source))
    if is_dsn(source) != (kind == "langgraph-postgres"):
        expected = {
            "langgraph-sqlite": "the path of an SQLite file",
            "langgraph-postgres": "a URL such as postgresql://user:password@host/database",
        }
        raise InvalidArgumentError(f"{kind} takes {expected[kind]}")
    if options.trust and "" not in sys.path:
        sys.path.insert(0, "")  # modules are named as from the directory this is run in
    # Looked at before the store is opened, so that a wrong name does not leave a new one behind.
    open_source(source, loader_of(None, options.trust)).close()
    with open_client(options, create=True) as client:
        show = terminal.progress("importing")
        moved = move_in(source, client, agent_id=options.agent, trust=options.trust, progress=show)
        return moved, client.store.name
