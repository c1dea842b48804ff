"""What a store holds, what a policy keeps of it and what nothing needs: told in JSON too."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.exits import UsageError
from holdfast.cli.output.checkpoints import checkpoint_json
from holdfast.cli.output.units import span
from holdfast.stores.base import Collected

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.stores.base import Stats
    from holdfast.verbs.progress import Progress
    from holdfast.verbs.prune import Keep, Pruned


def stats_json(store: str, found: Stats) -> dict[str, Any]:
    """Return how much a store holds, in JSON."""
    return {
        "store": store,
        "checkpoints": found.checkpoints,
        "sessions": found.sessions,
        "chunks": found.chunks,
        "logical_bytes": found.logical_bytes,
        "stored_bytes": found.stored_bytes,
        "sharing": found.sharing,
    }


def policy(
    client: SyncClient,
    *,
    last: int | None,
    within: str | None,
    named: bool | Collection[str],
    tags: Sequence[str],
    agent: str | None,
    session: str | None,
) -> Keep:
    """Return what is to be kept, as a user says it."""
    from holdfast.verbs.prune import Keep

    if session is not None:
        meant = Names(client).session(f"{agent}/{session}" if agent else session)
        agent, session = meant.agent_id, meant.session_id
    return Keep(
        last=last,
        within=None if within is None else span(within),
        named=named,
        tags=dict(map(tag, tags)),
        agent_id=agent,
        session_id=session,
    )


def tag(text: str) -> tuple[str, Any]:
    """Return a tag as it is kept: numbers and true or false are what they look like."""
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"a tag is written NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def pruned_json(found: Pruned) -> dict[str, Any]:
    """Return what was or would be removed, in JSON."""
    removed = [checkpoint_json(info) for info in found.removed]
    return {"dry_run": found.dry_run, "kept": found.kept, "removed": removed}


@dataclass(frozen=True)
class Sweep:
    """What was removed as nothing needs it, and what is too young for that yet."""

    found: Collected
    left: Collected
    grace: float
    dry_run: bool

    def as_json(self) -> dict[str, Any]:
        """Return the same in JSON."""
        return {
            "dry_run": self.dry_run,
            "chunks": self.found.chunks,
            "bytes": self.found.bytes,
            "waiting_chunks": self.left.chunks,
            "waiting_bytes": self.left.bytes,
            "grace_seconds": self.grace,
        }


def sweep(
    client: SyncClient, grace: float, dry_run: bool, progress: Progress | None = None
) -> Sweep:
    """Remove what nothing needs, and see what waits."""
    found = client.gc(grace, dry_run, progress=progress)
    unneeded = client.gc(0, dry_run=True, progress=progress) if grace else None
    left = Collected(0, 0)
    if unneeded is not None:  # a dry run has removed nothing yet
        gone = found if dry_run else left
        left = Collected(unneeded.chunks - gone.chunks, unneeded.bytes - gone.bytes)
    return Sweep(found, left, grace, dry_run)
