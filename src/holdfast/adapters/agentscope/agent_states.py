"""The state of an agent as it is kept, and how one that was kept becomes an agent's again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from agentscope.message import Msg, ToolCallBlock, ToolCallState, ToolResultBlock, ToolResultState
from agentscope.state import AgentState
from pydantic import ValidationError

from holdfast.core.conversation.frameworks.agentscope import FOREIGN
from holdfast.errors import AdapterError

INTERRUPTED = "[Tool call interrupted: whether it took place is not known.]"


def kept_form(state: AgentState) -> dict[str, Any]:
    """Return the state of an agent as plain data."""
    kept: dict[str, Any] = state.model_dump(mode="json")
    return kept


def state_of(kept: Any, session_id: str) -> AgentState:
    """Return the state that was kept; no call in it stays without an answer that cannot get one."""
    given = kept.get("agent") if isinstance(kept, Mapping) else None
    if not isinstance(given, Mapping):
        raise AdapterError(
            f"session {session_id!r}: its state is not that of an AgentScope agent (no $.agent)"
        )
    try:
        state: AgentState = AgentState.model_validate(given)
    except ValidationError as error:
        raise AdapterError(
            f"session {session_id!r}: AgentScope cannot read its state: {error}"
        ) from error
    is_open = reply_of(kept).get("stage") != "ended"
    for message in state.context[:-1] if is_open else state.context:
        answer_calls(message, {})
    return state


def reply_of(kept: Any) -> dict[str, Any]:
    """Return what is known of the last reply."""
    reply = kept.get("reply") if isinstance(kept, Mapping) else None
    return dict(reply) if isinstance(reply, Mapping) else {"stage": "ended"}


def put_into(
    state: AgentState, given: AgentState, names: Collection[str] = tuple(AgentState.model_fields)
) -> None:
    """Make parts of a state what they are in another, in place.

    An agent holds on to its state, and what checks its permissions to those.
    """
    for name in names:
        if name != "permission_context":
            setattr(state, name, getattr(given, name))
            continue
        for rule in type(given.permission_context).model_fields:
            setattr(state.permission_context, rule, getattr(given.permission_context, rule))


def is_blank(state: AgentState) -> bool:
    """Return whether nothing was said yet."""
    return not state.context and not state.summary


def answer_calls(message: Msg, outputs: Mapping[str, ToolResultBlock]) -> None:
    """Answer the calls of a message that have no answer: as known, or as interrupted."""
    answered = {block.id for block in message.content if isinstance(block, ToolResultBlock)}
    for call in [block for block in message.content if isinstance(block, ToolCallBlock)]:
        if call.id not in answered:
            call.state = ToolCallState.FINISHED
            message.content.append(outputs.get(call.id) or _interrupted(call))


def _interrupted(call: ToolCallBlock) -> ToolResultBlock:
    return ToolResultBlock(
        id=call.id, name=call.name, output=INTERRUPTED, state=ToolResultState.INTERRUPTED
    )


def unanswered(state: AgentState) -> list[ToolCallBlock]:
    """Return the calls of the last message that have no answer."""
    if not state.context:
        return []
    content = state.context[-1].content
    answered = {block.id for block in content if isinstance(block, ToolResultBlock)}
    return [
        block for block in content if isinstance(block, ToolCallBlock) and block.id not in answered
    ]


def take_over(state: AgentState, name: str) -> None:
    """Make what another framework's agent said last this agent's own, so that it goes on there."""
    if state.context and state.context[-1].name == FOREIGN:
        state.context[-1].name = name


def digest_of(inputs: Any) -> str | None:
    """Return what tells one prompt from another; its ids and times are new at every start."""
    messages = [inputs] if isinstance(inputs, Msg) else inputs
    if not isinstance(messages, list) or not all(isinstance(each, Msg) for each in messages):
        return None
    said = [
        [each.role, each.name, [_said(block) for block in each.model_dump(mode="json")["content"]]]
        for each in messages
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def is_prompt(inputs: Any, state: AgentState) -> bool:
    """Return whether a prompt is the one that the last message of an agent replies to.

    Of a reply that was begun elsewhere only the messages tell; whose name they bear says nothing.
    """
    messages = [inputs] if isinstance(inputs, Msg) else inputs
    if digest_of(messages) is None:
        return False
    asked: list[Msg] = []
    for each in reversed(state.context):
        if each.role == "user":
            asked.insert(0, each)
        elif asked:
            break
    given = _blocks(messages)
    return bool(given) and _blocks(asked)[-len(given) :] == given


def _blocks(messages: list[Msg]) -> list[Any]:
    return [
        [each.role, _said(block)]
        for each in messages
        for block in each.model_dump(mode="json")["content"]
    ]


def _said(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    made_anew = ("id", "created_at", "finished_at")
    return {key: value for key, value in block.items() if key not in made_anew}
