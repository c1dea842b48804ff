"""Handoffs: an offer to another agent that is claimed once, for a time, and then settled.

An offer is a checkpoint with a target. What becomes of it is noted beside it: ``claim/1``,
``claim/2``, … by those who took it up, each valid until its lease ends, ``claim/1/renewed/…``, and
``settled`` once. A scope has each key once, so two workers who want the same claim cannot both win.
What a worker saves is written unless the next claim is there: one who was away for too long, and
lost the offer to another, can neither complete it nor add to its session.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from time import monotonic
from typing import Any, Literal, get_args

from holdfast.core.contracts import Contract, check_contract, contract_name, contract_schema
from holdfast.errors import (
    CheckpointNotFoundError,
    FencedError,
    HandoffError,
    InvalidArgumentError,
    NoteExistsError,
)
from holdfast.model import Checkpoint, CheckpointInfo, checked_name, new_info
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Note, Query
from holdfast.verbs import events, leases, notes, open_marks, open_offers, save, stored_values
from holdfast.verbs.claims import Claim, last_claim
from holdfast.verbs.read import ancestors, get_info, restore

DEFAULT_LEASE = 300.0
"""Seconds after which a claim that was neither renewed nor settled is open to others."""

_LONGEST_REST = 30.0
_BEHIND = timedelta(seconds=60)
"""By how much the clocks of two machines may differ before an offer that expires is passed over."""

_NO_CONTRACT = "1.0"
"""What releases up to 0.3 wrote into an offer that has no contract."""

SETTLED = "settled"
"""The note on an offer that says what became of it."""

Outcome = Literal["completed", "rejected"]

Turning = Callable[[CheckpointInfo], tuple[CheckpointInfo, dict[str, Any]]]
"""Gives the record and the payload of an offer, of a record that says all else of it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A checkpoint that was offered to an agent, and what became of it so far."""

    checkpoint_id: str
    from_agent: str
    from_session: str
    to_agent: str
    contract: str | None
    """What the contract is called, if there is one."""
    schema: dict[str, Any] | None
    """Its JSON Schema, if it has one."""
    offered_at: datetime
    expires_at: datetime | None
    attempts: int = 0
    """How many workers have claimed it."""
    worker: str | None = None
    """Who claimed it last."""
    claimed_until: datetime | None = None
    session_id: str | None = None
    """The session in which it was taken up last."""
    outcome: Outcome | None = None
    reason: str | None = None

    def is_open(self, now: datetime | None = None) -> bool:
        """Return whether it can be accepted: not settled, and no lease on it runs."""
        claimed = self.claimed_until is not None and (now or datetime.now(UTC)) < self.claimed_until
        return self.outcome is None and not claimed


def handoff(
    engine: Engine,
    checkpoint_id: str,
    target_agent_id: str,
    contract: Contract | None,
    ttl_seconds: float | None,
    publish: bool,
    turned: Turning | None = None,
) -> Plan[str]:
    """Offer a checkpoint to another agent, as the next checkpoint of its session.

    What is ``turned`` into the state of another framework is offered in a session of its own.
    """
    target = checked_name("target_agent_id", target_agent_id)
    name = None if contract is None else checked_name("contract", contract_name(contract))
    source = yield from get_info(checkpoint_id)
    info = new_info(
        agent_id=source.agent_id,
        framework=source.framework,
        session_id=source.session_id if turned is None else None,
        parent_id=source.checkpoint_id,
        step_index=source.step_index + 1,
        step_name=f"handoff_to_{target}",
        metadata=source.metadata,
        ttl_seconds=ttl_seconds,
        handoff_target=target,
        handoff_schema=name,
    )
    payload = None
    if turned is not None:
        info, payload = turned(info)
    if contract is not None and not isinstance(contract, str):
        offered: Any = payload and payload["execution_state"]
        if payload is None:
            kept = yield from restore(engine, source.checkpoint_id, True, "raise")
            offered = kept.execution_state
        check_contract(contract, offered)
    batch = notes.NoteBatch()
    if contract is not None and (schema := contract_schema(contract)) is not None:
        batch.add(engine, info.checkpoint_id, "contract", schema, info.expires_at)
    if publish:
        event = {"kind": "handoff", "from": source.agent_id, "session_id": source.session_id}
        channel = open_offers.channel(target)
        events.note(engine, batch, channel, info.checkpoint_id, event, ttl_seconds)
    else:
        open_offers.enter(engine, batch, info)
    if payload is None:
        return (yield from save.derive(engine, source, info, written=batch))
    yield from save.write(engine, info, payload, written=batch)
    return info.checkpoint_id


def inbox(engine: Engine, agent_id: str | None, every: bool = False) -> Plan[list[Offer]]:
    """Return the offers an agent, or any, may accept, the oldest first; all of them if asked."""
    if agent_id is not None:
        checked_name("agent_id", agent_id)
    if every:
        asked = Query(handoff_target=agent_id, is_offered=True, oldest_first=True)
        return (yield from _offers(engine, (yield from steps.query(asked))))
    if agent_id is not None:
        infos = (yield from open_offers.candidates(engine, agent_id)).infos
    else:
        infos = sorted((yield from open_offers.candidates_of_all(engine)), key=_made)
    now = datetime.now(UTC)
    unsettled = yield from _unsettled(engine, infos)
    return [offer for offer in unsettled if offer.is_open(now) and not _is_over(offer, now)]


_made = attrgetter("created_at", "checkpoint_id")


def _unsettled(engine: Engine, infos: Iterable[CheckpointInfo]) -> Plan[list[Offer]]:
    """Return those that nobody has settled, taken or not, and whose time may not be over."""
    until = datetime.now(UTC) - _BEHIND
    current = [info for info in infos if not info.is_expired(until)]
    return [offer for offer in (yield from _offers(engine, current)) if offer.outcome is None]


def _is_over(offer: Offer, now: datetime) -> bool:
    return offer.expires_at is not None and now >= offer.expires_at


def _look(engine: Engine, agent_id: str) -> Plan[tuple[list[Offer], int]]:
    """Return the unsettled offers to an agent, and up to where its channel was read.

    Where much was settled in between, it is left out from the next look on.
    """
    candidates = yield from open_offers.candidates(engine, agent_id)
    unsettled = yield from _unsettled(engine, candidates.infos)
    if candidates.is_worth_a_mark(len(unsettled)):
        if candidates.is_first:
            yield from open_offers.begin(engine, agent_id)
            candidates = yield from open_offers.candidates(engine, agent_id)
            unsettled = yield from _unsettled(engine, candidates.infos)
        yield from candidates.mark(engine, [offer.checkpoint_id for offer in unsettled])
    return unsettled, candidates.announced


def offer(engine: Engine, checkpoint_id: str) -> Plan[Offer]:
    """Return an offer by its id, or by that of a checkpoint in a session that works on it."""
    info = yield from get_info(checkpoint_id)
    if info.handoff_target is not None:
        return (yield from _offers(engine, [info]))[0]
    for ancestor in (yield from ancestors(info.checkpoint_id)):
        if ancestor.handoff_target == info.agent_id:
            return (yield from _offers(engine, [ancestor]))[0]
    raise HandoffError(info.checkpoint_id, "is none: this checkpoint was not handed off")


def _offers(engine: Engine, infos: Sequence[CheckpointInfo]) -> Plan[list[Offer]]:
    noted: dict[str, list[tuple[Note, Any]]] = {info.checkpoint_id: [] for info in infos}
    if infos:
        for note, value in (yield from notes.read(engine, noted.keys(), on_unknown="raw")):
            noted[note.scope].append((note, value))
    return [_offer(info, noted[info.checkpoint_id]) for info in infos]


_SETTLED: dict[str, stored_values.Kind] = {
    "outcome": get_args(Outcome),
    "reason": stored_values.MAYBE_TEXT,
}


def _offer(info: CheckpointInfo, noted: Iterable[tuple[Note, Any]]) -> Offer:
    found = Offer(
        checkpoint_id=info.checkpoint_id,
        from_agent=info.agent_id,
        from_session=info.session_id,
        to_agent=str(info.handoff_target),
        contract=None if info.handoff_schema == _NO_CONTRACT else info.handoff_schema,
        schema=None,
        offered_at=info.created_at,
        expires_at=info.expires_at,
    )
    what = f"what is noted of the offer {info.checkpoint_id!r}"
    claims: list[tuple[str, Any]] = []
    for note, value in noted:
        kind = note.key.partition("/")[0]
        if kind == "contract":
            if not isinstance(value, dict):
                raise stored_values.damaged(what, "has something else as its contract")
            found = replace(found, schema=value)
        elif kind == SETTLED:
            said = stored_values.fields_of(what, value, _SETTLED, tuple(_SETTLED))
            found = replace(found, outcome=said["outcome"], reason=said["reason"])
        elif kind == Claim.KIND:
            claims.append((note.key, value))
    last = last_claim(what, claims)
    if last is None:
        return found
    return replace(
        found,
        attempts=last.number,
        worker=last.told["worker"],
        claimed_until=last.told["until"],
        session_id=last.told["session_id"],
    )


def accept(
    engine: Engine,
    checkpoint_id: str,
    contract: Contract | None,
    session_id: str | None,
    worker: str | None,
    lease_seconds: float,
) -> Plan[Checkpoint]:
    """Claim an offer, for nobody else until the lease ends, and begin a session with it.

    Where a worker before left off, its last checkpoint is where this one goes on.
    """
    seconds = _checked_seconds(lease_seconds)
    found = yield from offer(engine, checkpoint_id)
    _check_open(found)
    source = yield from _where_to_go_on(found)
    if contract is not None and not isinstance(contract, str):
        offered = yield from restore(engine, source.checkpoint_id, True, "raise")
        check_contract(contract, offered.execution_state)
    short = found.checkpoint_id.rpartition("-")[2][-6:]
    claim = Claim(
        found.checkpoint_id,
        found.attempts + 1,
        seconds,
        leases.end_of(seconds),
        worker or _this_worker(),
        session_id or found.session_id or f"{found.from_session}-{short}",
    )
    info = new_info(
        agent_id=found.to_agent,
        framework=source.framework,
        session_id=claim.session_id,
        parent_id=source.checkpoint_id,
        step_index=source.step_index + 1,
        step_name=f"accepted_from_{found.from_agent}",
        metadata=source.metadata,
    )
    batch = notes.NoteBatch()
    claim.note(engine, batch)
    try:
        unless = (found.checkpoint_id, SETTLED)
        accepted = yield from save.derive(engine, source, info, written=batch, unless=unless)
    except (NoteExistsError, FencedError):
        _check_open((yield from offer(engine, found.checkpoint_id)))
        raise HandoffError(found.checkpoint_id, "was taken by another just now") from None
    engine.claimed((info.agent_id, info.session_id), claim)
    return (yield from restore(engine, accepted, True, "raise"))


def take(
    engine: Engine,
    agent_id: str,
    contract: Contract | None,
    worker: str | None,
    lease_seconds: float,
    timeout: float | None,
) -> Plan[Checkpoint | None]:
    """Accept the oldest open offer to an agent as soon as there is one; None in the end."""
    channel = open_offers.channel(checked_name("agent_id", agent_id))
    deadline = None if timeout is None else monotonic() + timeout
    while True:
        unsettled, at = yield from _look(engine, agent_id)
        now = datetime.now(UTC)
        for found in unsettled:
            if found.is_open() and not _is_over(found, now):
                try:
                    return (
                        yield from accept(
                            engine, found.checkpoint_id, contract, None, worker, lease_seconds
                        )
                    )
                except (CheckpointNotFoundError, HandoffError):
                    continue  # it expired, or another worker was faster
        left = _next_look(unsettled)
        if deadline is not None:
            left = min(left, deadline - monotonic())
            if left <= 0:
                return None
        yield from events.wait(engine, channel, at, left)


def _next_look(offers: Iterable[Offer]) -> float:
    """Return seconds until the first lease ends, which nobody announces."""
    now = datetime.now(UTC)
    ends = [o.claimed_until for o in offers if o.claimed_until is not None]
    return min([_LONGEST_REST, *(max(0.01, (end - now).total_seconds()) for end in ends)])


def _check_open(found: Offer) -> None:
    if found.outcome is not None:
        raise HandoffError(
            found.checkpoint_id, f"is {found.outcome}" + _because(found.reason) + ": take another"
        )
    if not found.is_open():
        raise HandoffError(
            found.checkpoint_id,
            f"is taken by {found.worker} until {found.claimed_until}: take another, or wait",
        )


def _because(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _where_to_go_on(found: Offer) -> Plan[CheckpointInfo]:
    """Return the offer itself, or what a worker who took it up before had saved last."""
    if found.session_id is not None:
        query = Query(agent_id=found.to_agent, session_id=found.session_id, limit=1)
        for head in (yield from steps.query(query)):
            return head
    return (yield from get_info(found.checkpoint_id))


def renew(engine: Engine, checkpoint_id: str, lease_seconds: float | None) -> Plan[Offer]:
    """Hold on to a claim for another lease; an error if it was lost."""
    found = yield from offer(engine, checkpoint_id)
    claim = engine.claim_of(found.checkpoint_id)
    if claim is None or claim.number != found.attempts or found.outcome is not None:
        raise HandoffError(found.checkpoint_id, "is not yours to renew: accept it first")
    if lease_seconds is not None:
        claim = replace(claim, seconds=_checked_seconds(lease_seconds))
    claim = yield from leases.renew(engine, claim)
    engine.claimed((found.to_agent, claim.session_id), claim)
    return (yield from offer(engine, found.checkpoint_id))


def settle(
    engine: Engine, checkpoint_id: str, outcome: Outcome, reason: str | None, publish: bool = True
) -> Plan[Offer]:
    """Say once what became of an offer; nobody can accept it any more."""
    if reason is not None and not isinstance(reason, str):
        raise InvalidArgumentError(f"reason is a string, not {type(reason).__name__}")
    found = yield from offer(engine, checkpoint_id)
    claim = engine.claim_of(found.checkpoint_id)
    if outcome == "completed" and (claim is None or claim.number != found.attempts):
        raise HandoffError(
            found.checkpoint_id, f"is not yours to complete: {found.worker or 'nobody'} holds it"
        )
    if open_marks.is_turn(found.checkpoint_id):
        yield from _look(engine, found.to_agent)
    batch = notes.NoteBatch()
    value = {"outcome": outcome, "reason": reason, "worker": claim.worker if claim else None}
    batch.add(engine, found.checkpoint_id, SETTLED, value, found.expires_at)
    if publish:
        channel = f"settled:{found.from_agent}"
        events.note(engine, batch, channel, found.checkpoint_id, {"kind": outcome}, None)
    try:
        yield from batch.write(claim.fence if claim is not None else None)
    except FencedError:
        raise HandoffError(found.checkpoint_id, "is not yours any more: another took it") from None
    except NoteExistsError:
        settled = yield from offer(engine, found.checkpoint_id)
        raise HandoffError(
            found.checkpoint_id, f"is {settled.outcome} already" + _because(settled.reason)
        ) from None
    engine.unclaimed(found.checkpoint_id)
    return (yield from offer(engine, found.checkpoint_id))


def _checked_seconds(seconds: object) -> float:
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds < 10**9:
        return seconds
    raise InvalidArgumentError(f"lease_seconds is a number of seconds above 0, not {seconds!r}")


def _this_worker() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
