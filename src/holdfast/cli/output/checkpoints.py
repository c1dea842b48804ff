"""Checkpoints as commands show them: the columns of a listing, and their JSON."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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

DONE = ("completed", "skipped")


@dataclass(frozen=True)
class Progress:
    """How far a plan has come."""

    done: int
    total: int

    def __str__(self) -> str:
        return f"{self.done}/{self.total}"

    def as_dict(self) -> dict[str, int]:
        return {"done": self.done, "total": self.total}


def progress_of(tasks: Any) -> Progress | None:
    """How far a plan has come; None if there is none. Tasks with parts count by their parts."""
    if not isinstance(tasks, (list, tuple)) or not tasks:
        return None
    records = [task for task in tasks if isinstance(task, dict)]
    parents = [task.get("parent") for task in records]
    named = {parent for parent in parents if isinstance(parent, str)}
    leaves = [task for task in records if not _is_among(task.get("id"), named)]
    return Progress(sum(_is_among(task.get("status"), DONE) for task in leaves), len(leaves))


def _is_among(value: Any, words: Container[str]) -> bool:
    return isinstance(value, str) and value in words


def plans_of(
    client: SyncClient | LazyClient, infos: Sequence[CheckpointInfo]
) -> dict[str, Progress]:
    """How far the plans of some checkpoints have come, without reading their states."""
    found: dict[str, Progress] = {}
    if client.store.shares_chunks:
        for checkpoint_id, payload in payloads_of(client, infos):
            tasks = payload.get("tasks")
            if tasks is not None and not isinstance(tasks, list):  # kept in chunks of its own
                tasks = client.restore(checkpoint_id, on_unknown="raw").tasks
            progress = progress_of(tasks)
            if progress is not None:
                found[checkpoint_id] = progress
        return found
    for info in infos:
        progress = progress_of(client.restore(info.checkpoint_id, on_unknown="raw").tasks)
        if progress is not None:
            found[info.checkpoint_id] = progress
    return found


def payloads_of(
    client: SyncClient | LazyClient, infos: Sequence[CheckpointInfo]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parts of some checkpoints, one level deep: what is kept in other chunks is not read."""
    roots = {info.checkpoint_id: bytes.fromhex(info.content_id) for info in infos}
    chunks = client.store.fetch(set(roots.values()))
    for checkpoint_id, root in roots.items():
        payload = shallow(checked(root, chunks[root])) if root in chunks else {}
        yield checkpoint_id, payload if isinstance(payload, dict) else {}


def live_ids(infos: Iterable[CheckpointInfo], heads: Iterable[SessionInfo]) -> set[str]:
    """The checkpoints that lead to the head of some session."""
    parents = {info.checkpoint_id: info.parent_id for info in infos}
    alive: set[str] = set()
    for session in heads:
        at: str | None = session.head.checkpoint_id
        while at is not None and at not in alive and at in parents:
            alive.add(at)
            at = parents[at]
    return alive


def alive_among(store: Store, shown: Sequence[CheckpointInfo], session: SessionInfo) -> set[str]:
    """Those of the newest checkpoints of a session that lead to the head of some session."""
    parents = {info.checkpoint_id: info.parent_id for info in shown}
    alive: set[str | None] = set()
    at: str | None = session.head.checkpoint_id
    while at in parents and at not in alive:
        alive.add(at)
        at = parents[at]
    for info in shown:  # children before their parents
        if info.checkpoint_id in alive:
            alive.add(info.parent_id)
            continue
        others = store.query(Query(parent_id=info.checkpoint_id))
        if any(each.session_id != session.session_id for each in others):
            alive |= {info.checkpoint_id, info.parent_id}
    return {each for each in alive if each is not None}


def markers_of(info: CheckpointInfo, heads: set[str], alive: set[str]) -> list[str]:
    """What is to be said of a checkpoint: head, failed, rolled back, handed off."""
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
    """What a checkpoint is called."""
    return clean(info.step_name) if info.step_name else f"step {info.step_index}"


def checkpoint_json(
    info: CheckpointInfo, markers: list[str] | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """A checkpoint in JSON, as every command prints it."""
    data = info.as_dict()
    data |= {name: to_json(data[name]) for name in RICH}
    if markers is not None:
        data["markers"] = markers
        data["progress"] = None if progress is None else progress.as_dict()
    return data
