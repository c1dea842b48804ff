"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast._version import __version__
from holdfast.cli import import_
from holdfast.errors import HoldfastError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``holdfast``; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="holdfast", description="Checkpoint, rewind and fork AI agents."
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo", help="watch an agent being killed, resumed, rolled back, forked and compared"
    )
    demo.add_argument(
        "--store", type=Path, metavar="FILE", help="keep the demo's checkpoints in this SQLite file"
    )
    demo.set_defaults(run=_demo)
    import_.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except HoldfastError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 1


def _demo(options: argparse.Namespace) -> int:
    from holdfast.cli.demo import run

    run(options.store)
    return 0
