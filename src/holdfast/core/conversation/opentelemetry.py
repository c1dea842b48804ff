"""Export: OpenTelemetry's GenAI conventions, as the attributes of one request to a model."""

from __future__ import annotations

from typing import Any

from holdfast.core.conversation.checking import checked
from holdfast.core.conversation.conversation import SCHEMA_URL, Conversation
from holdfast.core.conversation.parts import Message


def telemetry(conversation: Conversation) -> dict[str, Any]:
    """Return what the model was told and what it said last, as spans and events carry it."""
    checked(conversation.system_instructions, conversation.messages)
    messages = conversation.messages
    is_answered = bool(messages) and messages[-1]["role"] == "assistant"
    output = [_output(messages[-1])] if is_answered else []
    return {
        "schema_url": SCHEMA_URL,
        "gen_ai.system_instructions": list(conversation.system_instructions),
        "gen_ai.input.messages": messages[:-1] if is_answered else list(messages),
        "gen_ai.output.messages": output,
    }


def _output(message: Message) -> Message:
    """Return a message of a model; until 1.39 the schema asked why it ended."""
    calls = any(part["type"] == "tool_call" for part in message["parts"])
    return {**message, "finish_reason": "tool_call" if calls else "stop"}
