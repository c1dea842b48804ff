"""Approval: calls that wait for a decision, bound to the exact call, that outlives restarts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from holdfast.errors import (
    ApprovalDeniedError,
    CheckpointIntegrityError,
    DivergenceError,
    InvalidArgumentError,
    NoteExistsError,
    RunError,
    SessionLostError,
    StillWaitingError,
    UnknownEffectError,
)
from holdfast.model import checked_name
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session.effects import FINAL, KINDS, WHOLE, Effect, call_text, copied
from holdfast.stores.base import Note
from holdfast.verbs import events, notes, open_marks, stored_values
from holdfast.verbs.open_marks import Mark

if TYPE_CHECKING:
    from holdfast.session.open_session import OpenSession

logger = logging.getLogger("holdfast")

ASKED = "/approvals"
"""Where all questions are noted, each under the id of its effect."""
_LIST = "approvals"
_BEHIND = timedelta(seconds=60)
"""By how much clocks may differ before a question whose time is over is passed over."""
_PATIENCE = 5.0
_SHORTEST = 6


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of a call; ``args`` and ``kwargs`` replace its own where they are given."""

    allowed: bool
    reason: str | None = None
    args: tuple[Any, ...] | None = None
    kwargs: dict[str, Any] | None = None
    by: str | None = None


NOT_A_FAILURE = (
    *(
        ApprovalDeniedError,
        DivergenceError,
        SessionLostError,
        StillWaitingError,
        UnknownEffectError,
    ),
)
"""Errors after which a program is gone on with where it was, as after a crash."""

Decider = Callable[[Effect], Any] | Literal["prompt", "wait"]
When = Collection[str] | Callable[[Effect], bool] | str


@dataclass(frozen=True)
class Approval:
    """Who decides, of which calls, and for how long a question stands."""

    decider: Decider
    when: When = FINAL
    expires_seconds: float | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.decider) and self.decider not in ("prompt", "wait"):
            raise InvalidArgumentError(
                f'approval is a function, "prompt" or "wait", not {self.decider!r}'
            )

    def concerns(self, effect: Effect) -> bool:
        """Return whether a call has to wait."""
        if callable(self.when):
            return bool(self.when(effect))
        named = (self.when,) if isinstance(self.when, str) else self.when
        return effect.kind in named or effect.tool in named


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for a decision."""

    effect_id: str
    agent_id: str
    session_id: str
    tool: str
    kind: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    digest: str
    asked_at: datetime
    expires_at: datetime | None

    def __str__(self) -> str:
        return call_text(self.tool, self.args, self.kwargs, WHOLE)


def ask(session: OpenSession, approval: Approval, effect: Effect) -> Plan[Effect]:
    """Return the call as it was allowed; ApprovalDeniedError if it was not."""
    if not approval.concerns(effect):
        return effect
    engine = session.engine
    decision = yield from _decided(engine, effect.id)
    if decision is None:
        if approval.decider == "wait":
            decision = yield from _wait(session, approval, effect)
        elif approval.decider == "prompt":
            decision = yield from steps.do(lambda: _prompt(effect))
        else:
            decision = _as_decision((yield from session.call(approval.decider, effect)))
        try:
            yield from session.checkpointer.write_notes(_note_of(engine, effect.id, decision))
        except NoteExistsError:  # there was a decision already, which counts
            decision = (yield from _decided(engine, effect.id)) or decision
    if not decision.allowed:
        raise ApprovalDeniedError(effect.tool, decision.reason)
    if decision.args is None and decision.kwargs is None:
        return effect
    args = effect.args if decision.args is None else tuple(decision.args)
    kwargs = effect.kwargs if decision.kwargs is None else dict(decision.kwargs)
    return replace(effect, args=args, kwargs=kwargs, edited=True)


def _wait(session: OpenSession, approval: Approval, effect: Effect) -> Plan[Decision]:
    """Leave a question, and wait until anybody, anywhere, has answered it."""
    engine = session.engine
    if open_marks.is_turn(effect.id):
        yield from _leave_mark(engine)
    expires = None
    if approval.expires_seconds is not None:
        expires = datetime.now(UTC) + timedelta(seconds=approval.expires_seconds)
    batch = notes.NoteBatch()
    value = {
        "agent_id": session.options.agent_id,
        "session_id": session.options.session_id,
        "effect": {**effect.as_dict(), "status": "started"},
        "expires_at": expires,
    }
    batch.add(engine, ASKED, effect.id, value)
    events.note(engine, batch, "approvals", None, {"effect_id": effect.id}, None)
    try:
        yield from session.checkpointer.write_notes(batch)
    except NoteExistsError:
        expires = (yield from question(engine, effect.id)).expires_at  # asked before a restart
    waited = 0.0
    while True:
        found = yield from _decided(engine, effect.id)
        if found is not None:
            return found
        if expires is not None and datetime.now(UTC) >= expires:
            return Decision(False, "nobody decided in time")
        if approval.timeout is not None and waited >= approval.timeout:
            raise StillWaitingError(
                f"{effect} still waits for approval: decide with client.approve({effect.id!r}) or "
                "client.deny(...), and run again"
            )
        rest = _PATIENCE if approval.timeout is None else min(_PATIENCE, approval.timeout - waited)
        if expires is not None:
            rest = min(rest, max(0.01, (expires - datetime.now(UTC)).total_seconds()))
        yield from events.wait(engine, _channel(effect.id), 0, rest)
        waited += rest
        yield from session.checkpointer.keep_lease()


def _channel(effect_id: str) -> str:
    return f"approval:{effect_id}"


def _decided(engine: Engine, effect_id: str) -> Plan[Decision | None]:
    found = yield from notes.read(engine, [f"/approval/{effect_id}"])
    for _, value in found:
        what = f"the decision of call {effect_id!r}"
        return Decision(**stored_values.fields_of(what, value, _DECIDED, ("allowed",)))
    return None


def _note_of(engine: Engine, effect_id: str, decision: Decision) -> notes.NoteBatch:
    """Return the note of a decision, and what tells those who wait for it."""
    batch = notes.NoteBatch()
    value = {name: getattr(decision, name) for name in decision.__dataclass_fields__}
    batch.add(engine, f"/approval/{effect_id}", "decision", value)
    events.note(engine, batch, _channel(effect_id), None, {"allowed": decision.allowed}, None)
    return batch


def decide(engine: Engine, effect_id: str, decision: Decision) -> Plan[Question]:
    """Decide of a call that waits, by its id or the beginning of it."""
    asked = yield from question(engine, effect_id)
    if asked.expires_at is not None and datetime.now(UTC) >= asked.expires_at:
        raise RunError(f"the time to decide of {asked} was over at {asked.expires_at:%H:%M:%S} UTC")
    copied(asked.tool, decision.args or (), decision.kwargs or {})
    try:
        yield from _note_of(engine, asked.effect_id, decision).write()
    except NoteExistsError:
        raise RunError(f"{asked} was decided of already") from None
    return asked


def question(engine: Engine, effect_id: str) -> Plan[Question]:
    """Return the question about a call, by the id of the call or the beginning of it."""
    if len(checked_name("effect_id", effect_id)) < _SHORTEST:
        raise RunError(f"give at least {_SHORTEST} characters of the id, not {effect_id!r}")
    waiting = [asked for asked, _ in (yield from _unanswered(engine)).waiting]
    found = [q for q in waiting if q.effect_id.startswith(effect_id)]
    if not found:  # then it may have been decided of, or its time is over
        found = [q for q in (yield from questions(engine)) if q.effect_id.startswith(effect_id)]
    if len(found) != 1:
        what = "no call waits" if not found else "several calls wait"
        raise RunError(f"{what} for approval under {effect_id!r}: see client.pending()")
    return found[0]


def pending(engine: Engine, agent_id: str | None) -> Plan[list[Question]]:
    """Return calls that wait for a decision, the oldest first."""
    now = datetime.now(UTC)
    return [
        q
        for q, _ in (yield from _unanswered(engine)).waiting
        if (agent_id is None or q.agent_id == agent_id)
        and (q.expires_at is None or now < q.expires_at)
    ]


@dataclass(frozen=True, slots=True)
class _Unanswered:
    """Questions that nobody has answered, as far as they were read."""

    waiting: list[tuple[Question, int]]
    """Each with its place; the oldest first."""
    unread: dict[str, int]
    """Those that cannot be read, by their id, with their places."""
    end: int
    """The place of the last that was looked at."""
    answered: int
    """How many more were looked at."""


def _unanswered(engine: Engine) -> Plan[_Unanswered]:
    """Return questions without an answer, but for those whose time was over a while ago.

    What a mark says to be settled is not read.
    """
    mark = (yield from open_marks.last(engine, [_LIST])).get(_LIST)
    found: list[tuple[Note, Any]] = []
    end = 0 if mark is None else mark.places.get(ASKED, 0)
    for place in () if mark is None else sorted(mark.open.values()):
        one = yield from notes.read(engine, [ASKED], place - 1, 1, on_unknown="raw")
        found += (each for each in one if each[0].seq == place)
    found += yield from notes.read(engine, [ASKED], end, on_unknown="raw")
    asked, unread = _read(found)
    until = datetime.now(UTC) - _BEHIND
    current = [each for each in asked if each[0].expires_at is None or until < each[0].expires_at]
    scopes = {f"/approval/{q.effect_id}" for q, _ in current}
    answered = (yield from steps.notes(scopes)) if scopes else []
    done = {note.scope for note in answered}
    waiting = [each for each in current if f"/approval/{each[0].effect_id}" not in done]
    end = max([end, *(note.seq for note, _ in found)])
    return _Unanswered(waiting, unread, end, len(asked) - len(waiting))


def _leave_mark(engine: Engine) -> Plan[None]:
    """Have the questions that are answered by now left out from the next look on."""
    seen = yield from _unanswered(engine)
    if open_marks.is_worth_it(seen.answered, len(seen.waiting) + len(seen.unread)):
        left = {asked.effect_id: place for asked, place in seen.waiting} | seen.unread
        yield from open_marks.write(engine, _LIST, Mark({ASKED: seen.end}, left))


def questions(engine: Engine) -> Plan[list[Question]]:
    """Return all questions that were ever asked, the oldest first."""
    asked, _ = _read((yield from notes.read(engine, [ASKED], on_unknown="raw")))
    return [question for question, _ in asked]


def _read(
    found: Iterable[tuple[Note, Any]],
) -> tuple[list[tuple[Question, int]], dict[str, int]]:
    """Return the questions that notes hold, each with its place; and those that cannot be read."""
    asked: list[tuple[Question, int]] = []
    unread: dict[str, int] = {}
    for note, value in found:
        try:
            asked.append((_asked(note.key, value), note.seq))
        except CheckpointIntegrityError as error:
            # One that was tampered with must not keep people from deciding of the others.
            logger.warning("a question under %r is not shown: %s", note.key, error.reason)
            unread[note.key] = note.seq
    return asked, unread


_KINDS: dict[str, stored_values.Kind] = {
    "agent_id": stored_values.TEXT,
    "session_id": stored_values.TEXT,
    "effect": stored_values.FIELDS,
    "expires_at": stored_values.MAYBE_MOMENT,
}
_DECIDED: dict[str, stored_values.Kind] = {
    "allowed": stored_values.TRUTH,
    "reason": stored_values.MAYBE_TEXT,
    "args": (list, tuple, type(None)),
    "kwargs": (dict, type(None)),
    "by": stored_values.MAYBE_TEXT,
}


def _asked(effect_id: str, value: Any) -> Question:
    said = stored_values.fields_of("a question", value, _KINDS, tuple(_KINDS))
    effect = Effect.from_dict(said["effect"])
    return Question(
        effect_id,
        said["agent_id"],
        said["session_id"],
        effect.tool,
        effect.kind,
        tuple(effect.args),
        dict(effect.kwargs),
        effect.digest,
        effect.started_at,
        said["expires_at"],
    )


def _as_decision(answer: Any) -> Decision:
    if isinstance(answer, Decision):
        return answer
    if isinstance(answer, bool):
        return Decision(answer)
    raise InvalidArgumentError(
        f"an approval function answers True, False or a Decision, not {answer!r}"
    )


def _prompt(effect: Effect) -> Decision:
    """Ask on the terminal; without one nothing is allowed."""
    if not sys.stdin.isatty():
        return Decision(False, "there is no terminal to ask on")
    sys.stderr.write(f"\n{effect.kind}: {effect}\nAllow this call? [y/N, or a reason] ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if answer.lower() in ("y", "yes"):
        return Decision(True)
    return Decision(False, None if answer.lower() in ("", "n", "no") else answer)


def checked_when(when: Any) -> When:
    """Return which calls wait: kinds, names of tools, or a function of the effect."""
    if when is None:
        return FINAL
    if callable(when):
        return when  # type: ignore[no-any-return]
    named = (when,) if isinstance(when, str) else tuple(when)
    if not all(isinstance(each, str) for each in named):
        raise InvalidArgumentError(
            f"approve_when is kinds ({', '.join(KINDS)}), tools by name or a function, not {when!r}"
        )
    return named
