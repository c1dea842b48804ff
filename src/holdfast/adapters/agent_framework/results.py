"""What tools give, between the framework's contents and the plain data that the journal keeps."""

from __future__ import annotations

import json
from typing import Any

from agent_framework import ChatResponse, Content

_PLAIN = {"type", "text", "additional_properties"}
_FIELDS = (
    *("response_id", "conversation_id", "model", "created_at", "finish_reason"),
    *("usage_details", "additional_properties"),
)
"""Of an answer of a model, what is kept beside its messages."""


class RecordedToolError(Exception):
    """What a tool raised before a restart, told again to the framework."""


def kept_result(result: Any) -> Any:
    """Return what a tool gave as plain data: a text where it is one, else contents."""
    if not isinstance(result, list) or not all(isinstance(each, Content) for each in result):
        return result if isinstance(result, str) else {"value": result}
    contents = [each.to_dict() for each in result]
    if len(contents) == 1 and contents[0]["type"] == "text" and _is_plain(contents[0]):
        return contents[0]["text"]
    return {"contents": contents}


def _is_plain(content: dict[str, Any]) -> bool:
    return set(content) <= _PLAIN and not content.get("additional_properties")


def loaded_result(kept: Any) -> Any:
    """Return what a tool gave as the framework takes it from a middleware."""
    if isinstance(kept, dict) and "contents" in kept:
        return [Content.from_dict(each) for each in kept["contents"]]
    return kept["value"] if isinstance(kept, dict) else kept


def content_of(call_id: str, kept: Any) -> dict[str, Any]:
    """Return the result of a call as it stands in a message."""
    made = Content.from_function_result(call_id, result=loaded_result(kept))
    plain: dict[str, Any] = made.to_dict()
    return plain


def fields_of(response: Any) -> dict[str, Any]:
    """Return what an answer of a model holds beside its messages, as plain data.

    Of its additional properties those that are JSON; the framework itself keeps none of them.
    """
    found = {name: getattr(response, name) for name in _FIELDS}
    extra = found.pop("additional_properties") or {}
    found["additional_properties"] = {name: each for name, each in extra.items() if _is_json(each)}
    return {name: _plain(value) for name, value in found.items() if value}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _plain(value: Any) -> Any:
    """Return plain data: dicts of the framework's own classes become dicts."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return str(value) if isinstance(value, str) else value


def response_of(messages: list[Any], fields: dict[str, Any], options: Any) -> Any:
    """Return an answer of a model as it was given."""
    wanted = options.get("response_format") if options else None
    return ChatResponse(messages=messages, response_format=wanted, **fields)
