"""What a tool gave, as the journal keeps it: an answer that other frameworks can read, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentscope.message import TextBlock, ToolResultState
from agentscope.state import AgentState
from agentscope.tool import ToolChunk, ToolResponse

from holdfast.adapters.agentscope.agent_states import put_into
from holdfast.core.conversation.frameworks.agentscope import response_part
from holdfast.errors import AdapterError, ApprovalDeniedError

_OWN = "agentscope"
_CHANGED = (
    "summary",
    "reply_context",
    "permission_context",
    "tool_context",
    "tasks_context",
    "middle_context",
)
"""The parts of an agent's state that tools change: all but what was said."""


def parts_of(state: AgentState) -> dict[str, Any]:
    """Return the parts of an agent's state that a tool may change."""
    kept: dict[str, Any] = state.model_dump(mode="json", include=set(_CHANGED))
    return kept


def recorded(response: ToolResponse, changed: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return what is journaled: what the tool gave, and what it changed in the agent's state."""
    own = response.model_dump(mode="json")
    output = response_part({**own, "output": own["content"]})
    texts = [block for block in response.content if isinstance(block, TextBlock)]
    is_plain = len(texts) == len(response.content) == 1 and not response.metadata
    is_usual = response.state in (ToolResultState.SUCCESS, ToolResultState.ERROR)
    if is_plain and is_usual and not changed:
        return output
    return {**output, _OWN: {"response": own, "changed": dict(changed), "number": number}}


def response_of(output: Any, call_id: str) -> ToolResponse:
    """Return what a tool gave when it was called before."""
    if not isinstance(output, Mapping) or output.get("type") != "tool_call_response":
        # Decided by hand (mark_done), of a call whose end was unknown.
        return ToolResponse(id=call_id, content=[TextBlock(text=_text(output))])
    own = output.get(_OWN)
    if isinstance(own, Mapping):
        return ToolResponse.model_validate({**own["response"], "id": call_id})
    state = ToolResultState.ERROR if output.get("is_error") else ToolResultState.SUCCESS
    content = [TextBlock(text=_text(output.get("response")))]
    return ToolResponse(id=call_id, content=content, state=state)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise AdapterError(
        f"the output of a tool is text for AgentScope, not {type(value).__name__}: "
        "mark the call as done with text"
    )


def change(state: AgentState, output: Any, applied: int) -> int:
    """Make the changes to an agent's state that a recorded call made; those made last stay.

    Returns the number of the last call whose changes were made.
    """
    own = output.get(_OWN) if isinstance(output, Mapping) else None
    if not isinstance(own, Mapping) or not own["changed"] or own["number"] < applied:
        return applied
    whole = type(state).model_validate({**parts_of(state), **own["changed"]})
    put_into(state, whole, own["changed"])
    return int(own["number"])


def denied(error: ApprovalDeniedError, call_id: str) -> ToolResponse:
    """Return what the model is told of a call that was not allowed."""
    return ToolResponse(
        id=call_id, content=[TextBlock(text=str(error))], state=ToolResultState.DENIED
    )


def failed(error: BaseException | None, call_id: str) -> ToolResponse:
    """Return what the model is told of a call that is recorded as failed."""
    said = str(error or "") or "the call failed"
    return ToolResponse(id=call_id, content=[TextBlock(text=said)], state=ToolResultState.ERROR)


def as_chunk(response: ToolResponse) -> ToolChunk:
    """Return a whole answer as the chunk that users of the stream of events see."""
    return ToolChunk(
        content=response.content, state=response.state, metadata=response.metadata, id=response.id
    )
