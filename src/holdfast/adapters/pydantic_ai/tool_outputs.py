"""What tools give, as it is kept: the JSON that the framework itself makes of it.

What comes back after a resume is what the model would have seen: an object of a class of yours
comes as a dict of its fields, media as the media they are.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.exceptions import ModelRetry, ToolFailed, ToolFailedError, ToolRetryError
from pydantic_ai.messages import ModelRequest, ToolReturn, ToolReturnPart, UserPromptPart
from pydantic_ai.usage import RunUsage

from holdfast.adapters.pydantic_ai.messages import dumped, loaded, read, written
from holdfast.core.conversation.frameworks.pydantic_ai_content import result_of
from holdfast.core.conversation.lost import Lost
from holdfast.errors import SerializationError

MARK = "pydantic_ai"
"""Marks what is more than a value: a rich return, media, or a signal to the framework."""
_USAGE: TypeAdapter[Any] = TypeAdapter(RunUsage)

SIGNALS = (ModelRetry, ToolFailed, ToolFailedError, ToolRetryError)
"""What tools raise that is an answer to their call. One that asks to wait has not been made."""


def kept_return(result: Any, usage: RunUsage | None) -> Any:
    """Return what a tool gave as plain data; ``usage`` is what agents used that it ran."""
    try:
        if isinstance(result, ToolReturn):
            own = _parts(result.return_value, result.metadata, result.content)
            return _marked("return", own, tools=result.tools, usage=_used(usage))
        own = _parts(result, None, None)
    except SerializationError:
        return result  # the run says that it cannot be kept, and does not call it failed
    content = own[0]["content"]
    if usage is None and not _is_marked(content) and not _media_in(content):
        return content
    return _marked("return", own, tools=None, usage=_used(usage))


def _used(usage: RunUsage | None) -> Any:
    return None if usage is None else written(_USAGE, usage, "$.usage")


def _parts(value: Any, metadata: Any, content: Any) -> list[Any]:
    parts: list[Any] = [ToolReturnPart("tool", value, "call", metadata=metadata)]
    if content:
        parts.append(UserPromptPart(content))
    return list(dumped([ModelRequest(parts=parts)])[0]["parts"])


def _marked(kind: str, own: list[Any], **more: Any) -> dict[str, Any]:
    """Return what is more than a value: as other frameworks are told of it, and as it is."""
    response, media = result_of(own[0]["content"], Lost(), "$")
    answer: dict[str, Any] = {"type": "tool_call_response", "response": response}
    if media:
        answer["parts"] = media
    if kind != "return":
        answer["is_error"] = True
    return {**answer, MARK: {"kind": kind, "own": own, **more}}


def _is_marked(content: Any) -> bool:
    return isinstance(content, dict) and MARK in content


def _media_in(content: Any) -> bool:
    return bool(result_of(content, Lost(), "$")[1])


def kept_signal(signal: Exception) -> dict[str, Any]:
    """Return what a tool told the framework as plain data."""
    kind = type(signal).__name__
    if isinstance(signal, (ToolRetryError, ToolFailedError)):
        part = signal.tool_retry if isinstance(signal, ToolRetryError) else signal.tool_failed
        return _marked(kind, dumped([ModelRequest(parts=[part])])[0]["parts"])
    outcome = "retried" if isinstance(signal, ModelRetry) else "failed"
    return _marked(kind, [{**_parts(str(signal), None, None)[0], "outcome": outcome}])


def given_again(kept: Any) -> tuple[Any, RunUsage | None]:
    """Return what a tool gave before, and what it used; or raise what it told the framework."""
    if not _is_marked(kept):
        return _revived([_part(kept)])[0].content, None
    marked = kept[MARK]
    if marked["kind"] != "return":
        raise _signal(marked)
    usage = None if marked["usage"] is None else read(_USAGE, marked["usage"], "$.usage")
    returned, *more = _revived(marked["own"])
    if not more and returned.metadata is None and marked["tools"] is None:
        return returned.content, usage
    rich = ToolReturn(
        returned.content,
        content=more[0].content if more else None,
        metadata=returned.metadata,
        tools=marked["tools"],
    )
    return rich, usage


def answer_parts(call: Any, kept: Any) -> list[Any]:
    """Return the parts of a request that answer a call with what it gave before."""
    own = kept[MARK]["own"] if _is_marked(kept) else [_part(kept)]
    named = {"tool_name": call.tool_name, "tool_call_id": call.tool_call_id}
    return _revived([{**part, **(named if "tool_name" in part else {})} for part in own])


def _part(content: Any) -> dict[str, Any]:
    own = {"part_kind": "tool-return", "tool_name": "tool", "tool_call_id": "call"}
    return {**own, "content": content}


def _revived(parts: list[Any]) -> list[Any]:
    return list(loaded([{"kind": "request", "parts": parts}])[0].parts)


def _signal(marked: dict[str, Any]) -> Exception:
    signal: Exception
    is_retry = marked["kind"] in ("ToolRetryError", "ModelRetry")
    (part,) = _revived(marked["own"])
    if isinstance(part.content, str):  # as the tool raised it, so that it counts as an attempt
        signal = ModelRetry(part.content) if is_retry else ToolFailed(part.content)
    else:
        signal = ToolRetryError(part) if is_retry else ToolFailedError(part)
    return signal
