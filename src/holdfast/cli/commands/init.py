"""``holdfast init``: make a store."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many
from holdfast.cli.parsing import Parser
from holdfast.stores import linked
from holdfast.stores.discovery import in_folder


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Makes .holdfast/ in this directory (git is told to ignore it), or the store of --store.\n"
        "A store that is there already is left as it is. A directory that `holdfast fork --to` "
        "made belongs\nto the store of the fork until then.",
        "holdfast init",
        "holdfast init ~/projects/site",
        "holdfast init --store postgresql://localhost/agents",
    )
    parser.add_argument(
        "directory", nargs="?", type=Path, metavar="DIR", help="where (default: here)"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Make the store, unless it is there."""
    location = location_of(options) if options.store else in_folder(options.directory or Path.cwd())
    made = location.path is None or not location.path.exists()
    with open_location(location, create=True) as client:
        name = client.store.name
        number = client.stats().checkpoints
    if location.folder is not None:
        linked.forget(location.folder)  # from now on it has a store of its own
    if terminal.json:
        terminal.emit({"url": location.shown, "created": made, "checkpoints": number})
    elif made:
        terminal.line(f"made {name}")
    else:
        terminal.line(f"{name} is there already, with {many(number, 'checkpoint')}")
    return OK
