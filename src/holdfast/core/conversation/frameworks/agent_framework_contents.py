"""Contents of Agent Framework's messages, each a part, and parts as contents.

What the framework has no field for is kept in ``additional_properties["holdfast"]``, which it
keeps and does not send.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Part

OURS = "holdfast"
"""The name under which the framework's own additional properties hold what is ours."""
_FOREIGN = "agent_framework_"


def is_call(content: Mapping[str, Any]) -> bool:
    """Return whether a content is a call that the framework makes, not the provider."""
    is_hosted = content.get("hosted") or content.get("informational_only")
    return content.get("type") == "function_call" and not is_hosted


def stash(native: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is ours beside a message or a content."""
    properties = native.get("additional_properties")
    ours = properties.get(OURS) if isinstance(properties, Mapping) else None
    return ours if isinstance(ours, Mapping) else {}


def part_of(content: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    """Return the part that a content is, with what was kept beside it."""
    part = _part(content, lost, path)
    if part is None:
        return None
    kept = stash(content)
    if kept.get("json") and isinstance(part.get("response"), str):
        part["response"] = _parsed(part["response"])
    fields, without = kept.get("fields"), kept.get("without")
    part.update(fields if isinstance(fields, Mapping) else {})
    for name in without if isinstance(without, list) else []:
        part.pop(str(name), None)
    return part


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # somebody else wrote it
        return text


def _part(content: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    kind = str(content.get("type"))
    if kind == "text":
        return parts.text(content.get("text") or "")
    if kind == "text_reasoning":
        return parts.reasoning(
            content.get("text") or "",
            encrypted=content.get("protected_data"),
            id=content.get("id"),
        )
    if kind in ("data", "uri") and isinstance(content.get("uri"), str):
        return parts.uri(content["uri"], content.get("media_type"))
    if kind == "hosted_file" and isinstance(content.get("file_id"), str):
        return parts.file(content["file_id"], content.get("media_type"))
    if is_call(content) and isinstance(content.get("name"), str):
        return parts.tool_call(content.get("call_id"), content["name"], content.get("arguments"))
    if kind == "function_result":
        return result_of(content, lost, path)
    own = {name: content[name] for name in content if name not in ("type", "additional_properties")}
    return {"type": f"{_FOREIGN}{kind}", **own}


def result_of(content: Mapping[str, Any], lost: Lost, path: str) -> Part:
    """Return the answer that a function's result is."""
    items = content.get("items")
    media: list[Part] = []
    texts: list[str] = []
    for i, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, Mapping) and item.get("type") == "text":
            texts.append(str(item.get("text") or ""))
        elif isinstance(item, Mapping):
            part = part_of(item, lost, f"{path}.items[{i}]")
            media += [part] if part is not None else []
        else:
            lost.add(f"{path}.items[{i}]", "is no content")
    response = content.get("result")
    return parts.tool_call_response(
        content.get("call_id"),
        "\n".join(filter(None, texts)) if response is None else response,
        name=content.get("name"),
        is_error=content.get("exception") is not None,
        parts=media,
    )


def content_of(part: Part) -> dict[str, Any] | None:
    """Return the content that a part is; None for what is another provider's alone."""
    make = _MAKERS.get(part["type"])
    if make is not None:
        return _with_rest(make(part), part)
    if not part["type"].startswith(_FOREIGN):
        return None
    own = {name: value for name, value in part.items() if name != "type"}
    return {"type": part["type"].removeprefix(_FOREIGN), **own, "additional_properties": {}}


def _with_rest(content: dict[str, Any], part: Part) -> dict[str, Any]:
    """Keep beside a content what it has no field for."""
    ours: dict[str, Any] = {}
    if part["type"] == "tool_call_response" and not isinstance(part["response"], str):
        ours["json"] = True
    content["additional_properties"] = {OURS: ours} if ours else {}
    found = part_of(content, Lost(), "$") or {}
    fields = {name: value for name, value in part.items() if found.get(name, ...) != value}
    without = [name for name in found if name not in part]
    if fields:
        ours["fields"] = fields
    if without:
        ours["without"] = without
    content["additional_properties"] = {OURS: ours} if ours else {}
    return content


def _text(part: Part) -> dict[str, Any]:
    return {"type": "text", "text": part["content"]}


def _reasoning(part: Part) -> dict[str, Any]:
    return {"type": "text_reasoning", "text": part["content"]}


def _blob(part: Part) -> dict[str, Any]:
    mime_type = part.get("mime_type") or parts.OCTETS
    return {"type": "data", "uri": parts.data_url(part), "media_type": mime_type}


def _uri(part: Part) -> dict[str, Any]:
    kind = {"media_type": part["mime_type"]} if part.get("mime_type") else {}
    return {"type": "uri", "uri": part["uri"], **kind}


def _file(part: Part) -> dict[str, Any]:
    kind = {"media_type": part["mime_type"]} if part.get("mime_type") else {}
    return {"type": "hosted_file", "file_id": part["file_id"], **kind}


def _call(part: Part) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": part["id"],
        "name": part["name"],
        "arguments": part["arguments"],
        "hosted": False,
    }


def _answer(part: Part) -> dict[str, Any]:
    said = parts.text_of_response(part["response"])
    media = [content_of(each) for each in part.get("parts", [])]
    items = [content_of(parts.text(said)), *filter(None, media)]
    name = {"name": part["name"]} if part.get("name") else {}
    failed = {"exception": "failed"} if part.get("is_error") else {}
    return {
        "type": "function_result",
        "call_id": part["id"],
        **name,
        "result": said,
        "items": items,
        **failed,
    }


_MAKERS: dict[str, Callable[[Part], dict[str, Any]]] = {
    "text": _text,
    "reasoning": _reasoning,
    "blob": _blob,
    "uri": _uri,
    "file": _file,
    "tool_call": _call,
    "tool_call_response": _answer,
}
