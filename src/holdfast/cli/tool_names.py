"""How the next agent calls the tools: ``--tool search=mcp__web__search``."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.exits import UsageError
from holdfast.cli.parsing import Parser


def add_tool_names(parser: Parser) -> None:
    """Add the option to a parser."""
    parser.add_argument(
        "--tool",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="what the next agent calls a tool; may be given again",
    )


def tool_names_of(options: Namespace) -> dict[str, str] | None:
    """Return the names, old to new; None if none are given."""
    found = {}
    for each in options.tool:
        old, sign, new = each.partition("=")
        if not old or not sign or not new:
            raise UsageError(f"--tool is OLD=NEW, not {each!r}")
        found[old] = new
    return found or None
