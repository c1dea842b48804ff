"""Checkpoints as commands show them: the columns of a listing, and their JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.parts import tasks_of
from holdfast.cli.output.tasks import TaskProgress, progress_of
from holdfast.core.chunk_format import checked
from holdfast.core.json_form import to_json
from holdfast.core.shallow_reader import shallow
from holdfast.model.fields import RICH
from holdfast.stores.base import Query
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.cli.access.opening import LazyClient
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo, Store


def plans_of(
    client: SyncClient | LazyClient, infos: Sequence[CheckpointInfo]
) -> dict[str, TaskProgress]:
    """Return how far the plans of some checkpoints have come, without reading their states."""
    found: dict[str, TaskProgress] = {}
    if client.store.shares_chunks:
        known = {info.checkpoint_id: info for info in infos}
        for checkpoint_id, payload in payloads_of(client, infos):
            tasks = payload.get("tasks")
            if tasks is not None and not isinstance(tasks, list):  # kept in chunks of its own
                tasks = tasks_of(client, known[checkpoint_id])
            progress = progress_of(tasks)
            if progress is not None:
                found[checkpoint_id] = progress
        return found
    for info in infos:
        progress = progress_of(tasks_of(client, info))
        if progress is not None:
            found[info.checkpoint_id] = progress
    return found


def payloads_of(
    client: SyncClient | LazyClient, infos: Sequence[CheckpointInfo]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the parts of some checkpoints, one level deep: other chunks are not read."""
    roots = {info.checkpoint_id: bytes.fromhex(info.content_id) for info in infos}
    chunks = client.store.fetch(set(roots.values()))
    for checkpoint_id, root in roots.items():
        payload = shallow(checked(root, chunks[root])) if root in chunks else {}
        yield checkpoint_id, payload if isinstance(payload, dict) else {}


def heads_of(store: Store, newest: Sequence[CheckpointInfo]) -> list[SessionInfo]:
    """Return the sessions of the newest checkpoints of all: those that were touched last."""
    count = len({(info.agent_id, info.session_id) for info in newest})
    return store.heads(limit=count) if count else []


def parents_elsewhere(store: Store, newest: Sequence[CheckpointInfo]) -> set[str]:
    """Return those of the newest checkpoints of all that others go on from, by a clock behind."""
    ids = {info.checkpoint_id for info in newest}
    children = store.query(Query(parent_ids=ids)) if ids else []
    return {i.parent_id for i in children if i.parent_id and i.checkpoint_id not in ids}


def live_ids(
    infos: Iterable[CheckpointInfo],
    heads: Iterable[SessionInfo],
    leading: Collection[str] = (),
) -> set[str]:
    """Return the checkpoints that lead to the head of some session, or to one of some others."""
    parents = {info.checkpoint_id: info.parent_id for info in infos}
    alive: set[str] = set()
    for start in (*(session.head.checkpoint_id for session in heads), *leading):
        at: str | None = start
        while at is not None and at not in alive and at in parents:
            alive.add(at)
            at = parents[at]
    return alive


def alive_among(store: Store, shown: Sequence[CheckpointInfo], session: SessionInfo) -> set[str]:
    """Return those of the newest checkpoints of a session that lead to the head of some session."""
    ids = [info.checkpoint_id for info in shown]
    others = store.query(Query(parent_ids=ids)) if ids else []
    own = (session.agent_id, session.session_id)
    left = {i.parent_id for i in others if (i.agent_id, i.session_id) != own}
    return alive_rows(shown, {session.head.checkpoint_id, *left}, kept_among(store, shown))


def kept_among(store: Store, shown: Sequence[CheckpointInfo]) -> set[str]:
    """Return those of some checkpoints, and of what they come from, that are still there."""
    ids = {info.checkpoint_id for info in shown}
    missing = sorted({info.parent_id for info in shown if info.parent_id} - ids)
    older = store.query(Query(ids=missing)) if missing else []
    return ids | {info.checkpoint_id for info in older}


def alive_rows(
    shown: Sequence[CheckpointInfo], leading: Collection[str | None], kept: Collection[str]
) -> set[str]:
    """Return which checkpoints of a session, the newest first, lead to one of some others.

    What they come from is among them too, whether it is shown or not. Below one whose parent is not
    kept nobody can say which do: then all count as if they did.
    """
    alive: set[str | None] = set(leading)
    lost = False
    for info in shown:  # children before their parents
        if lost or info.checkpoint_id in alive:
            alive |= {info.checkpoint_id, info.parent_id}
            lost = lost or (info.parent_id is not None and info.parent_id not in kept)
    return {each for each in alive if each is not None}


def origins_of(store: Store, shown: Sequence[CheckpointInfo]) -> dict[str, CheckpointInfo]:
    """Return the checkpoints of other sessions that some go on from."""
    known = {info.checkpoint_id: info for info in shown}
    missing = sorted({i.parent_id for i in shown if i.parent_id} - known.keys())
    for info in store.query(Query(ids=missing)) if missing else ():
        known[info.checkpoint_id] = info
    found = {}
    for info in shown:
        parent = known.get(info.parent_id or "")
        if parent is not None and (parent.agent_id, parent.session_id) != (
            info.agent_id,
            info.session_id,
        ):
            found[info.checkpoint_id] = parent
    return found


def markers_of(info: CheckpointInfo, heads: set[str], alive: set[str]) -> list[str]:
    """Return what is to be said of a checkpoint: head, failed, rolled back, handed off."""
    marks = []
    if info.checkpoint_id in heads:
        marks.append("head")
    if info.metadata.get("failed") and info.handoff_target is None:  # an offer copies its tags
        marks.append("failed")
    if info.checkpoint_id not in alive:
        marks.append("rolled back")
    if info.handoff_target is not None:
        marks.append("handed off")
    return marks


def step_of(info: CheckpointInfo) -> str:
    """Return what a checkpoint is called."""
    return clean(info.step_name) if info.step_name else f"step {info.step_index}"


def checkpoint_json(
    info: CheckpointInfo, markers: list[str] | None = None, progress: TaskProgress | None = None
) -> dict[str, Any]:
    """Return a checkpoint in JSON, as every command prints it."""
    data = info.as_dict()
    data |= {name: to_json(data[name]) for name in RICH}
    if markers is not None:
        data["markers"] = markers
        data["progress"] = None if progress is None else progress.as_dict()
    return data
