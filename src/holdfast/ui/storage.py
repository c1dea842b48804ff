"""How much the store holds, how that grew, and what a policy would remove."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from holdfast.cli.access.upkeep import policy, pruned_json, stats_json, sweep
from holdfast.cli.exits import UsageError
from holdfast.cli.output.json_schemas import SHAPES, TEXT, TIME, WHOLE, Schema, record, several
from holdfast.cli.output.units import span
from holdfast.core.short_repr import brief
from holdfast.stores.base import Query
from holdfast.stores.capabilities import removals_of, tick_of
from holdfast.ui.routes import Parameters, Route

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import Stats, Store
    from holdfast.verbs.prune import Keep, Pruned

MOST_POINTS = 60
MOST_LOOKED_AT = 50_000
"""Of more checkpoints than these the older ones are known by their number and size alone."""
MOST_REMOVED = 500
_PAGE = 10_000
_LARGEST = 20
_GRACE = "1h"
_HOURS = (1, 6, 24, 7 * 24, 30 * 24, 91 * 24, 365 * 24)
"""How far apart points of the growth are, whichever gives few enough of them."""
_WORTH = 20
"""What took a second to read is good for so many, unless something was removed."""


@dataclass
class Sizes:
    """What the newest checkpoints are like: added up, so that none of them is kept."""

    looked_at: int = 0
    size: int = 0
    agents: Counter[str] = field(default_factory=Counter)
    sessions: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    hours: dict[datetime, tuple[int, int]] = field(default_factory=dict)
    """By the hour, how many were saved and how large they are."""

    def add(self, info: CheckpointInfo) -> None:
        """Take one more into account."""
        session = (info.agent_id, info.session_id)
        self.looked_at += 1
        self.size += info.size
        self.agents[info.agent_id] += info.size
        self.sessions[session] += info.size
        self.counts[session] += 1
        hour = info.created_at.replace(minute=0, second=0, microsecond=0)
        count, size = self.hours.get(hour, (0, 0))
        self.hours[hour] = (count + 1, size + info.size)


_known: WeakKeyDictionary[Store, tuple[Any, Any, float, Sizes]] = WeakKeyDictionary()
_lock = threading.Lock()


def sizes_of(store: Store) -> Sizes:
    """Return what the newest checkpoints are like, as it was read a while ago if that is costly."""
    tick, removals = tick_of(store), removals_of(store)
    began = time.monotonic()
    with _lock:
        known = _known.get(store)
    if known is not None and known[1] == removals:
        is_unchanged = tick is not None and known[0] == tick
        if is_unchanged or began < known[2]:
            return known[3]
    found = _read(store)
    took = time.monotonic() - began
    with _lock:
        _known[store] = (tick, removals, began + took + _WORTH * took, found)
    return found


def _read(store: Store) -> Sizes:
    found = Sizes()
    query = Query(limit=_PAGE)
    while found.looked_at < MOST_LOOKED_AT and (page := store.query(query)):
        for info in page:
            found.add(info)
        query = replace(query, before=page[-1].checkpoint_id)
        if len(page) < _PAGE:
            break
    return found


def storage(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return how much the store holds, how it grew and what is large in it."""
    sizes, stats = sizes_of(client.store), client.stats()
    return {
        **stats_json(client.store.name, stats),
        "growth": growth(sizes, stats),
        "largest": [
            {
                "agent_id": agent,
                "session_id": session,
                "checkpoints": sizes.counts[agent, session],
                "logical_bytes": size,
            }
            for (agent, session), size in sizes.sessions.most_common(_LARGEST)
        ],
        "shares": [
            {"agent_id": agent, "logical_bytes": size}
            for agent, size in sizes.agents.most_common(_LARGEST)
        ],
        "looked_at": sizes.looked_at,
    }


def growth(sizes: Sizes, stats: Stats) -> list[dict[str, Any]]:
    """Return how many checkpoints there were, and how large, at up to 60 moments until now."""
    if not sizes.hours:
        return []
    first, last = min(sizes.hours), max(sizes.hours)
    step = next(each for each in _steps(first, last) if (last - first) // each + 1 <= MOST_POINTS)
    added: dict[int, tuple[int, int]] = {}
    for hour, (count, size) in sizes.hours.items():
        before = added.get(at := (hour - first) // step, (0, 0))
        added[at] = (before[0] + count, before[1] + size)
    # What is older than all that was looked at was there from the beginning.
    count = max(stats.checkpoints - sizes.looked_at, 0)
    size = max(stats.logical_bytes - sizes.size, 0)
    points = []
    for at in sorted(added):
        count, size = count + added[at][0], size + added[at][1]
        moment = (first + at * step).isoformat()
        points.append({"at": moment, "checkpoints": count, "logical_bytes": size})
    return points


def _steps(first: datetime, last: datetime) -> list[timedelta]:
    return [*(timedelta(hours=each) for each in _HOURS), (last - first) / (MOST_POINTS - 1)]


def prune_preview(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return which checkpoints a policy would remove, and how large they are."""
    return _pruned(client.prune(policy_of(client, given), dry_run=True))


def prune(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Remove the checkpoints that a policy does not keep, or say which they are."""
    is_dry = given.flag("dry_run")
    return _pruned(client.prune(policy_of(client, given), dry_run=is_dry))


def _pruned(found: Pruned) -> dict[str, Any]:
    """Return what was or would be removed: how many, how large, and which are the first of them."""
    first = replace(found, removed=found.removed[:MOST_REMOVED])
    return {
        **pruned_json(first),
        "removed_total": len(found.removed),
        "freed_logical_bytes": found.size,
    }


def gc(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Remove what no checkpoint needs, and say what waits."""
    grace = span(given.text("grace", _GRACE) or _GRACE)
    return sweep(client, grace, given.flag("dry_run")).as_json()


def policy_of(client: SyncClient, given: Parameters) -> Keep:
    """Return what is to be kept, as a request says it."""
    return policy(
        client,
        last=given.number("last"),
        within=given.text("within"),
        named=_named(given),
        tags=_texts(given, "tag"),
        agent=given.text("agent"),
        session=given.text("session"),
    )


def _named(given: Parameters) -> bool | list[str]:
    if isinstance(given.raw("named"), list):
        return _texts(given, "named")
    return given.flag("named")


def _texts(given: Parameters, name: str) -> list[str]:
    """Return texts that an address gives several times, or a body as a list."""
    found = given.raw(name)
    if found is None:
        return []
    listed = given.many(name) or (found if isinstance(found, list) else [found])
    if not all(isinstance(each, str) for each in listed):
        raise UsageError(f"{name} is a list of texts, not {brief(found)}")
    return listed


KEPT = {
    "last": "keep the newest so many of each session",
    "within": "keep what is younger, such as 12h or 7d",
    "named": "keep those with a step name: true; in a body also a list of names",
    "tag": "keep those with this tag, NAME=VALUE; may be given several times",
    "agent": "look at this agent only",
    "session": "look at this session only",
}
"""What a policy is made of."""


def _with(shape: str, **fields: Schema) -> Schema:
    known = SHAPES[shape]
    return {
        **known,
        "properties": {**known["properties"], **fields},
        "required": [*known["required"], *fields],
    }


_SIZES = {"checkpoints": WHOLE, "logical_bytes": WHOLE}
_LOOKED_AT = {**WHOLE, "description": "of so many, the newest, largest and shares tell"}
_PRUNED = _with(
    "prune",
    removed_total={**WHOLE, "description": f"removed lists the first {MOST_REMOVED}"},
    freed_logical_bytes={**WHOLE, "description": "each state counted whole, shared or not"},
)
ROUTES: tuple[Route, ...] = (
    Route(
        "storage",
        storage,
        "How much the store holds, and how that grew",
        {},
        _with(
            "stats",
            growth=several(record(at=TIME, **_SIZES)),
            largest=several(record(agent_id=TEXT, session_id=TEXT, **_SIZES)),
            shares=several(record(agent_id=TEXT, logical_bytes=WHOLE)),
            looked_at=_LOOKED_AT,
        ),
    ),
    Route("prune-preview", prune_preview, "What a policy would remove", KEPT, _PRUNED),
    Route(
        "prune",
        prune,
        "Remove what a policy does not keep",
        {**KEPT, "dry_run": "only say what would be done"},
        _PRUNED,
        writes=True,
    ),
    Route(
        "gc",
        gc,
        "Remove what no checkpoint needs",
        {
            "grace": "leave alone what is younger, such as 1h",
            "dry_run": "only say what would be done",
        },
        SHAPES["gc"],
        writes=True,
    ),
)
