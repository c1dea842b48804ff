"""What other processes do in tests of leases and kills."""

import sys
from typing import Any

from holdfast import SyncClient
from holdfast.errors import SessionBusyError
from tests.integration.fork_server import tell
from tests.session.kit import AGENT, SESSION


def hold(url: str, until_told: str = "") -> None:
    """Work on the session, say so, and wait for the end."""
    with SyncClient.open(url) as client, client.session(AGENT, session_id=SESSION) as run:
        run.state["by"] = "the other"
        run.checkpoint("mine")
        print("open", flush=True)
        sys.stdin.readline()


def open_and_count(url: str) -> None:
    """Open the session, write, and tell whether it was free."""
    with SyncClient.open(url) as client:
        try:
            with client.session(AGENT, session_id=SESSION) as run:
                run.state["n"] = run.state.get("n", 0) + 1
            tell("wrote")
        except SessionBusyError:
            tell("busy")


def main(*args: Any) -> None:
    globals()[args[0]](*args[1:])


if __name__ == "__main__":
    main(*sys.argv[1:])
