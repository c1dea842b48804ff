"""What a LangGraph checkpointer does, as plans that both faces of a client carry out."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
)

from holdfast.adapters.langgraph.files import OUTSIDE, GraphFiles, Stage, check_waits
from holdfast.adapters.langgraph.listing import newest, put_by_a_saver
from holdfast.adapters.langgraph.naming import place_of, says_when, sessions_below
from holdfast.adapters.langgraph.records import (
    BUILDS_ON,
    Form,
    Place,
    in_lists,
    payload_of,
    record_of,
    sent_to,
    tuple_of,
)
from holdfast.adapters.langgraph.sealing import Sealer
from holdfast.core.format import compress
from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    InvalidArgumentError,
    NoteExistsError,
    SerializationError,
)
from holdfast.ids import new_id
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Commit, Note, Query, Record
from holdfast.stores.capabilities import FindsNewest
from holdfast.verbs import notes, save
from holdfast.verbs.read import ancestors, restore_all, revive

logger = logging.getLogger("holdfast")

_PAGE = 20
"""Checkpoints that are read with their states at a time."""
_LISTED = 500
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Desk:
    """What the plans of one saver work with."""

    engine: Engine
    agent_id: str
    append_only: tuple[tuple[str, ...], ...] = ()
    sealer: Sealer = field(default_factory=Sealer)
    files: GraphFiles | None = None
    other_ids: dict[tuple[str, str], str] = field(default_factory=dict)
    """Heads that were not put by a saver (forks, say): by session and LangGraph's id."""
    sent: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """The nodes that something is sent to next: by session and LangGraph's id."""

    def record_id(self, place: Place, checkpoint_id: str) -> str:
        """The id of the record of one of LangGraph's checkpoints."""
        known = self.other_ids.get((place.session_id, checkpoint_id))
        return known or place.record_id(checkpoint_id)


def put(
    desk: Desk,
    form: Form,
    place: Place,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    stage: Stage = OUTSIDE,
) -> Plan[None]:
    """Keep a checkpoint; its parent is the one that the place names."""
    metadata = in_lists(metadata)
    parent = place.checkpoint_id
    parent_id = None if parent is None else desk.record_id(place, parent)
    sent = desk.sent.pop((place.session_id, parent or ""), ())
    info = record_of(desk.agent_id, place, parent_id, checkpoint, metadata, sent)
    state, files = form.state(checkpoint), None
    if desk.files is not None:
        files = yield from desk.files.of_checkpoint(
            desk.engine, info, stage, metadata.get("source")
        )
    payload = payload_of(state, parent, metadata, files)
    try:
        yield from save.write(desk.engine, info, payload, desk.append_only)
    except SerializationError as error:
        _name_as_langgraph(error)
        if not error.path.startswith("$.channel_values"):
            raise
        state = form.with_unkeepable_sealed(state, error)
        yield from save.write(desk.engine, info, payload_of(state, parent, metadata, files))
    _remember_sent(desk, place, checkpoint)
    if desk.files is not None:
        yield from desk.files.kept_by(files, info.checkpoint_id)


def _name_as_langgraph(error: SerializationError) -> None:
    """Name a path as it is in a checkpoint of LangGraph's."""
    for ours, theirs in (("$.values", "$.channel_values"), ("$.checkpoint.", "$.")):
        if error.path.startswith(ours):
            error.path = theirs + error.path.removeprefix(ours)
            error.args = (f"{error.path}: {error.problem}",)
            return


def _remember_sent(desk: Desk, place: Place, checkpoint: Mapping[str, Any]) -> None:
    """Know which nodes the next step of a thread runs because something was sent to them."""
    sent = sent_to(checkpoint)
    if sent:
        desk.sent[place.session_id, checkpoint["id"]] = sent
        if len(desk.sent) > _REMEMBERED:  # threads that were left where they stand
            for oldest in list(desk.sent)[: _REMEMBERED // 2]:
                desk.sent.pop(oldest, None)


def put_writes(
    desk: Desk,
    form: Form,
    place: Place,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Plan[None]:
    """Note what a task wrote, beside the checkpoint it ran on, which may come later."""
    if place.checkpoint_id is None:
        raise InvalidArgumentError("put_writes needs a config with a checkpoint_id")
    scope = desk.record_id(place, place.checkpoint_id)
    written = notes.Written()
    written.add(desk.engine, scope, new_id(), form.writes(writes, task_id, task_path))
    yield from written.write()


def get(desk: Desk, form: Form, place: Place, stage: Stage) -> Plan[CheckpointTuple | None]:
    """The checkpoint a place names, or the newest of its namespace."""
    files = desk.files if stage.begins else None
    if files is not None:
        check_waits(stage)
    record = yield from _load(desk, place)
    if record is None:
        return None
    kept = revive(desk.engine, record, trusts=form.trusts)
    desk.engine.restored(record)
    noted = (yield from _noted(desk, form, [record.info]))[kept.checkpoint_id]
    if files is not None:
        is_new_way = _is_fork(place, record.info) and not noted
        yield from files.put_back(kept, record.info, is_new_way, bool(noted))
    found = tuple_of(form, kept, noted)
    _remember_sent(desk, place, found.checkpoint)
    return found


def _load(desk: Desk, place: Place) -> Plan[Record | None]:
    """The record of a place with its chunks, where it lies as a rule; else it is looked for."""
    record = None
    if place.checkpoint_id is not None:
        record = yield from steps.load(desk.record_id(place, place.checkpoint_id))
    elif desk.engine.can(FindsNewest):
        record = yield from steps.newest(desk.agent_id, place.session_id)
        if record is None:
            return None  # a new thread
    if record is not None and _is_ours(desk, record.info) and _is_last(place, record.info):
        _remember(desk, place, record.info)
        return record
    info = yield from _find(desk, place)
    return None if info is None else (yield from steps.load(info.checkpoint_id))


def named(desk: Desk, place: Place) -> Plan[str]:
    """The id of the record of a place; CheckpointNotFoundError if there is none."""
    info = yield from _find(desk, place)
    if info is None:
        raise CheckpointNotFoundError(
            place.checkpoint_id or place.session_id, "the thread has no such checkpoint"
        )
    return info.checkpoint_id


def _find(desk: Desk, place: Place) -> Plan[CheckpointInfo | None]:
    """The record of a place."""
    session = Query(agent_id=desk.agent_id, session_id=place.session_id)
    if place.checkpoint_id is None:
        info = yield from newest(session)
        if info is not None and not _is_last(place, info):
            info = max((yield from _every(session)), key=_their_id)
    else:
        record_id = desk.record_id(place, place.checkpoint_id)
        info = yield from newest(Query(ids=[record_id], agent_id=desk.agent_id))
        if info is None:  # a fork made by Holdfast: it has an id of its own
            info = yield from newest(replace(session, tags={"checkpoint_id": place.checkpoint_id}))
    if info is not None:
        _remember(desk, place, info)
    return info


def _is_last(place: Place, info: CheckpointInfo) -> bool:
    """Whether what was written last is what LangGraph's savers hold to be the last of a thread.

    For them that is the greatest id, which is the same for ids that say when they were made.
    """
    return place.checkpoint_id is not None or says_when(_their_id(info))


def _their_id(info: CheckpointInfo) -> str:
    """The id that LangGraph gave a checkpoint."""
    return str(info.metadata["checkpoint_id"])


def _every(query: Query) -> Plan[list[CheckpointInfo]]:
    """All of these that savers put."""
    return [info for info in (yield from steps.query(query)) if put_by_a_saver(info)]


def _remember(desk: Desk, place: Place, info: CheckpointInfo) -> None:
    """Know the id of a record that has one of its own."""
    if _is_fork(place, info):
        desk.other_ids[place.session_id, info.metadata["checkpoint_id"]] = info.checkpoint_id


def _is_fork(place: Place, info: CheckpointInfo) -> bool:
    """Whether a record was not put by a saver, but made of one that was."""
    return info.checkpoint_id != place.record_id(info.metadata["checkpoint_id"])


def _is_ours(desk: Desk, info: CheckpointInfo) -> bool:
    return info.agent_id == desk.agent_id and put_by_a_saver(info)


def _noted(
    desk: Desk, form: Form, infos: Collection[CheckpointInfo]
) -> Plan[dict[str, list[dict[str, Any]]]]:
    """What tasks wrote on these checkpoints."""
    found: dict[str, list[dict[str, Any]]] = {info.checkpoint_id: [] for info in infos}
    for note, value in (yield from notes.read(desk.engine, found.keys(), trusts=form.trusts)):
        found[note.scope].append(value)
    return found


def list_infos(
    desk: Desk,
    place: Place | None,
    every_namespace: bool,
    wanted: dict[str, Any],
    before: str | None,
    limit: int | None,
) -> Plan[list[CheckpointInfo]]:
    """The records of a listing, newest first."""
    if limit is not None and limit <= 0:
        return []
    if place is not None and place.checkpoint_id is not None:
        wanted = {**wanted, "checkpoint_id": place.checkpoint_id}
    # Stores compare types as well; for LangGraph 1 is True, and what is missing is None.
    tags = {name: value for name, value in wanted.items() if type(value) is str}
    others = wanted.keys() - tags.keys()
    query = Query(
        agent_id=desk.agent_id,
        tags=tags,
        limit=limit if before is None and not others else None,
    )
    found = yield from _in(query, place, every_namespace)
    if query.limit is not None and not all(says_when(_their_id(info)) for info in found):
        found = yield from _in(replace(query, limit=None), place, every_namespace)
    found = [
        info
        for info in found
        if all(info.metadata.get(name) == wanted[name] for name in others)
        and (before is None or _their_id(info) < before)
    ]
    found.sort(key=_their_id, reverse=True)
    return found[:limit]


def _in(query: Query, place: Place | None, every_namespace: bool) -> Plan[list[CheckpointInfo]]:
    """Those of a thread that savers put, of one namespace or of all; of all threads for None."""
    if place is None:
        return (yield from _every(query))
    found = yield from _every(replace(query, session_id=place.session_id))
    if every_namespace:
        below = sessions_below(place.thread_id)
        found += yield from _every(replace(query, session_prefix=below))
    return found


def pages(infos: Sequence[CheckpointInfo]) -> Iterable[Sequence[CheckpointInfo]]:
    """Records in parts that are small enough to hold with their states."""
    return (infos[start : start + _PAGE] for start in range(0, len(infos), _PAGE))


def tuples(desk: Desk, form: Form, infos: Sequence[CheckpointInfo]) -> Plan[list[CheckpointTuple]]:
    """These records as LangGraph knows them."""
    kept = yield from restore_all(desk.engine, infos, form.trusts)
    noted = yield from _noted(desk, form, infos)
    return [tuple_of(form, each, noted[each.checkpoint_id]) for each in kept]


def _thread(desk: Desk, thread_id: str) -> Plan[list[CheckpointInfo]]:
    """All records of a thread, of every namespace."""
    place = Place(thread_id, "", None)
    return (yield from list_infos(desk, place, True, {}, None, None))


def delete_thread(desk: Desk, thread_id: str) -> Plan[None]:
    """Remove a thread with all its namespaces and writes."""
    yield from _delete(desk, (yield from _thread(desk, thread_id)))


def _delete(desk: Desk, infos: Iterable[CheckpointInfo]) -> Plan[None]:
    ids = [info.checkpoint_id for info in infos]
    for start in range(0, len(ids), _LISTED):
        part = ids[start : start + _LISTED]
        yield from steps.delete(part)
        desk.engine.forget(*part)


def delete_for_runs(desk: Desk, run_ids: Sequence[str]) -> Plan[None]:
    """Remove what these runs made, but for what the state of a later run still builds on."""
    made: dict[str, CheckpointInfo] = {}
    for run_id in run_ids:
        found = yield from steps.query(Query(agent_id=desk.agent_id, tags={"run_id": str(run_id)}))
        made.update({info.checkpoint_id: info for info in found})
    infos: list[CheckpointInfo] = []
    for session_id in {info.session_id for info in made.values()}:
        infos += yield from steps.query(Query(agent_id=desk.agent_id, session_id=session_id))
    spared = yield from _spared(desk, infos, made.keys())
    if spared:
        logger.warning(
            "%d checkpoints of the deleted runs are kept: delta channels of others need them",
            len(spared),
        )
    yield from _delete(desk, [info for key, info in made.items() if key not in spared])


def prune(desk: Desk, thread_ids: Sequence[str], strategy: str) -> Plan[None]:
    """Remove all but the newest checkpoint of each namespace and what it builds on; or all."""
    if strategy not in ("keep_latest", "delete"):
        raise InvalidArgumentError(f'strategy is "keep_latest" or "delete", not {strategy!r}')
    for thread_id in thread_ids:
        infos = yield from _thread(desk, thread_id)
        removed = {info.checkpoint_id for info in infos}
        if strategy == "keep_latest":
            heads = {info.session_id: info for info in reversed(infos)}
            removed -= {head.checkpoint_id for head in heads.values()}
            removed -= yield from _spared(desk, infos, removed)
        yield from _delete(desk, [info for info in infos if info.checkpoint_id in removed])


def _spared(desk: Desk, infos: list[CheckpointInfo], removed: Collection[str]) -> Plan[set[str]]:
    """Those to be removed, of these sessions, without which one that stays is not whole.

    They stay, and so have to be whole as well.
    """
    if any(BUILDS_ON in info.metadata for info in infos if info.checkpoint_id in removed):
        infos = yield from steps.query(Query(agent_id=desk.agent_id))  # forks are elsewhere
    by_id = {info.checkpoint_id: info for info in infos}
    stay = [info for info in infos if info.checkpoint_id not in removed]
    spared: set[str] = set()
    while stay:
        info = stay.pop()
        parent = by_id.get(info.parent_id or "")
        if parent is None or parent.checkpoint_id in spared or BUILDS_ON not in info.metadata:
            continue
        if parent.checkpoint_id in removed:
            spared.add(parent.checkpoint_id)
            stay.append(parent)
    return spared


def copy_thread(desk: Desk, source: str, target: str) -> Plan[None]:
    """Give another thread the same checkpoints and writes; what it has already is left alone."""
    infos = yield from _thread(desk, source)
    copies = {info.checkpoint_id: _moved(info, target) for info in infos}
    for info in reversed(infos):
        copy = copies[info.checkpoint_id]
        parent = copies.get(info.parent_id or "")
        if parent is not None:  # else it is in another thread, which this one was forked from
            copy = copy.with_(parent_id=parent.checkpoint_id)
        noted = yield from steps.notes([info.checkpoint_id])
        renamed = [Note.of(copy.checkpoint_id, n.key, n.body, n.expires_at) for n in noted]
        try:
            yield from _commit_copy(desk, info, copy, tuple(renamed))
        except (CheckpointConflictError, NoteExistsError):
            continue


def _moved(info: CheckpointInfo, target: str) -> CheckpointInfo:
    """The record of the same checkpoint in another thread."""
    place = Place(target, place_of(info.session_id)[1], None)
    return info.with_(
        checkpoint_id=place.record_id(info.metadata["checkpoint_id"]),
        session_id=place.session_id,
        metadata={**info.metadata, "thread_id": target},
    )


def _commit_copy(
    desk: Desk, source: CheckpointInfo, copy: CheckpointInfo, noted: tuple[Note, ...]
) -> Plan[None]:
    if desk.engine.shares_chunks:
        commit = Commit(copy, {}, source.checkpoint_id, False, noted)
    else:
        record = yield from steps.load(source.checkpoint_id)
        chunks = {} if record is None else record.chunks
        stored = {name: compress(raw) for name, raw in chunks.items()}
        commit = Commit(copy, stored, None, False, noted)
    yield from steps.commit(commit)


def history(
    desk: Desk, form: Form, place: Place, channels: Sequence[str]
) -> Plan[dict[str, DeltaChannelHistory]]:
    """For each channel its nearest stored value among the ancestors, and what was written since."""
    writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    remaining = set(channels)
    info = yield from _find(desk, place)
    chain = [] if info is None else (yield from _path(info))
    for page in pages(chain):
        noted = yield from _noted(desk, form, page)
        for info in page:
            if not remaining:
                break
            pending = form.pending(noted[info.checkpoint_id])
            for write in reversed(pending):
                if write[1] in remaining:
                    writes[write[1]].append(write)
            # What builds on its ancestors in all that is asked for need not be read.
            if remaining - set(info.metadata.get(BUILDS_ON, ())):
                for kept in (yield from restore_all(desk.engine, [info], form.trusts)):
                    values = tuple_of(form, kept, ()).checkpoint["channel_values"]
                    seeds.update({name: values[name] for name in remaining & values.keys()})
            remaining -= seeds.keys()
    if info is not None:
        _check_whole(chain[-1] if chain else info, remaining)
    found: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        found[channel] = {"writes": writes[channel][::-1]}
        if channel in seeds:
            found[channel]["seed"] = seeds[channel]
    return found


def _path(info: CheckpointInfo) -> Plan[list[CheckpointInfo]]:
    """The ancestors of a checkpoint; not the one that a fork is made of: that is the fork's twin.

    What tasks wrote on the twin led to its own children.
    """
    path = []
    for ancestor in (yield from ancestors(info.checkpoint_id)):
        if ancestor.metadata.get("checkpoint_id") != info.metadata.get("checkpoint_id"):
            path.append(ancestor)
        info = ancestor
    return path


def _check_whole(oldest: CheckpointInfo, missing: set[str]) -> None:
    """Refuse a path that ends too early: a part of these channels was removed."""
    lost = missing.intersection(oldest.metadata.get(BUILDS_ON, ()))
    if lost and oldest.parent_id is not None:
        raise CheckpointIntegrityError(
            oldest.checkpoint_id,
            f"its delta channels {', '.join(sorted(lost))} build on {oldest.parent_id}, "
            "which was removed",
        )
