"""Calls of unknown end that wait for a person to decide, in any session of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.errors import InvalidArgumentError, RunError
from holdfast.model import CheckpointInfo, checked_name
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session import calls as tool_calls
from holdfast.session import heads, opening
from holdfast.session import lease as leases
from holdfast.session.effects import WHOLE, Effect, call_text
from holdfast.session.open_session import OpenSession
from holdfast.session.options import SessionOptions
from holdfast.session.recorded import unknown_calls_of
from holdfast.session.tasks import TaskList
from holdfast.stores.base import Query
from holdfast.verbs.read import restore, sessions

_SHORTEST = 6


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call that was begun and may have done something that lasts; its end is not recorded."""

    effect_id: str
    agent_id: str
    session_id: str
    tool: str
    kind: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    started_at: datetime
    reason: str | None = None
    """What is known of why."""

    def __str__(self) -> str:
        return call_text(self.tool, self.args, self.kwargs, WHOLE)


@dataclass(frozen=True)
class Verdict:
    """What somebody decided of such a call."""

    is_retry: bool = False
    """Whether it is to be made again; else how it ended is known."""
    end: Mapping[str, Any] = field(default_factory=dict)


def verdict(done: Any, failed: object, retry: object) -> Verdict:
    """Return the one thing that was decided; an error if it is none, or several."""
    given = [done is not ..., failed not in (None, False), retry not in (None, False)]
    if sum(given) != 1:
        raise InvalidArgumentError(
            "say one thing of the call: done=what it gave, failed=why, or retry=True"
        )
    if given[0]:
        return Verdict(end={"status": "done", "output": done})
    if given[2]:
        return Verdict(is_retry=True)
    if not isinstance(failed, (str, Exception)) and failed is not True:
        raise InvalidArgumentError(f"failed is a reason or an exception, not {failed!r}")
    error = failed if isinstance(failed, Exception) else None
    told = RunError("it did not take place" if failed is True else str(failed))
    return Verdict(end={"status": "failed", "error": error or told})


def unknown_calls(
    engine: Engine,
    agent_id: str | None = None,
    session_id: str | None = None,
    also_held: bool = False,
) -> Plan[list[UnknownCall]]:
    """Return calls that wait to be decided of, the oldest first.

    Those of a session that a process works on may be being made now, and are left out.
    """
    if session_id is None:
        newest = [each.head for each in (yield from sessions(agent_id))]
    else:
        newest = yield from _heads_of(agent_id, checked_name("session_id", session_id))
    found: list[UnknownCall] = []
    journaled = yield from _journaled(engine, newest)
    ended = yield from leases.endings(engine, [_session(head) for head in newest])
    for head in newest:
        last = ended.get(_session(head))
        if last is not None and last.is_held and not also_held:
            continue
        if head.checkpoint_id in journaled or (last is not None and last.may_have_unknown):
            found += yield from _waiting(engine, _session(head))
    return sorted(found, key=lambda call: call.started_at)


def _session(head: CheckpointInfo) -> tuple[str, str]:
    return head.agent_id, head.session_id


def _heads_of(agent_id: str | None, session_id: str) -> Plan[list[CheckpointInfo]]:
    """Return the newest checkpoint of the sessions of that name, one for each agent."""
    if agent_id is not None:
        return (yield from steps.query(Query(agent_id=agent_id, session_id=session_id, limit=1)))
    every = yield from sessions(None)
    return [each.head for each in every if each.session_id == session_id]


def _journaled(engine: Engine, newest: Sequence[CheckpointInfo]) -> Plan[set[str]]:
    """Return those of these checkpoints on which calls are noted."""
    ids = [head.checkpoint_id for head in newest]
    noted = (yield from steps.notes(ids)) if ids else []
    return {note.scope for note in noted if note.key.startswith("call/")}


def _waiting(engine: Engine, session: tuple[str, str]) -> Plan[list[UnknownCall]]:
    head = yield from heads.find(engine, session, "raw")
    if head is None:  # removed meanwhile
        return []
    kept = yield from restore(engine, head.info.checkpoint_id, True, "raw")
    found = unknown_calls_of(kept.effects, head.noted, TaskList(kept.tasks).is_open)
    return [_told(head.info, call) for call in found]


def _told(head: CheckpointInfo, call: Effect) -> UnknownCall:
    return UnknownCall(
        call.id,
        head.agent_id,
        head.session_id,
        call.tool,
        call.kind,
        tuple(call.args),
        dict(call.kwargs),
        call.started_at,
        call.reason,
    )


def find(engine: Engine, effect_id: str) -> Plan[UnknownCall]:
    """Return the call that is meant, by its id or the beginning of it."""
    if len(checked_name("effect_id", effect_id)) < _SHORTEST:
        raise RunError(f"give at least {_SHORTEST} characters of the id, not {effect_id!r}")
    every = yield from unknown_calls(engine, also_held=True)
    found = [call for call in every if call.effect_id.startswith(effect_id)]
    if len(found) != 1:
        what = "no call of unknown end has" if not found else "several calls of unknown end have"
        raise RunError(f"{what} the id {effect_id!r}: see client.unknown_effects()")
    return found[0]


def session_of(engine: Engine, call: UnknownCall, takeover: bool) -> OpenSession:
    """Return the session of a call, to be opened without its files and classes."""
    options = SessionOptions(call.agent_id, call.session_id, takeover=takeover, on_unknown="raw")
    return OpenSession(engine, options, None)


def decide(session: OpenSession, call: UnknownCall, verdict: Verdict) -> Plan[None]:
    """Open the session of a call, and record a verdict in its own journal, under its lease."""
    yield from opening.go_to_head(session)
    known = {each.id: each for each in session.history.unknown()}
    if call.effect_id not in known:
        raise RunError(f"{call} is not unknown any more")
    if verdict.is_retry:
        yield from tool_calls.retry(session, known[call.effect_id])
    else:
        yield from tool_calls.decide(session, known[call.effect_id], **verdict.end)
