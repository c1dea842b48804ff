"""A model's answer as plain data, and back as the event with which a stream of it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents import ModelResponse
from openai.types.responses import Response, ResponseCompletedEvent

Answer = dict[str, Any]
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS = ("input_tokens_details", "output_tokens_details")


def of_response(response: Response, streamed: Sequence[Any]) -> Answer:
    """Return what a streamed answer came to; some providers give its items on the way only."""
    return {
        "output": [_plain(item) for item in response.output or streamed],
        "usage": _usage(response.usage),
        "response_id": response.id,
        "request_id": getattr(response, "_request_id", None),
    }


def of_model_response(response: ModelResponse) -> Answer:
    """Return an answer that came whole."""
    return {
        "output": [_plain(item) for item in response.output],
        "usage": _usage(response.usage),
        "response_id": response.response_id,
        "request_id": response.request_id,
    }


def completed(answer: Mapping[str, Any]) -> ResponseCompletedEvent:
    """Return the event that gives a kept answer to the SDK."""
    response = Response.construct(
        id=answer.get("response_id"),
        created_at=0,
        model="",
        object="response",
        output=answer["output"],
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
        status="completed",
        usage=answer.get("usage"),
    )
    if answer.get("request_id") is not None:
        response._request_id = answer["request_id"]
    return ResponseCompletedEvent.construct(
        type="response.completed", sequence_number=0, response=response
    )


def _usage(usage: Any) -> dict[str, Any] | None:
    if usage is None:
        return None
    counts = {name: getattr(usage, name, None) or 0 for name in _COUNTS}
    details = {name: getattr(usage, name, None) for name in _DETAILS}
    return counts | {name: _plain(each) for name, each in details.items() if each is not None}


def _plain(item: Any) -> Any:
    return item if isinstance(item, dict) else item.model_dump(mode="json", exclude_unset=True)
