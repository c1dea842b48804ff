"""Calling tools: journaled before and after, given from the record when they were made before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import ApprovalDeniedError, RunError, SerializationError
from holdfast.ids import new_id
from holdfast.runtime.steps import Plan
from holdfast.session import approval as approvals
from holdfast.session.effects import (
    ENDED,
    RETRY,
    STARTED,
    Effect,
    Kind,
    check_call,
    check_key_is_ours,
    copied,
    kept_copy,
    name_of,
    unwrapped,
    with_key,
)
from holdfast.session.functions import path_of
from holdfast.session.open_session import OpenSession
from holdfast.system.crash_points import reach


@dataclass(frozen=True)
class Tool:
    """A tool as the program calls it: the function, and what it is called with."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(
    session: OpenSession,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    kind: Kind,
    compensate: Callable[..., Any] | None,
    key: str | None,
    again: bool,
    is_models: bool = False,
) -> Plan[Any]:
    """Call a tool, or give what it gave when it was called before.

    ``is_models`` says that a model gave the key, which another model may give another time.
    """
    session.checkpointer.check_held()
    check_call(kind, key, compensate, function)
    session.history.program_calls()
    tool = Tool(*unwrapped(function, args, kwargs))
    if key is not None:
        check_key_is_ours(tool.function, tool.args, tool.kwargs)
    described = _described(session, tool, kind, compensate, key)
    made = yield from session.history.recall(described, again, is_models)
    session.functions.give(compensate, made.effect.id)
    if made.is_recorded and made.effect.status != "started":
        return outcome(made.effect)
    if made.reused is not None:
        return (yield from _reuse(session, made.effect, made.reused))
    return (yield from _make(session, tool, made.effect, is_new=not made.is_recorded))


def _described(
    session: OpenSession,
    tool: Tool,
    kind: Kind,
    compensate: Callable[..., Any] | None,
    key: str | None,
) -> Effect:
    """Return the call as it is recorded, but for its id and number."""
    name, (task, attempt) = name_of(tool.function), session.state.block
    digest, args, kwargs = copied(name, tool.args, tool.kwargs, session.engine.allow_pickle)
    return Effect(
        id="",
        index=-1,
        tool=name,
        kind=kind,
        args=args,
        kwargs=kwargs,
        digest=digest,
        key=key,
        task=task,
        attempt=attempt,
        compensate=None if compensate is None else path_of(compensate),
    )


def _reuse(session: OpenSession, effect: Effect, known: Effect) -> Plan[Any]:
    """Give what an equal call gave; it counts as made here, so that a resumed program finds it."""
    given = replace(
        effect, status="done", output=known.output, reused=known.id, ended_at=known.ended_at
    )
    yield from session.checkpointer.note_call(given, STARTED)
    return outcome(given)


def _make(session: OpenSession, tool: Tool, effect: Effect, is_new: bool) -> Plan[Any]:
    """Make a call, journaled before and after."""
    history = session.history
    try:
        effect = yield from _approved(session, effect)
    except BaseException as error:
        if is_new and not isinstance(error, ApprovalDeniedError):
            history.not_made(effect)
        raise
    if effect.edited:
        tool = replace(tool, args=effect.args, kwargs=effect.kwargs)
    reach("run:before_journal")
    history.begin_call(effect)
    is_recorded = True
    try:
        mark = STARTED if is_new else f"{STARTED}/{new_id()}"
        yield from session.checkpointer.note_call(effect, mark)
        reach("run:before_tool")
        is_recorded = False
        kwargs = with_key(tool.function, tool.kwargs, effect)
        try:
            output = yield from session.call(tool.function, *tool.args, **kwargs)
        except Exception as error:
            reach("run:after_tool")
            yield from _failed(session, effect, error)
            is_recorded = True
            raise
        reach("run:after_tool")
        yield from _done(session, effect, output)
        is_recorded = True
    except GeneratorExit:  # interrupted or cancelled: whether it took place is not known
        history.cut_off(effect)
        raise
    finally:
        history.end_call(effect)
        if not is_recorded and session.files is not None:
            session.files.fall_behind()
    yield from session.checkpointer.keep_lease()
    return output


def _approved(session: OpenSession, effect: Effect) -> Plan[Effect]:
    """Return the call as it was allowed; one that was denied is recorded as that."""
    if session.options.approval is None:
        return effect
    try:
        return (yield from approvals.ask(session, session.options.approval, effect))
    except ApprovalDeniedError as denied:
        ended = effect.ended(status="denied", reason=denied.reason)
        yield from session.checkpointer.note_call(ended, STARTED)
        raise


def _failed(session: OpenSession, effect: Effect, error: Exception) -> Plan[None]:
    """Keep the error that a tool raised, or, if it cannot be kept, what it said."""
    try:
        kept: Exception = kept_copy(error, session.engine.allow_pickle)
    except SerializationError as problem:
        kept = RunError(f"{type(error).__name__}: {error} (it could not be kept: {problem})")
        error.add_note(f"Holdfast: on resume this comes as a RunError, as {problem}")
    yield from _ended(session, effect.ended(status="failed", error=kept))


def _done(session: OpenSession, effect: Effect, output: Any) -> Plan[None]:
    """Keep what a tool returned; if it cannot be kept, the end of the call stays unknown."""
    try:
        kept = kept_copy(output, session.engine.allow_pickle)
    except SerializationError as error:
        problem = f"it returned, but its output could not be kept: {error.problem}"
        unkept = session.history.unkept(effect, problem)
        yield from session.checkpointer.note_call(unkept, f"{STARTED}/{new_id()}")
        session.history.cut_off(unkept)
        path = f"the output of {effect.tool}, {error.path}"
        raise SerializationError(path, error.problem) from error
    yield from _ended(session, effect.ended(status="done", output=kept))


def _ended(session: OpenSession, effect: Effect) -> Plan[None]:
    """Record how a call ended, with the files as they are then."""
    if session.files is not None:
        effect = replace(effect, workspace=(yield from session.files.capture()))
    reach("run:before_end")
    yield from session.checkpointer.note_call(effect, ENDED)
    reach("run:after_end")


def retry(session: OpenSession, effect: Effect) -> Plan[None]:
    """Have a call whose end is unknown made again, under the same idempotency key."""
    known = session.history.undecided(effect)
    session.history.retry(known)
    yield from session.checkpointer.note_call(known, f"{RETRY}/{new_id()}")


def decide(session: OpenSession, effect: Effect, **changes: Any) -> Plan[None]:
    """Record what the user says of how a call ended whose end is unknown."""
    decided = session.history.undecided(effect).ended(**changes)
    if decided.status == "done":
        decided = replace(decided, output=kept_copy(decided.output, session.engine.allow_pickle))
    yield from session.checkpointer.note_call(decided, ENDED)


def outcome(effect: Effect) -> Any:
    """Return what a call gave that was made before, or raise what it raised."""
    if effect.status == "denied":
        raise ApprovalDeniedError(effect.tool, effect.reason)
    if effect.error is None:
        return effect.output
    if not isinstance(effect.error, Exception):  # a record must not end the program, say
        raise RunError(f"{effect} is recorded as failed, with what is no error: {effect.error!r}")
    raise effect.error
