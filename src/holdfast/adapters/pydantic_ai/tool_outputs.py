"""What tools give, as it is kept: the JSON that the framework itself makes of it.

What comes back after a resume is what the model would have seen: an object of a class of yours
comes as a dict of its fields, media as the media they are.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    SkipToolExecution,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
)
from pydantic_ai.messages import ModelRequest, ToolReturn, ToolReturnPart, UserPromptPart
from pydantic_ai.usage import RunUsage

from holdfast.adapters.pydantic_ai.messages import dumped, loaded, read, written
from holdfast.errors import SerializationError

KIND = "pydantic_ai.kind"
"""Marks what is more than a value: a rich return, or one of the framework's own signals."""
_USAGE: TypeAdapter[Any] = TypeAdapter(RunUsage)

SIGNALS = (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    SkipToolExecution,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
)
"""What tools raise that is an answer and no failure of theirs."""


def kept_return(result: Any, usage: RunUsage | None) -> Any:
    """Return what a tool gave as plain data; ``usage`` is what agents used that it ran."""
    try:
        if isinstance(result, ToolReturn):
            parts = _parts(result.return_value, result.metadata, result.content)
            rich: dict[str, Any] = {KIND: "return", "parts": parts, "tools": result.tools}
        else:
            (part,) = _parts(result, None, None)
            if usage is None and not _looks_marked(part["content"]):
                return part["content"]
            rich = {KIND: "return", "parts": [part], "tools": None}
    except SerializationError:
        return result  # the run says that it cannot be kept, and does not call it failed
    return {**rich, "usage": None if usage is None else written(_USAGE, usage, "$.usage")}


def _looks_marked(content: Any) -> bool:
    return isinstance(content, dict) and KIND in content


def _parts(value: Any, metadata: Any, content: Any) -> list[Any]:
    parts: list[Any] = [ToolReturnPart("tool", value, "call", metadata=metadata)]
    if content:
        parts.append(UserPromptPart(content))
    return list(dumped([ModelRequest(parts=parts)])[0]["parts"])


def kept_signal(signal: Exception) -> dict[str, Any] | None:
    """Return what a tool told the framework as plain data; None if that cannot be kept."""
    if isinstance(signal, SkipToolExecution):
        return None
    if isinstance(signal, (ApprovalRequired, CallDeferred)):
        return {KIND: type(signal).__name__, "metadata": signal.metadata}
    if isinstance(signal, (ToolRetryError, ToolFailedError)):
        part = signal.tool_retry if isinstance(signal, ToolRetryError) else signal.tool_failed
        (request,) = dumped([ModelRequest(parts=[part])])
        return {KIND: type(signal).__name__, "part": request["parts"][0]}
    return {KIND: type(signal).__name__, "message": str(signal)}


def given_again(kept: Any) -> tuple[Any, RunUsage | None]:
    """Return what a tool gave before, and what it used; or raise what it told the framework."""
    if not _looks_marked(kept):
        return _revived([_part(kept)])[0].content, None
    if kept[KIND] != "return":
        raise _signal(kept)
    usage = None if kept["usage"] is None else read(_USAGE, kept["usage"], "$.usage")
    returned, *more = _revived(kept["parts"])
    if not more and returned.metadata is None and kept["tools"] is None:
        return returned.content, usage
    content = more[0].content if more else None
    rich = ToolReturn(
        returned.content, content=content, metadata=returned.metadata, tools=kept["tools"]
    )
    return rich, usage


def _part(content: Any) -> dict[str, Any]:
    return {
        "part_kind": "tool-return",
        "tool_name": "tool",
        "tool_call_id": "call",
        "content": content,
    }


def _revived(parts: list[Any]) -> list[Any]:
    return list(loaded([{"kind": "request", "parts": parts}])[0].parts)


def _signal(kept: dict[str, Any]) -> Exception:
    signal: Exception
    kind = kept[KIND]
    is_retry = kind in ("ToolRetryError", "ModelRetry")
    part = _revived([kept["part"]])[0] if "part" in kept else None
    if kind in ("ApprovalRequired", "CallDeferred"):
        signal = (ApprovalRequired if kind == "ApprovalRequired" else CallDeferred)(
            kept["metadata"]
        )
    elif part is not None and not isinstance(part.content, str):
        signal = ToolRetryError(part) if is_retry else ToolFailedError(part)
    else:  # as the tool raised it, so that it counts as an attempt
        said = kept["message"] if part is None else part.content
        signal = ModelRetry(said) if is_retry else ToolFailed(said)
    return signal
