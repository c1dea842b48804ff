"""Calling tools: journaled before and after, given from the record when they were made before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import (
    ApprovalDeniedError,
    DivergenceError,
    FencedError,
    RunError,
    SerializationError,
)
from holdfast.ids import new_id
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.session import approval as approvals
from holdfast.session.core import Core
from holdfast.session.effects import (
    Effect,
    Kind,
    check_call,
    check_key_is_ours,
    copied,
    identity,
    kept_copy,
    name_of,
    unwrapped,
    with_key,
)
from holdfast.session.functions import path_of
from holdfast.session.journal import ENDED, RETRY, STARTED, key_of
from holdfast.system.crash_points import reach
from holdfast.verbs import notes


@dataclass(frozen=True)
class Tool:
    """A tool as the program calls it: the function, and what it is called with."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(
    core: Core,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    kind: Kind,
    compensate: Callable[..., Any] | None,
    key: str | None,
    again: bool,
) -> Plan[Any]:
    """Call a tool, or give what it gave when it was called before."""
    core.held()
    check_call(kind, key, compensate, function)
    core.has_called = True
    tool = Tool(*unwrapped(function, args, kwargs))
    if key is not None:
        check_key_is_ours(tool.function, tool.args, tool.kwargs)
    with core.lock:
        effect = _describe(core, tool, kind, compensate, key)
        recorded = _claimed(core, effect)
        reused = _standing(core, effect) if recorded is None and not again else None
        if recorded is None:
            effect = _identified(core, effect)
    if recorded is not None:
        core.functions.give(compensate, recorded.id)
        if recorded.status != "started":
            return outcome(recorded)
        return (yield from _make(core, tool, recorded, fresh=False))
    core.functions.give(compensate, effect.id)
    if reused is not None:
        return (yield from _reuse(core, effect, reused))
    return (yield from _make(core, tool, effect, fresh=True))


def _describe(
    core: Core,
    tool: Tool,
    kind: Kind,
    compensate: Callable[..., Any] | None,
    key: str | None,
) -> Effect:
    name, (task, attempt) = name_of(tool.function), core.block
    digest, args, kwargs = copied(name, tool.args, tool.kwargs, core.engine.allow_pickle)
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


def _identified(core: Core, effect: Effect) -> Effect:
    """The call with an id that it has again after a resume."""
    if effect.key is not None:
        before = len(core.log.with_key(effect.tool, effect.key))
        before += len(core.journal.with_key(effect.tool, effect.key))
        place: tuple[Any, ...] = (*core.session, "key", effect.key, before)
    else:
        before = core.made[core.place_of(effect)]
        token = core.log.token(effect.task)
        place = (*core.session, token, effect.task, effect.attempt, before)
    core.made[core.place_of(effect)] += 1
    return replace(effect, id=identity(*place, effect.tool, effect.digest))


def _claimed(core: Core, effect: Effect) -> Effect | None:
    """The record of this very call, if it was made before a resume."""
    try:
        found = core.journal.claim(effect)
    except DivergenceError:
        if not core.may_leave(effect.block):
            raise
        found = None
    if found is not None and found.status == "started":
        try:
            core.check_known(found)
        except RunError:
            core.journal.unclaim(found)
            raise
    if found is None and core.journal.is_left_by(effect):
        core.leave(effect.block)
    return found


def _standing(core: Core, effect: Effect) -> Effect | None:
    """A call with this key, or one that cannot be undone and was made on a way since left."""
    if effect.key is None:
        reused = {call.reused for call in core.journal.calls}
        is_lasting = effect.kind == "irreversible"
        return core.log.left_standing(effect.digest, reused) if is_lasting else None
    known = core.log.known_by(effect.tool, effect.key)
    for call in core.journal.with_key(effect.tool, effect.key):
        if call.id in core.under_way:
            raise RunError(f"{call} is being made right now under the key {effect.key!r}")
        if call.status == "started":
            core.check_known(call)
        known = call if call.status == "done" else known
    if known is not None and known.digest != effect.digest:
        raise DivergenceError(
            f"the call with key {effect.key!r} was recorded as {known}, and is made now as "
            f"{effect}: give it another key"
        )
    return known


def _reuse(core: Core, effect: Effect, known: Effect) -> Plan[Any]:
    """Give what an equal call gave; it counts as made here, so that a resumed program finds it."""
    given = replace(
        effect, status="done", output=known.output, reused=known.id, ended_at=known.ended_at
    )
    yield from _note(core, given, STARTED)
    return outcome(given)


def _make(core: Core, tool: Tool, effect: Effect, fresh: bool) -> Plan[Any]:
    """Make a call, journaled before and after."""
    try:
        effect = yield from _approved(core, effect)
    except BaseException as error:
        if fresh and not isinstance(error, ApprovalDeniedError):  # it was never made
            core.made[core.place_of(effect)] -= 1
        raise
    if effect.edited:
        tool = replace(tool, args=effect.args, kwargs=effect.kwargs)
    reach("run:before_journal")
    core.under_way[effect.id] = ""
    is_recorded = True
    try:
        yield from _note(core, effect, STARTED if fresh else f"{STARTED}/{new_id()}")
        reach("run:before_tool")
        is_recorded = False
        kwargs = with_key(tool.function, tool.kwargs, effect)
        try:
            output = yield from steps.call(core.wrap(tool.function), *tool.args, **kwargs)
        except Exception as error:
            reach("run:after_tool")
            yield from _failed(core, effect, error)
            is_recorded = True
            raise
        reach("run:after_tool")
        yield from _done(core, effect, output)
        is_recorded = True
    except GeneratorExit:  # interrupted or cancelled: whether it took place is not known
        with core.lock:
            begun = core.journal.find(effect.id)
            if begun is not None:
                core.journal.interrupted(begun)
        raise
    finally:
        core.under_way.pop(effect.id, None)
        if not is_recorded and core.files is not None:
            core.files.fall_behind()
    yield from core.keep_lease()
    return output


def _approved(core: Core, effect: Effect) -> Plan[Effect]:
    if core.options.approval is None:
        return effect
    try:
        return (
            yield from approvals.ask(
                core.engine,
                core.options.approval,
                core.session,
                effect,
                core.keep_lease,
                core.wrap,
                core.held().fence,
            )
        )
    except FencedError:
        raise core.held().lost() from None
    except ApprovalDeniedError as denied:
        yield from _note(core, effect.ended(status="denied", reason=denied.reason), STARTED)
        raise


def _failed(core: Core, effect: Effect, error: Exception) -> Plan[None]:
    """Keep the error that a tool raised, or, if it cannot be kept, what it said."""
    try:
        kept: Exception = kept_copy(error, core.engine.allow_pickle)
    except SerializationError as problem:
        kept = RunError(f"{type(error).__name__}: {error} (it could not be kept: {problem})")
        error.add_note(f"Holdfast: on resume this comes as a RunError, as {problem}")
    yield from _ended(core, effect.ended(status="failed", error=kept))


def _done(core: Core, effect: Effect, output: Any) -> Plan[None]:
    """Keep what a tool returned; if it cannot be kept, the end of the call stays unknown."""
    try:
        kept = kept_copy(output, core.engine.allow_pickle)
    except SerializationError as error:
        problem = f"it returned, but its output could not be kept: {error.problem}"
        unkept = replace(core.journal.find(effect.id) or effect, reason=problem)
        yield from _note(core, unkept, f"{STARTED}/{new_id()}")
        core.journal.interrupted(unkept)
        path = f"the output of {effect.tool}, {error.path}"
        raise SerializationError(path, error.problem) from error
    yield from _ended(core, effect.ended(status="done", output=kept))


def _ended(core: Core, effect: Effect) -> Plan[None]:
    if core.files is not None:
        effect = replace(effect, workspace=(yield from core.files.capture()))
    reach("run:before_end")
    yield from _note(core, effect, ENDED)
    reach("run:after_end")


def _note(core: Core, effect: Effect, mark: str) -> Plan[None]:
    """Write down a call on the head, and remember it.

    It gets its number here, where no checkpoint comes between; where one was made while the tool
    ran, it is another one now.
    """
    yield from core.gate.enter()
    known = core.journal.find(effect.id)
    try:
        effect = replace(effect, index=core.new_index() if known is None else known.index)
        core.journal.put(effect)
        yield from _write(core, effect, mark)
    except Exception:
        if known is None:  # it was not begun
            core.journal.drop(effect)
        raise
    finally:
        core.gate.leave()


def _write(core: Core, effect: Effect, mark: str) -> Plan[None]:
    head = core.at.checkpoint_id
    only_end = mark == ENDED and core.under_way.get(effect.id) == head
    value = effect.end_dict() if only_end else effect.as_dict()
    if effect.id in core.under_way and mark.startswith(STARTED):
        core.under_way[effect.id] = head
    written = notes.NoteBatch()
    written.add(core.engine, head, key_of(effect.index, mark), value)
    yield from core.note(written)


def decide(core: Core, effect: Effect, mark: str, **changes: Any) -> Plan[None]:
    """Record what the user says of a call whose end is unknown."""
    known = {call.id: call for call in core.journal.unknown() if call.id not in core.under_way}
    if effect.id not in known:
        raise RunError(f"{effect} is not unknown any more")
    effect = known[effect.id]
    if mark == RETRY:
        core.journal.retried.add(effect.id)
        yield from _note(core, effect, f"{RETRY}/{new_id()}")
        return
    decided = effect.ended(**changes)
    if decided.status == "done":
        decided = replace(decided, output=kept_copy(decided.output, core.engine.allow_pickle))
    yield from _note(core, decided, ENDED)


def outcome(effect: Effect) -> Any:
    """What a call gave that was made before."""
    if effect.status == "denied":
        raise ApprovalDeniedError(effect.tool, effect.reason)
    if effect.error is None:
        return effect.output
    if not isinstance(effect.error, Exception):  # a record must not end the program, say
        raise RunError(f"{effect} is recorded as failed, with what is no error: {effect.error!r}")
    raise effect.error
