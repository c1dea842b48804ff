"""Writes the golden files of a release: `python -m tests.golden.make VERSION` in the repo's root.

Run once for each release, with that release; what it wrote is read by every later one.
"""

import datetime as dt
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

from holdfast import CheckpointBuilder, SyncClient
from holdfast.verbs.notes import NoteBatch

HERE = Path(__file__).parent


def states() -> list[Any]:
    """States that use every part of the format; the same in every release."""
    messages = [{"role": "user", "content": f"message {n} " * 30, "n": n} for n in range(300)]
    return [
        {"step": 1},
        {
            "types": (1, 2.5, None, True, b"bytes", bytearray(b"array"), {1, 2}, frozenset({"a"})),
            "when": dt.datetime(2026, 11, 16, 12, 30, tzinfo=dt.UTC),
            "cost": Decimal("1.50"),
            "id": uuid.UUID(int=7),
            "big": 2**100,
            "odd": {1: "one", (2, 3): "pair", "\ud800": "surrogate"},
            "path": Path("src/main.py"),
        },
        {"messages": messages, "log": "a line of a log\n" * 2000},
        {"messages": [*messages[20:], {"role": "user", "content": "last"}], "log": "a line\n" * 9},
    ]


def build(client: SyncClient) -> None:
    """Save the states as one session, and fork it."""
    saved = None
    for step, state in enumerate(states()):
        saved = client.save(
            "golden",
            execution_state=state,
            session_id="run",
            step_index=step,
            step_name=f"step-{step}",
            context={"release": "golden"},
            tag=step % 2,
        )
    assert saved is not None
    client.fork(saved, session_id="fork")
    client.handoff(saved, "other")
    client.put(CheckpointBuilder("golden").session("built").execution_state([1, 2]).build())


LOG = "/log"


def noted() -> list[tuple[str, Any]]:
    """Values of notes, by key: small, exact in type, and large enough to be cut into chunks."""
    small, types, large, _ = states()
    return [("small", small), ("types", types), ("large", large)]


def build_notes(client: SyncClient) -> None:
    """Write notes about a checkpoint, and under a name; since 0.2.0."""
    built = client.latest("golden", "built")
    assert built is not None
    for key, value in noted():
        for scope in (built.checkpoint_id, LOG):
            written = NoteBatch()
            written.add(client.runtime.engine, scope, key, value)
            client.runtime.run(written.write())


def main(version: str) -> None:
    """Write one store of each kind, and a bundle."""
    target = HERE / version
    target.mkdir()
    with SyncClient.sqlite(target / "store.db") as client:
        build(client)
        build_notes(client)
        client.export(target / "bundle.holdfast")
    with SyncClient.file(target / "files") as client:
        build(client)
        build_notes(client)
    with SyncClient.file(target / "pickles", fmt="pickle") as client:
        build(client)
        build_notes(client)


if __name__ == "__main__":
    main(sys.argv[1])
