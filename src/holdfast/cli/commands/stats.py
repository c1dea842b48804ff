"""``holdfast stats``: how much a store holds."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.opening import open_client
from holdfast.cli.access.upkeep import stats_json
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import size
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain("", "holdfast stats", "holdfast stats --json")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Count what is in the store."""
    with open_client(options) as client:
        with terminal.waiting("counting"):
            found = client.stats()
        name = client.store.name
    if terminal.json:
        terminal.emit(stats_json(name, found))
        return OK
    terminal.line(f"store        {clean(name)}")
    terminal.line(f"checkpoints  {found.checkpoints:,}")
    terminal.line(f"sessions     {found.sessions:,}")
    terminal.line(f"chunks       {found.chunks:,}")
    terminal.line(f"logical      {size(found.logical_bytes)} (every state counted whole)")
    terminal.line(f"stored       {size(found.stored_bytes)} (shared and compressed, with files)")
    terminal.line(f"sharing      {found.sharing:.1f} times")
    return OK
