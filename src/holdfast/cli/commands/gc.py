"""``holdfast gc``: remove what no checkpoint needs."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.opening import open_client
from holdfast.cli.access.upkeep import sweep
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many, size, span
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "What was written within the grace period is left alone, so that saves in flight are "
        "safe.\nForks and exports that a killed process left unfinished are removed too, and "
        "named.",
        "holdfast gc --dry-run",
        "holdfast gc --grace 0",
    )
    parser.add_argument(
        "--grace", metavar="TIME", default="1h", help="leave alone what is younger (%(default)s)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Remove what nothing needs, and say what waits."""
    grace = span(options.grace)
    with open_client(options) as client:
        done = sweep(client, grace, options.dry_run, terminal.progress("collecting"))
    if terminal.json:
        terminal.emit(done.as_json())
        return OK
    found, left = done.found, done.left
    said = "would be removed" if options.dry_run else "removed"
    terminal.line(f"{many(found.chunks, 'chunk')} {said}, {size(found.bytes)}")
    for path in found.unfinished:
        terminal.line(f"left behind by a process that died, {said}: {clean(path)}")
    if left.chunks > 0:
        terminal.line(
            f"{many(left.chunks, 'chunk')} more ({size(left.bytes)}) no checkpoint needs, but "
            f"younger than {options.grace}: run it again then,"
        )
        terminal.line("or, while no program saves to this store, holdfast gc --grace 0")
    return OK
