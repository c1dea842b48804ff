"""``holdfast verify``: read everything and name what is damaged."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import DAMAGED, OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Ends with 6 if anything is damaged.", "holdfast verify", "holdfast verify --json"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Read everything and say what is damaged."""
    with open_client(options) as client:
        found = client.verify(terminal.progress("verifying"))
    if terminal.json:
        damaged, loose = (
            [{"checkpoint_id": each.checkpoint_id, "reason": each.reason} for each in some]
            for some in (found.damaged, found.loose)
        )
        terminal.emit(
            {"ok": found.ok, "checkpoints": found.checkpoints, "damaged": damaged, "loose": loose}
        )
    else:
        for word, style, some in (
            ("loose  ", "dim", found.loose),
            ("damaged", "bad", found.damaged),
        ):
            for each in some:
                terminal.line(
                    f"{terminal.paint(word, style)}  {clean(each.checkpoint_id)}  "
                    f"{clean(each.reason)}"
                )
        whole = "all whole" if found.ok else f"{len(found.damaged):,} damaged"
        terminal.line(f"{many(found.checkpoints, 'checkpoint')} read, {whole}")
    return OK if found.ok else DAMAGED
