"""Opening a session: its lease, its head, its files, and a rollback that was cut off.

A session may know of calls that its head does not tell of: one that was forked, of those made since
on the way it was forked from; one on which others wrote, as by an offer or a plain save, of those
that a run had made before. What of them cannot be undone is not done again.
"""

from __future__ import annotations

from holdfast.errors import AdapterError
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.session import heads, recovery, rollback
from holdfast.session.effects import Effect
from holdfast.session.heads import SessionHead
from holdfast.session.open_session import Opening, OpenSession
from holdfast.session.recorded import calls_noted
from holdfast.stores.base import Query
from holdfast.verbs.read import restore


def open_session(session: OpenSession) -> Plan[None]:
    """Open a session, see to its files, and finish a rollback that was cut off.

    Where what is needed for that is missing, nothing is changed.
    """
    yield from go_to_head(session)
    begun = None if session.opening is None else session.opening.rollback
    if begun is not None:
        yield from rollback.check_begun(session, begun)
    session.recovered = yield from recovery.settle(session)
    if begun is not None:
        yield from rollback.finish(session, begun)


def go_to_head(session: OpenSession) -> Plan[None]:
    """Take the lease, and go to the head of a session, or make its first checkpoint."""
    if session.files is not None:
        yield from session.files.open()
    yield from session.checkpointer.acquire()
    head = yield from heads.find(
        session.engine, session.options.session, session.options.on_unknown
    )
    if head is not None:
        session.opening = yield from _resume(session, head)
    else:
        session.state.begin()
        yield from session.checkpointer.checkpoint("start")


def _resume(session: OpenSession, head: SessionHead) -> Plan[Opening]:
    """Stand where a session stands, and know of the calls that were made."""
    _check_framework(session, head.info)
    kept = yield from session.restored(head.info.checkpoint_id)
    history = session.history
    session.state.resume(kept)
    history.load(kept.effects, head.info.checkpoint_id)
    session.checkpointer.resume(head.info)
    if head.below is not None:
        before = yield from _unknown_calls_at(session, head.below)
        yield from history.know_of([*before, *head.missed])
    forked_from = yield from _forked_from(head.info)
    if forked_from is not None:
        history.begin_fork()
        elsewhere = yield from _unknown_calls_of(session, forked_from)
        yield from history.know_of(elsewhere)
    history.begin(head.noted)
    left = history.last_files()
    return Opening(
        head.info,
        kept.workspace if left is None else left,
        forked_from is not None,
        next((value for key, value in head.noted if key == rollback.ROLLBACK), None),
    )


def _check_framework(session: OpenSession, head: CheckpointInfo) -> None:
    """Refuse to go on with the state of another framework as if it were one's own."""
    wanted = session.options.framework
    if wanted is not None and head.framework is not wanted:
        raise AdapterError(
            f"session {head.session_id!r} of agent {head.agent_id!r} is of {head.framework.value}, "
            f"not of {wanted.value}: go on with it by client.continue_in({head.checkpoint_id!r}, "
            f"{wanted.value!r}), or use another session_id"
        )


def _forked_from(head: CheckpointInfo) -> Plan[CheckpointInfo | None]:
    """Return where a session was forked, if its head is the root of it."""
    if head.parent_id is None or "adopted" in head.metadata:
        return None
    for parent in (yield from steps.query(Query(ids=[head.parent_id]))):
        if (parent.agent_id, parent.session_id) != (head.agent_id, head.session_id):
            return parent
    return None


def _unknown_calls_of(session: OpenSession, info: CheckpointInfo) -> Plan[list[Effect]]:
    """Return the calls of the session of a checkpoint that are not known here, noted ones too."""
    head = yield from heads.find(session.engine, (info.agent_id, info.session_id), "raw")
    if head is None:  # removed meanwhile
        return []
    every: list[Effect] = []
    for each in (head.below, head.info):
        if each is not None:
            every += yield from _unknown_calls_at(session, each)
    return [*every, *head.missed, *calls_noted(head.noted)]


def _unknown_calls_at(session: OpenSession, info: CheckpointInfo) -> Plan[list[Effect]]:
    """Return the calls that a checkpoint tells of and that are not known here."""
    kept = yield from restore(session.engine, info.checkpoint_id, True, "raw")
    return (yield from session.history.unknown_here(kept.effects))
