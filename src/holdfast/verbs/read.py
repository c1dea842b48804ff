"""Verbs that read: restore, latest, timeline, find, sessions, ancestors, tree, diff."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from holdfast.core.chunk_decoder import decode, references
from holdfast.core.chunk_format import checked
from holdfast.core.codec import OnUnknown, Trusts
from holdfast.core.diff import Diff
from holdfast.core.differ import diff_roots
from holdfast.core.safe_repr import briefly
from holdfast.core.shallow_reader import packed, shallow
from holdfast.errors import (
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    InvalidArgumentError,
    SerializationError,
)
from holdfast.model import (
    PAYLOAD,
    Checkpoint,
    CheckpointInfo,
    Timeline,
    check_known,
    checked_name,
    checksum_fits,
    is_count,
    show_own_path,
)
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query, Record, SessionInfo, unfold
from holdfast.stores.capabilities import FindsNewest
from holdfast.verbs.chains import circle_error
from holdfast.verbs.ids import resolve
from holdfast.verbs.lineage import Tree, grow

_PAGE = 1000


def get_info(checkpoint_id: str) -> Plan[CheckpointInfo]:
    """Return the record of a checkpoint, without its payload."""
    whole_id = yield from resolve(checkpoint_id)
    found = yield from steps.query(Query(ids=[whole_id]))
    if not found:
        raise CheckpointNotFoundError(checkpoint_id)
    return found[0]


def restore(
    engine: Engine, checkpoint_id: str, verify: bool, on_unknown: OnUnknown
) -> Plan[Checkpoint]:
    """Return a checkpoint with its payload."""
    if on_unknown not in ("raise", "raw"):
        raise InvalidArgumentError(f'on_unknown is "raise" or "raw", not {on_unknown!r}')
    whole_id = yield from resolve(checkpoint_id)
    record = yield from steps.load(whole_id, verify)
    if record is None:
        raise CheckpointNotFoundError(checkpoint_id)
    return _remembered(engine, record, verify, on_unknown)


def _remembered(
    engine: Engine, record: Record, verify: bool = True, on_unknown: OnUnknown = "raise"
) -> Checkpoint:
    checkpoint = revive(engine, record, verify, on_unknown)
    engine.restored(record)
    return checkpoint


def revive(
    engine: Engine,
    record: Record,
    verify: bool = True,
    on_unknown: OnUnknown = "raise",
    trusts: Trusts | None = None,
) -> Checkpoint:
    """Return the checkpoint of a loaded record, its checksum proven."""
    info = record.info
    if verify:
        verify_record(info)
    check_known(info)
    try:
        payload = decode(
            bytes.fromhex(info.content_id),
            record.chunks,
            on_unknown=on_unknown,
            allow_pickle=engine.allow_pickle,
            trusts=trusts,
        )
    except SerializationError as error:
        show_own_path(error)
        raise
    except CheckpointIntegrityError as error:
        raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None
    if type(payload) is not dict or not set(payload) <= set(PAYLOAD):
        raise CheckpointIntegrityError(info.checkpoint_id, "its payload is of another shape")
    return Checkpoint.from_parts(info, payload)


def restore_parts(
    engine: Engine, info: CheckpointInfo, names: Collection[str]
) -> Plan[dict[str, Any]]:
    """Return some parts of a checkpoint by their names; what the others hold is not read.

    Values of classes that are not known are given as Raw.
    """
    if not engine.shares_chunks:
        whole = yield from restore(engine, info.checkpoint_id, True, "raw")
        return {name: getattr(whole, name) for name in names}
    verify_record(info)
    check_known(info)
    root = bytes.fromhex(info.content_id)
    stored = yield from steps.fetch([root])
    if root not in stored:
        raise CheckpointIntegrityError(info.checkpoint_id, f"chunk {root.hex()} is missing")
    try:
        payload = shallow(checked(root, stored[root]))
        if type(payload) is not dict:
            raise CheckpointIntegrityError(None, "its payload is of another shape")
        part = packed({name: payload[name] for name in names if name in payload})
        chunks = yield from unfold(dict(references(part)), {}, steps.fetch)
        found = decode(
            root, {**chunks, root: part}, on_unknown="raw", allow_pickle=engine.allow_pickle
        )
    except CheckpointIntegrityError as error:
        raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None
    known = Checkpoint.from_parts(info, found)  # with what is empty where nothing was kept
    return {name: getattr(known, name) for name in names}


def verify_record(info: CheckpointInfo) -> None:
    """Refuse a record that does not fit its checksum."""
    if not checksum_fits(info):
        raise CheckpointIntegrityError(
            info.checkpoint_id, "its checksum does not fit; it was altered after it was saved"
        )


def latest(engine: Engine, agent_id: str, session_id: str) -> Plan[Checkpoint | None]:
    """Return the newest checkpoint of a session, or None if it has none."""
    checked_name("agent_id", agent_id)
    checked_name("session_id", session_id)
    if engine.can(FindsNewest):
        record = yield from steps.newest(agent_id, session_id)
        return None if record is None else _remembered(engine, record)
    found = yield from steps.query(Query(agent_id=agent_id, session_id=session_id, limit=1))
    if not found:
        return None
    return (yield from restore(engine, found[0].checkpoint_id, True, "raise"))


def find(
    *,
    agent_id: str | None = None,
    session_id: str | None = None,
    parent_id: str | None = None,
    handoff_target: str | None = None,
    tags: Mapping[str, Any] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = 50,
    before: str | None = None,
) -> Plan[list[CheckpointInfo]]:
    """Records by what is known of them, newest first."""
    names = {"agent_id": agent_id, "session_id": session_id, "handoff_target": handoff_target}
    for what, name in names.items():
        if name is not None:
            checked_name(what, name)
    _check_limit(limit)
    for moment in (since, until):
        if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
            raise InvalidArgumentError(
                f"since and until are datetimes with a time zone, not {moment!r}"
            )
    if not isinstance(tags, (Mapping, type(None))):
        raise InvalidArgumentError(f"tags are a dict of names and values, not {tags!r}")
    tags = dict(tags or {})
    for name in tags:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"the names of tags are strings, not {name!r}")
    parent = None if parent_id is None else (yield from resolve(parent_id))
    last = None if before is None else (yield from _last_of_page(before))
    query = Query(
        agent_id=agent_id,
        session_id=session_id,
        parent_id=parent,
        handoff_target=handoff_target,
        tags=tags,
        since=since,
        until=until,
        before=last,
        limit=limit,
    )
    return Timeline((yield from steps.query(query)))


def _last_of_page(checkpoint_id: str) -> Plan[str]:
    whole_id = yield from resolve(checkpoint_id)
    if not (yield from steps.query(Query(ids=[whole_id], include_expired=True))):
        raise CheckpointNotFoundError(checkpoint_id, "it was removed; list from the newest again")
    return whole_id


def timeline(
    engine: Engine,
    agent_id: str,
    session_id: str,
    limit: int | None,
    before: str | None,
    with_state: bool,
) -> Plan[list[Any]]:
    """Return the checkpoints of a session, newest first; with their states only where asked."""
    checked_name("agent_id", agent_id)
    checked_name("session_id", session_id)
    infos = yield from find(agent_id=agent_id, session_id=session_id, limit=limit, before=before)
    if not with_state:
        return infos
    return Timeline((yield from restore_all(engine, infos)))


def restore_all(
    engine: Engine, infos: Iterable[CheckpointInfo], trusts: Trusts | None = None
) -> Plan[list[Checkpoint]]:
    """Return the checkpoints of these records with their states; shared chunks are read once."""
    checkpoints = []
    at_hand: Mapping[bytes, bytes] = {}
    for info in infos:
        try:
            record = yield from _load(engine, info, at_hand)
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None
        if record is not None:  # one may expire while they are read
            checkpoints.append(revive(engine, record, trusts=trusts))
            at_hand = record.chunks
    return checkpoints


def _load(
    engine: Engine, info: CheckpointInfo, at_hand: Mapping[bytes, bytes]
) -> Plan[Record | None]:
    """Return a record with its chunks, of which those at hand are not read again."""
    if not engine.shares_chunks:
        return (yield from steps.load(info.checkpoint_id))
    root = bytes.fromhex(info.content_id)
    return Record(info, (yield from unfold({root: True}, at_hand, steps.fetch)))


def sessions(
    agent_id: str | None, limit: int | None = None, before: SessionInfo | str | None = None
) -> Plan[list[SessionInfo]]:
    """Return every session, the one touched last first; or a page of them."""
    if agent_id is not None:
        checked_name("agent_id", agent_id)
    _check_limit(limit)
    last = before.head.checkpoint_id if isinstance(before, SessionInfo) else before
    whole_id = None if last is None else (yield from _last_of_page(last))
    return (yield from steps.heads(agent_id, limit, whole_id))


def _check_limit(limit: int | None) -> None:
    if limit is not None and (not is_count(limit) or not 1 <= limit < 2**63):
        raise InvalidArgumentError(f"limit is a number from 1, not {briefly(limit)}")


def ancestors(checkpoint_id: str, limit: int | None = None) -> Plan[list[CheckpointInfo]]:
    """Return the parent of a checkpoint, its parent, and so on, as far as history is kept.

    With a limit the nearest of them. Parents that lead in a circle, as only records made by hand
    do, are CheckpointIntegrityError.
    """
    _check_limit(limit)
    info = yield from get_info(checkpoint_id)
    if limit is None:
        return (yield from walk(info, first_page=_PAGE))
    return (yield from nearest(info, limit))


def nearest(info: CheckpointInfo, limit: int) -> Plan[list[CheckpointInfo]]:
    """Return so many ancestors of a checkpoint, the nearest."""
    return (yield from walk(info, lambda found: len(found) >= limit, min(_PAGE, limit)))


def walk(
    info: CheckpointInfo,
    is_enough: Callable[[list[CheckpointInfo]], bool] = lambda found: False,
    first_page: int = 16,
) -> Plan[list[CheckpointInfo]]:
    """Return the ancestors of a checkpoint until there are enough, reading few more than those."""
    found = Timeline[CheckpointInfo]()
    known: dict[str, CheckpointInfo] = {}
    seen = {info.checkpoint_id: None}
    page = first_page
    while info.parent_id is not None and not is_enough(found):
        if info.parent_id in seen:
            ids = list(seen)
            raise circle_error(ids[ids.index(info.parent_id) :])
        if info.parent_id not in known:
            parents = yield from steps.query(Query(ids=[info.parent_id]))
            if not parents:
                break
            # Most parents are in the session of the child: read them in one go.
            query = Query(
                agent_id=parents[0].agent_id,
                session_id=parents[0].session_id,
                before=parents[0].checkpoint_id,
                limit=page,
            )
            older = yield from steps.query(query)
            known.update({i.checkpoint_id: i for i in (*parents, *older)})
            page = min(_PAGE, 2 * page)
        info = known.pop(info.parent_id)
        seen[info.checkpoint_id] = None
        found.append(info)
    return found


def tree(agent_id: str, session_id: str) -> Plan[Tree]:
    """Return the checkpoints of a session and all sessions forked from it, as a tree."""
    checked_name("agent_id", agent_id)
    checked_name("session_id", session_id)
    infos = yield from connected(agent_id, session_id, agent_id)
    return grow(infos, session_id)


def connected(
    agent_id: str, session_id: str, within: str | None = None
) -> Plan[list[CheckpointInfo]]:
    """Return the records of a session and of all sessions connected with it, newest first.

    That are those that descend from it and those that it comes from, and so on; or, with an agent,
    those of its sessions that descend. Each is read whole: chains of parents are long.
    """
    known: dict[str, CheckpointInfo] = {}
    left, read = [(agent_id, session_id)], {(agent_id, session_id)}
    while left:
        fresh: list[CheckpointInfo] = []
        for agent, session in left:
            fresh += yield from steps.query(Query(agent_id=agent, session_id=session))
        known |= {info.checkpoint_id: info for info in fresh}
        beside = yield from _beside(fresh, known, within)
        left = sorted({(info.agent_id, info.session_id) for info in beside} - read)
        read.update(left)
    if len(read) == 1:
        return list(known.values())
    return (yield from steps.query(Query(ids=list(known))))


def _beside(
    infos: list[CheckpointInfo], known: Collection[str], within: str | None
) -> Plan[list[CheckpointInfo]]:
    """Return the children of records, of an agent if one is given; without one parents too."""
    if not infos:
        return []
    ids = [info.checkpoint_id for info in infos]
    found = yield from steps.query(Query(parent_ids=ids, agent_id=within))
    if within is None:
        parents = {info.parent_id for info in infos if info.parent_id not in known} - {None}
        if parents:
            found += yield from steps.query(Query(ids=[each for each in parents if each]))
    return found


def diff(engine: Engine, a: str, b: str) -> Plan[Diff]:
    """Return what changed from one checkpoint to another; only what differs is read."""
    return (yield from diff_of(engine, (yield from get_info(a)), (yield from get_info(b))))


def diff_of(engine: Engine, first: CheckpointInfo, second: CheckpointInfo) -> Plan[Diff]:
    """Return the same of checkpoints whose records are at hand."""
    at_hand: dict[bytes, bytes] = {}
    if not engine.shares_chunks:
        for info in (first, second):
            record = yield from steps.load(info.checkpoint_id)
            at_hand.update(record.chunks if record is not None else {})

    def fetch(names: Collection[bytes]) -> Plan[dict[bytes, bytes]]:
        missing = [name for name in names if name not in at_hand]
        if missing:
            stored = yield from steps.fetch(missing)
            at_hand.update({name: checked(name, data) for name, data in stored.items()})
        return at_hand

    old, new = bytes.fromhex(first.content_id), bytes.fromhex(second.content_id)
    return (yield from diff_roots(old, new, fetch, engine.allow_pickle))
