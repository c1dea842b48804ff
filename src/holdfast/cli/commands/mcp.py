"""``holdfast mcp``: checkpoints of one directory, over the Model Context Protocol.

The server is confined to its workspace: no tool takes a path, and a checkpoint with the files of
another directory is refused.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from holdfast.cli.exits import OK, CommandError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser

CONFIGURED = {
    "Claude Code": "claude mcp add holdfast -- holdfast mcp",
    "Codex": "codex mcp add holdfast -- holdfast mcp",
    "Gemini CLI": "gemini mcp add holdfast holdfast mcp",
    "opencode": '"mcp": {"holdfast": {"type": "local", "command": ["holdfast", "mcp"]}} in '
    "opencode.json",
}
"""How each program is told of the server."""


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Serves the tools checkpoint, log, diff, rollback, fork and rewind on standard input and "
        "output. It\nworks on one directory and never outside of it, and on the session of the "
        "coding agent that works\nthere: what its hooks recorded is listed, compared and put back "
        "by name.\n\n" + "\n".join(f"{name:<12} {how}" for name, how in CONFIGURED.items()),
        "holdfast mcp --workspace .",
        "holdfast mcp --session fix-42",
    )
    parser.add_argument(
        "--workspace",
        type=Path,
        metavar="DIR",
        help="the directory (default: the project with the nearest .holdfast/, else here)",
    )
    parser.add_argument(
        "--agent", default="mcp", metavar="NAME", help="the agent of new sessions (%(default)s)"
    )
    parser.add_argument(
        "--session",
        metavar="NAME",
        help="the session (default: that of the coding agent here, else one for the directory)",
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Serve until the client goes."""
    from holdfast.cli.mcp.calls import Calls
    from holdfast.cli.mcp.protocol import Protocol
    from holdfast.cli.mcp.stdio import Server, own_streams
    from holdfast.cli.mcp.tool_table import TOOLS

    if options.workspace is not None and not options.workspace.is_dir():
        raise CommandError(f"{options.workspace} is no directory")
    if sys.stdin is not None and sys.stdin.isatty():
        terminal.hint("a coding agent is to start this and talk to it; holdfast mcp --help")
    with own_streams() as (reads, writes):
        Server(Protocol(TOOLS), Calls(options), reads, writes).run()
    return OK
