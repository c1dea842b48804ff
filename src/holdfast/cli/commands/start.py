"""``holdfast init`` and ``holdfast status``."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.access.waiting import show, what_waits
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import checkpoint_json, step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, many, size
from holdfast.cli.parsing import Parser
from holdfast.stores.discovery import StoreLocation, in_folder
from holdfast.system.terminal_text import clean


def init(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "Makes .holdfast/ in this directory (git is told to ignore it), or the store of --store.\n"
        "A store that is there already is left as it is.",
        "holdfast init",
        "holdfast init ~/projects/site",
        "holdfast init --store postgresql://localhost/agents",
    )
    parser.add_argument(
        "directory", nargs="?", type=Path, metavar="DIR", help="where (default: here)"
    )
    parser.set_defaults(run=_init)


def _init(options: Namespace, terminal: Terminal) -> int:
    location = location_of(options) if options.store else in_folder(options.directory or Path.cwd())
    made = location.path is None or not location.path.exists()
    with open_location(location, create=True) as client:
        name = client.store.name
        number = client.stats().checkpoints
    if terminal.json:
        terminal.emit({"url": location.shown, "created": made, "checkpoints": number})
    elif made:
        terminal.line(f"made {name}")
    else:
        terminal.line(f"{name} is there already, with {many(number, 'checkpoint')}")
    return OK


def status(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "What waits for a person comes first: calls of unknown end, calls that wait for approval, "
        "questions\nthat graphs stopped at, and offers.",
        "holdfast status",
    )
    parser.set_defaults(run=_status)


def _status(options: Namespace, terminal: Terminal) -> int:
    location = location_of(options)
    with open_location(location) as client:
        stats = client.stats()
        sessions = client.sessions()
        waiting = what_waits(client)
        name = client.store.name
    if terminal.json:
        terminal.emit(
            {
                "url": location.shown,
                "source": location.source,
                "checkpoints": stats.checkpoints,
                "sessions": stats.sessions,
                "stored_bytes": stats.stored_bytes,
                "head": checkpoint_json(sessions[0].head) if sessions else None,
                "pending": len(waiting.approvals),
                "offers": waiting.offers,
                "waiting": waiting.as_json(),
            }
        )
        return OK
    show(waiting, terminal)
    terminal.line(f"store     {clean(name)} ({_how(location)})")
    terminal.line(
        f"holds     {many(stats.checkpoints, 'checkpoint')} of "
        f"{many(stats.sessions, 'session')}, {size(stats.stored_bytes)}"
    )
    if sessions:
        head = sessions[0].head
        step = step_of(head)
        terminal.line(f"newest    {clean(head.session_id)}: {step}, {age(head.created_at)}")
    return OK


def _how(location: StoreLocation) -> str:
    return f"from {location.source}" if location.folder is None else "the nearest upwards"
