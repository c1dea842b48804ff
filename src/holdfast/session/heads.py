"""Where a session stands: what was written last on it, and what was called since.

A run marks each of its checkpoints with the note ``run``, and notes calls on the last. Others
may write on its session too: an offer is a checkpoint, so is a claim on one, and so is a plain
save. Such a head knows nothing of calls that were noted below it, so those are looked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from holdfast.core.codec import OnUnknown
from holdfast.errors import CheckpointIntegrityError, NotTheHeadError
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session import journal as journals
from holdfast.session.effects import RETRY, STARTED, Effect
from holdfast.stores.base import Fence, Query
from holdfast.verbs import notes, save
from holdfast.verbs.chains import circle_error, is_next, next_in

RUN = "run"
"""The note on a checkpoint that a run wrote."""
_PAGE = 500

Noted = list[tuple[str, Any]]
"""Keys and values of notes, in the order in which they were written."""


@dataclass(frozen=True)
class SessionHead:
    """The head of a session, and what was noted on it or holds for it."""

    info: CheckpointInfo
    noted: Noted
    below: CheckpointInfo | None = None
    """Where a run stood last, if others wrote on the session since."""
    missed: list[Effect] = field(default_factory=list)
    """Calls that were noted since, below a head of another state, which does not tell of them."""


def find(
    engine: Engine, session: tuple[str, str], on_unknown: OnUnknown
) -> Plan[SessionHead | None]:
    """Return where a session stands; None if it has no checkpoint."""
    info = yield from last(session)
    if info is None:
        return None
    info, noted = yield from _followed(engine, session, info, on_unknown)
    if _is_of_run(noted):
        return SessionHead(info, noted)
    below = yield from _below(engine, session, info, on_unknown)
    if not any(each.noted for each in below):
        return SessionHead(info, noted)
    # An offer and a claim have the state of what they were made of: all that was called holds.
    same = list(takewhile(lambda each: each.info.content_id == info.content_id, below))
    holds = [pair for each in reversed(same) for pair in each.noted]
    pairs = (pair for each in below[len(same) :][::-1] for pair in each.noted)
    missed, retried = journals.read(pairs)
    carried = [
        (journals.key_of(-1, RETRY if call.id in retried else STARTED), call.as_dict())
        for call in (replace(each, index=-1) for each in missed if each.is_unknown)
    ]
    return SessionHead(info, [*carried, *holds, *noted], below[-1].info, missed)


def _is_of_run(noted: Noted) -> bool:
    return any(key == RUN for key, _ in noted)


def last(session: tuple[str, str]) -> Plan[CheckpointInfo | None]:
    """Return what was written last on a session."""
    query = Query(agent_id=session[0], session_id=session[1], limit=1)
    return next(iter((yield from steps.query(query))), None)


def _followed(
    engine: Engine, session: tuple[str, str], info: CheckpointInfo, on_unknown: OnUnknown
) -> Plan[tuple[CheckpointInfo, Noted]]:
    """Return the checkpoint that notes of 0.2 lead to, and its notes.

    There the clock decided what is newest, and a note said which checkpoint followed which.
    """
    seen = {info.checkpoint_id: None}
    while True:
        read = yield from notes.read(engine, [info.checkpoint_id], on_unknown=on_unknown)
        noted = [(note.key, value) for note, value in read]
        try:
            following = [next_in(value) for key, value in noted if is_next(key)][-1:]
        except ValueError as error:
            raise CheckpointIntegrityError(info.checkpoint_id, str(error)) from None
        found = (yield from steps.query(Query(ids=following))) if following else []
        own = [each for each in found if (each.agent_id, each.session_id) == session]
        if not own:
            return info, noted
        if own[0].checkpoint_id in seen:
            way = [*seen]
            way = way[way.index(own[0].checkpoint_id) :]
            raise circle_error(way, "the notes of what followed it lead")
        info = own[0]
        seen[info.checkpoint_id] = None


def _below(
    engine: Engine, session: tuple[str, str], head: CheckpointInfo, on_unknown: OnUnknown
) -> Plan[list[SessionHead]]:
    """Return the checkpoints below a head, the newest first, to the last that a run wrote."""
    found: list[SessionHead] = []
    before = head.checkpoint_id
    while True:
        query = Query(agent_id=session[0], session_id=session[1], before=before, limit=_PAGE)
        page = yield from steps.query(query)
        by_scope: dict[str, Noted] = {info.checkpoint_id: [] for info in page}
        read = (yield from notes.read(engine, by_scope, on_unknown=on_unknown)) if page else []
        for note, value in read:
            by_scope[note.scope].append((note.key, value))
        for info in page:
            noted = by_scope[info.checkpoint_id]
            found.append(SessionHead(info, noted))
            if _is_of_run(noted) or any(is_next(key) for key, _ in noted):
                return found
        if len(page) < _PAGE:
            return found
        before = page[-1].checkpoint_id


def write(
    engine: Engine,
    head: CheckpointInfo | None,
    info: CheckpointInfo,
    payload: dict[str, Any],
    grows: bool,
    batch: notes.NoteBatch,
    unless: Fence,
) -> Plan[None]:
    """Write what a run did behind its head, or as the first of its session.

    ``grows`` says that its calls begin with those that its parent holds.
    NotTheHeadError if others wrote on the session since. An offer of what the run did is no step
    of it.
    """
    follows: str | None = "" if head is None else head.checkpoint_id
    append_only = [("effects",)] if grows else []
    while True:
        try:
            yield from save.write(engine, info, payload, append_only, batch, unless, follows)
            return
        except NotTheHeadError:
            now = yield from last((info.agent_id, info.session_id))
            if now is None or now.checkpoint_id == follows or (yield from _is_gone(head)):
                follows = None  # what comes last has expired, or the head was removed
                yield from batch.take_linked()
            elif now.handoff_target is None:
                raise
            else:
                follows = now.checkpoint_id


def _is_gone(head: CheckpointInfo | None) -> Plan[bool]:
    if head is None:
        return False
    return not (yield from steps.query(Query(ids=[head.checkpoint_id])))
