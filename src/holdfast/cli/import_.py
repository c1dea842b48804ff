"""``holdfast import``: bring in checkpoints that others have written."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from holdfast.errors import AdapterError, InvalidArgumentError

if TYPE_CHECKING:
    from holdfast.adapters.langgraph import Moved

LANGGRAPH = ("langgraph-sqlite", "langgraph-postgres")

_EXAMPLES = """\
examples:
  holdfast import langgraph-sqlite checkpoints.sqlite
  holdfast import langgraph-postgres postgresql://user:password@host/database --json
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Make the command known."""
    parser = commands.add_parser(
        "import",
        help="bring in the checkpoints of a LangGraph saver; the source is only read",
        description="Bring in all checkpoints of a LangGraph saver, with their ids and writes. "
        "The source is only read. What is there already is skipped, so it can be run again.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kind", choices=LANGGRAPH, help="what wrote the source")
    parser.add_argument("source", metavar="PATH|DSN", help="its SQLite file or PostgreSQL URL")
    parser.add_argument(
        "--store", metavar="URL", help="where to (default: HOLDFAST_URL, else the embedded store)"
    )
    parser.add_argument(
        "--agent", metavar="NAME", default="langgraph", help="the agent's name (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="say what was brought as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Bring in what the options name; returns the exit code."""
    try:
        moved, store = _move(options)
    except ImportError as error:  # LangGraph or psycopg is not installed
        raise AdapterError(str(error)) from error
    except KeyboardInterrupt:
        print("\nholdfast: interrupted; run it again to go on", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(asdict(moved)))
    else:
        print(
            f"{_many(moved.checkpoints, 'checkpoint')} of {_many(moved.threads, 'thread')} and "
            f"{_many(moved.writes, 'write')} brought into {store}; "
            f"{_many(moved.skipped, 'checkpoint')} there already"
        )
    return 0


def _move(options: argparse.Namespace) -> tuple[Moved, str]:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    from holdfast.adapters.langgraph import move_in
    from holdfast.adapters.langgraph.sources import is_dsn, open_source
    from holdfast.client import SyncClient

    if is_dsn(options.source) != (options.kind == "langgraph-postgres"):
        expected = {
            "langgraph-sqlite": "the path of an SQLite file",
            "langgraph-postgres": "a URL such as postgresql://user:password@host/database",
        }
        raise InvalidArgumentError(f"{options.kind} takes {expected[options.kind]}")
    # Looked at before the store is opened, so that a wrong name does not leave a new one behind.
    open_source(options.source, JsonPlusSerializer()).close()
    show = _show_progress if sys.stderr.isatty() else None
    with SyncClient.open(options.store) as client:
        moved = move_in(options.source, client, agent_id=options.agent, progress=show)
        return moved, client.store.name


def _show_progress(done: int, total: int) -> None:
    end = "\n" if done == total else ""
    print(f"\r{done:,} of {total:,} checkpoints", end=end, file=sys.stderr, flush=True)


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
