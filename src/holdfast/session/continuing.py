"""Going on with a session in another framework.

The new session begins with a checkpoint whose parent is the one it comes from. Its state is the
other framework's own, made of the conversation; files, tasks and calls are carried on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.contracts import Contract
from holdfast.core.conversation import Conversation
from holdfast.core.conversation.forms import Form
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import tool_call_response
from holdfast.core.conversation.plain import plain
from holdfast.core.conversation.reading import form_of
from holdfast.core.conversation.settling import Rest
from holdfast.core.conversation.writing import with_originals, written
from holdfast.core.safe_repr import shown
from holdfast.errors import AdapterError, InvalidArgumentError, NotTheHeadError
from holdfast.model import CheckpointInfo, Framework, checked_name, make_payload, new_info
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session import heads
from holdfast.session import journal as journals
from holdfast.session.effects import Effect
from holdfast.session.recorded import calls_in
from holdfast.verbs import handoff as handoffs
from holdfast.verbs import notes, save
from holdfast.verbs.conversations import Held, held
from holdfast.verbs.interrupts import written_by_tasks
from holdfast.verbs.read import ancestors, restore

CONTINUED = "continued_from"
"""In the context of the first checkpoint: where it comes from, and what was lost on the way."""


@dataclass(frozen=True)
class Continued:
    """A session that goes on in another framework."""

    checkpoint_id: str
    """Its first checkpoint."""
    session_id: str
    agent_id: str
    framework: Framework
    lost: list[str] = field(default_factory=list)
    """What could not be carried: where it was, and why."""
    unknown: list[Effect] = field(default_factory=list)
    """Calls that may have done something that lasts, and of whose end nothing is known."""


def continue_in(
    engine: Engine,
    checkpoint_id: str,
    framework: Framework | str,
    *,
    session_id: str | None,
    agent_id: str | None,
    tool_names: Mapping[str, str] | None,
    rest: Rest | None,
) -> Plan[Continued]:
    """Begin a session of a framework with the conversation of a checkpoint."""
    form = form_of(framework)
    agent = checked_name("agent_id", form.framework if agent_id is None else agent_id)
    if session_id is not None:
        checked_name("session_id", session_id)
        if (yield from heads.last((agent, session_id))) is not None:
            raise _not_new(agent, session_id)
    turned = yield from turn(engine, checkpoint_id, form, tool_names, rest)
    info = new_info(
        agent_id=agent,
        framework=form.framework,
        session_id=session_id,
        parent_id=turned.source.checkpoint_id,
        step_index=turned.source.step_index + 1,
        step_name=f"continued from {turned.source.framework.value}",
    )
    info, payload = turned.placed(info)
    try:
        yield from save.write(engine, info, payload, follows="")
    except NotTheHeadError:
        raise _not_new(agent, info.session_id) from None
    return Continued(
        info.checkpoint_id,
        info.session_id,
        info.agent_id,
        info.framework,
        turned.lost,
        turned.unknown,
    )


def _not_new(agent_id: str, session_id: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"session {session_id!r} of agent {agent_id!r} has checkpoints already: go on in a new one"
    )


def handoff(
    engine: Engine,
    checkpoint_id: str,
    target_agent_id: str,
    contract: Contract | None,
    ttl_seconds: float | None,
    publish: bool,
    framework: Framework | str,
    tool_names: Mapping[str, str] | None,
) -> Plan[str]:
    """Offer a checkpoint to another agent, who goes on in another framework.

    The offer has a session of its own, so that the one it comes from stays what it is.
    """
    turned = yield from turn(engine, checkpoint_id, form_of(framework), tool_names, None)
    return (
        yield from handoffs.handoff(
            engine,
            turned.source.checkpoint_id,
            target_agent_id,
            contract,
            ttl_seconds,
            publish,
            turned.placed,
        )
    )


@dataclass(frozen=True)
class Turned:
    """What a checkpoint holds, as another framework has it."""

    source: CheckpointInfo
    form: Form
    state: Any
    parts: dict[str, Any]
    """All else that is carried on: context, tasks, effects and workspace."""
    lost: list[str]
    unknown: list[Effect]

    def placed(self, info: CheckpointInfo) -> tuple[CheckpointInfo, dict[str, Any]]:
        """Return a record and its payload, completed as the framework's adapter finds them."""
        state, tags = self.form.place(self.state, info.session_id, info.checkpoint_id)
        payload = make_payload(state, **self.parts)
        return info.with_(framework=Framework(self.form.framework), metadata=tags), payload


def turn(
    engine: Engine,
    checkpoint_id: str,
    form: Form,
    tool_names: Mapping[str, str] | None,
    rest: Rest | None,
) -> Plan[Turned]:
    """Return what a checkpoint holds as a framework has it, its calls settled."""
    if rest == "keep" and not form.runs_pending:
        raise InvalidArgumentError(
            f'rest="keep" is for frameworks that run calls without an answer when they go on; '
            f'{form.framework} does not: use "drop" or "answer"'
        )
    found = yield from held(engine, checkpoint_id)
    source, said = found.info, found.conversation
    if said is None:
        raise AdapterError(
            f"checkpoint {source.checkpoint_id!r} of {source.framework.value} holds no conversation"
            " that another framework could go on with"
        )
    calls, files = yield from _calls_at(engine, found)
    unknown = [call for call in calls if call.is_unknown]
    by_id = _by_id(said, calls)
    ended = {i: _answer(call, found.form) for i, call in by_id.items() if call.status in _ENDED}
    settled = said.settle(
        {**_not_allowed(said), **(yield from _answers_of_tasks(engine, found)), **ended},
        rest or ("keep" if form.runs_pending else "drop"),
        irreversible={i for i, call in by_id.items() if call.is_unknown},
    )
    whole, originals = yield from _as_it_was(engine, found, settled, form.framework)
    renamed = whole if tool_names is None else whole.with_tool_names(tool_names)
    out = written(form, renamed, originals)
    lost = [*settled.lost, *(each for each in out.lost if each not in settled.lost)]
    kept = yield from restore(engine, source.checkpoint_id, True, "raw")
    told = {
        "framework": source.framework.value,
        "checkpoint_id": source.checkpoint_id,
        "lost": lost,
        "unknown": [call.id for call in unknown],
    }
    context = kept.agent_context if isinstance(kept.agent_context, dict) else {}
    parts = {
        "agent_context": {**context, CONTINUED: told},
        "tasks": kept.tasks,
        "effects": kept.effects,
        "workspace": kept.workspace if files is None else files,
    }
    return Turned(source, form, form.state(out.messages, renamed), parts, lost, unknown)


_ENDED = ("done", "failed", "denied")
_WAITING = "[not made: it waited for somebody's approval when the conversation moved here]"


def _not_allowed(said: Conversation) -> dict[str, Any]:
    """Return answers to calls that wait for approval: the next framework must not just run them."""
    asked = (interrupt.get("tool_call_id") for interrupt in said.interrupts)
    answer = tool_call_response(None, _WAITING, is_error=True)
    return {call_id: answer for call_id in asked if isinstance(call_id, str)}


def _calls_at(engine: Engine, found: Held) -> Plan[tuple[list[Effect], Any]]:
    """Return all calls up to a checkpoint and right after it, and the files as those left them."""
    info = found.info
    head = yield from heads.find(engine, (info.agent_id, info.session_id), "raw")
    if head is not None and head.info.checkpoint_id == info.checkpoint_id:
        noted, missed = head.noted, head.missed
    else:
        read = yield from notes.read(engine, [info.checkpoint_id], on_unknown="raw")
        noted, missed = [(note.key, value) for note, value in read], []
    before = yield from calls_in(engine, found.checkpoint.effects)
    after, _ = journals.read(noted, before)
    every = {call.id: call for call in (*before, *missed, *after)}
    ended = [call.workspace for call in after if call.workspace is not None]
    return list(every.values()), ended[-1] if ended else None


def _answers_of_tasks(engine: Engine, found: Held) -> Plan[dict[str, Any]]:
    """Return what tools of a LangGraph thread gave whose step was cut off: it is noted apart."""
    if found.info.framework is not Framework.LANGGRAPH:
        return {}
    read = yield from notes.read(engine, [found.info.checkpoint_id], trusts=lambda name: False)
    lost = Lost()
    answers = {}
    for value in written_by_tasks((value for _, value in read), "messages"):
        messages = plain(value if isinstance(value, (list, tuple)) else [value], lost)
        for message in found.form.read(messages, lost):
            for part in message["parts"]:
                if part["type"] == "tool_call_response" and part.get("id"):
                    answers[part["id"]] = part
    return answers


def _by_id(said: Conversation, calls: list[Effect]) -> dict[str, Effect]:
    """Return what was recorded of calls, by the ids that they have in the conversation.

    A call is recorded under the id that the model gave it; under that with a number behind it
    where a model gives the same id again, of which the last is meant.
    """
    found = {call.key: call for call in calls if call.key}
    for waiting in said.pending:
        again = _AGAIN.sub("", waiting.id)
        for call in calls if waiting.id not in found else ():
            base, sign, _ = _NUMBERED.sub(r"\1 \2", call.key or "").partition(" ")
            if sign and call.tool == waiting.name and base == again:
                found[waiting.id] = call
    return found


_AGAIN = re.compile(r"_\d+$")
_NUMBERED = re.compile(r"^([\w-]+)([@#:/]).*$", re.DOTALL)


def _answer(call: Effect, form: Form) -> Any:
    if call.status == "done":
        return form.output(call.output)
    said = f"denied: {call.reason}" if call.status == "denied" else _error(call.error)
    return tool_call_response(None, said, is_error=True)


def _error(error: object) -> str:
    """Return what an error says, also where its class is not there."""
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}"
    return "it failed" if error is None else shown(error)


def _as_it_was(
    engine: Engine, found: Held, settled: Conversation, framework: str
) -> Plan[tuple[Conversation, list[Any]]]:
    """Return a conversation with its originals, and the native messages it had in a framework.

    Where a session came from another framework, and that from another, each step back may have
    held more of a message than the next.
    """
    if found.native is not None and found.info.framework.value == framework:
        return settled, list(found.native.messages)
    child = found.info
    for parent in (yield from ancestors(child.checkpoint_id)):
        if parent.framework is not child.framework:
            first = yield from held(engine, child.checkpoint_id)
            before = yield from held(engine, parent.checkpoint_id)
            seen, own = first.conversation, before.conversation
            if seen is None or own is None or before.native is None:
                break
            settled = with_originals(settled, seen, own, _lost_before(first))
            if parent.framework.value == framework:
                return settled, list(before.native.messages)
        child = parent
    return settled, []


def _lost_before(first: Held) -> list[str]:
    """Return what was lost on the way to the first checkpoint of a session."""
    context = first.checkpoint.agent_context
    told = context.get(CONTINUED) if isinstance(context, dict) else None
    lost = told.get("lost") if isinstance(told, dict) else None
    return [each for each in lost if isinstance(each, str)] if isinstance(lost, list) else []
