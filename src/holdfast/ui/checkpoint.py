"""One checkpoint: who and when, its plan, its calls and its sizes, without reading its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.access.calls import calls_after, calls_of, calls_since
from holdfast.cli.access.langgraph_threads import asked_at, asked_json
from holdfast.cli.access.naming import Names
from holdfast.cli.access.parts import parts_of, tasks_of
from holdfast.cli.output.checkpoints import checkpoint_json
from holdfast.cli.output.json_schemas import SHAPES
from holdfast.cli.output.offers import offer_json
from holdfast.cli.output.tasks import progress_of, tasks_json
from holdfast.cli.output.workspaces import workspace_json
from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_format import checked
from holdfast.core.json_form import to_json
from holdfast.stores.base import Query
from holdfast.ui.numbers import exact
from holdfast.ui.reading import next_start, parent_of, small, start_of
from holdfast.ui.routes import Parameters, Route
from holdfast.ui.sessions import is_held
from holdfast.ui.shapes import CHECKPOINT_ANSWER, EFFECTS

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.effects import Effect

_PARTS = ("agent_context", "tasks", "effects", "workspace")
_CHILDREN = 100
_MOST_CHUNKS = 4000
"""Of a checkpoint that adds more it is not counted how much."""


def meant(client: SyncClient, given: Parameters) -> CheckpointInfo:
    """Return the checkpoint that a request names, by whatever the command line takes."""
    return Names(client).checkpoint(given.needed("id"))


def checkpoint(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return all that is known of a checkpoint but for what is large."""
    info = meant(client, given)
    parts = parts_of(client, info, *_PARTS)
    progress = progress_of(parts["tasks"])
    parent, told = parent_of(client, info), checkpoint_json(info)
    whole_id = info.checkpoint_id
    children = client.store.query(Query(parent_id=whole_id, limit=_CHILDREN))
    return {
        "checkpoint": {**told, "metadata": exact(told["metadata"])},
        "progress": None if progress is None else progress.as_dict(),
        "workspace": workspace_json(parts["workspace"]),
        "interrupts": asked_json(asked_at(client, info)),
        "offer": None if info.handoff_target is None else offer_json(client.offer(whole_id)),
        "sizes": {"logical": info.size, "new": new_bytes(client, info, parent)},
        "parent": None if parent is None else parent.checkpoint_id,
        "children": [
            {
                "checkpoint_id": each.checkpoint_id,
                "agent_id": each.agent_id,
                "session_id": each.session_id,
                "step_name": each.step_name,
            }
            for each in children
        ],
        "has": {
            "files": parts["workspace"] is not None,
            "effects": bool(parts["effects"]),
            "tasks": bool(parts["tasks"]),
            "context": bool(parts["agent_context"]),
        },
    }


def new_bytes(
    client: SyncClient, info: CheckpointInfo, parent: CheckpointInfo | None
) -> int | None:
    """Return how many stored bytes a checkpoint holds that its parent does not; None if unknown.

    What both hold is not opened, so that it costs what changed.
    """
    if not client.store.shares_chunks:
        return None
    new = {bytes.fromhex(info.content_id): True}
    old = {} if parent is None else {bytes.fromhex(parent.content_id): True}
    sizes: dict[bytes, int] = {}
    below: dict[bytes, dict[bytes, bool]] = {}
    of_old, of_new = set(old), set(new)
    while new or old:
        opened = {
            name for name, refers in (new | old).items() if refers or name in new
        } - below.keys()
        if len(sizes) + len(opened) > _MOST_CHUNKS:
            return None
        for name, data in (client.store.fetch(opened) if opened else {}).items():
            sizes[name] = len(data)
            refers = new.get(name) or old.get(name)
            below[name] = dict(references(checked(name, data))) if refers else {}
        new, old = _next(new, below, of_new), _next(old, below, of_old)
        of_new |= new.keys()
        of_old |= old.keys()
        both = of_new & of_old
        new = {name: refers for name, refers in new.items() if name not in both}
        old = {name: refers for name, refers in old.items() if name not in both}
    return sum(sizes[name] for name in of_new - _reached(of_old, below) if name in sizes)


def _next(
    level: dict[bytes, bool], below: dict[bytes, dict[bytes, bool]], seen: set[bytes]
) -> dict[bytes, bool]:
    found: dict[bytes, bool] = {}
    for name in level:
        found.update(below.get(name, {}))
    return {name: refers for name, refers in found.items() if name not in seen}


def _reached(names: set[bytes], below: dict[bytes, dict[bytes, bool]]) -> set[bytes]:
    """Return all that some chunks lead to: one may be shared deeper here than there."""
    found, left = set(names), list(names)
    while left:
        fresh = [each for each in below.get(left.pop(), ()) if each not in found]
        found.update(fresh)
        left += fresh
    return found


def tasks(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return the plan of a checkpoint."""
    info = meant(client, given)
    kept = tasks_of(client, info)
    progress = progress_of(kept)
    return {
        "checkpoint_id": info.checkpoint_id,
        "progress": None if progress is None else progress.as_dict(),
        "tasks": [small(exact(task)) for task in tasks_json(kept)],
    }


def effects(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return the calls since the checkpoint before, the oldest first; or all, the newest first."""
    info = meant(client, given)
    is_head = _is_head(client, info)
    made = calls_of(client, info) if given.flag("all") else calls_since(client, info)
    after = calls_after(client, info) if is_head else []
    later = {call.id for call in after}
    calls = [call for call in made if call.id not in later] + after
    if given.flag("all"):
        calls.reverse()
    key = (info.agent_id, info.session_id)
    waiting = {call.effect_id for call in client.unknown_effects(*key)} if is_head else set()
    held = is_held(client, key)
    start = start_of(given.text("cursor"))
    page = calls[start : start + given.limit]
    return {
        "checkpoint_id": info.checkpoint_id,
        "effects": [_effect(call, call.id in later, call.id in waiting, held) for call in page],
        "next": next_start(start, given.limit, len(calls)),
        "total": len(calls),
    }


def _is_head(client: SyncClient, info: CheckpointInfo) -> bool:
    query = Query(agent_id=info.agent_id, session_id=info.session_id, limit=1)
    return [each.checkpoint_id for each in client.store.query(query)] == [info.checkpoint_id]


def _effect(call: Effect, is_later: bool, is_unknown: bool, is_held: bool) -> dict[str, Any]:
    said = to_json(call.as_dict())
    data = {name: small(exact(value)) for name, value in said.items() if name != "workspace"}
    return {
        **data,
        "text": str(call),
        "standing": call.stands(),
        "unfinished": is_later,
        "unknown": is_unknown,
        "running": is_held and call.status == "started",
    }


_ID = {"id": "the checkpoint, as the command line takes it"}
ROUTES = (
    Route("checkpoint", checkpoint, "One checkpoint, without its state", _ID, CHECKPOINT_ANSWER),
    Route("tasks", tasks, "The plan of a checkpoint", _ID, SHAPES["tasks"]),
    Route(
        "effects",
        effects,
        "The calls since the checkpoint before",
        {
            **_ID,
            "all": "all calls up to it, the newest first",
            "limit": "calls of a page",
            "cursor": "what the page before gave as next",
        },
        EFFECTS,
    ),
)
"""The addresses of this family."""
