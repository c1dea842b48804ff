"""``python -m holdfast.adapters.langgraph``: give a langgraph dev server its threads back."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from holdfast.adapters.langgraph.dev_server import SERVER, bring_back_threads
from holdfast.adapters.langgraph.saver import AGENT
from holdfast.client import SyncClient
from holdfast.errors import HoldfastError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.adapters.langgraph",
        description="Make a langgraph dev server know the threads of a store again, "
        "after it was killed.",
    )
    parser.add_argument("--server", metavar="URL", default=SERVER, help="(%(default)s)")
    parser.add_argument(
        "--store",
        metavar="URL",
        help="(default: HOLDFAST_URL, else the nearest .holdfast/ upwards)",
    )
    parser.add_argument("--agent", metavar="NAME", default=AGENT, help="(%(default)s)")
    parser.add_argument("--graph", metavar="ID", help="the graph of threads that name none")
    options = parser.parse_args(arguments)
    logging.basicConfig(format="%(message)s")
    try:
        with SyncClient.open(options.store) as client:
            known = bring_back_threads(
                options.server, client, agent_id=options.agent, graph_id=options.graph
            )
    except HoldfastError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 1
    for thread_id in known:
        print(thread_id)
    return 0


if __name__ == "__main__":
    sys.exit(main())
