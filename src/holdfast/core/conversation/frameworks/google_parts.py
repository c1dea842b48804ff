"""Parts of a content as Google's Gen AI types have them, in their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Part, as_object

_OWN = "google_"
_PROVIDER = "google"
_KINDS = (
    "text",
    "inline_data",
    "file_data",
    "function_call",
    "function_response",
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
)
_WHOLE = ("result", "error")
"""Names under which a response that is no object, or an error, is alone in one."""


def snake(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object by their names in Python, whichever way they are written."""
    return {_snake(name): each for name, each in value.items() if isinstance(name, str)}


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isascii() and c.isupper() else c for c in name)


def read_part(given: Any, lost: Lost, path: str) -> Part | None:
    """Return a part; None, and noted, if it is damaged."""
    fields = snake(given) if isinstance(given, Mapping) else {}
    fields = {name: each for name, each in fields.items() if each is not None}
    kind = next((name for name in _KINDS if name in fields), None)
    if kind is None:
        lost.add(path, "is no part of a content")
        return None
    value = fields.pop(kind)
    is_thought = fields.pop("thought", False) is True
    signature = fields.pop("thought_signature", None)
    for name in fields:
        lost.add(f"{path}.{name}"[:200], "a field that this kind of part does not have")
    if kind == "text" and is_thought:
        return _thought(value, signature)
    if signature is not None:
        lost.add(f"{path}.thought_signature", "what a model signed beside its words")
    found = _read_value(kind, value, lost, path)
    if found is None:
        lost.add(path, f"is {kind} without what such a part holds")
    return found


def _thought(said: Any, signature: Any) -> Part | None:
    own = parts.standard_base64(signature) if isinstance(signature, str) and signature else None
    provider = _PROVIDER if own is not None else None
    return parts.reasoning(said if isinstance(said, str) else "", signature=own, provider=provider)


def _read_value(kind: str, value: Any, lost: Lost, path: str) -> Part | None:
    if kind == "text":
        return parts.text(value) if isinstance(value, str) else None
    if not isinstance(value, Mapping):
        return None
    if kind in ("inline_data", "file_data"):
        return _media(snake(value), lost, path)
    if kind == "function_call":
        own = snake(value)
        name = own.get("name")
        return parts.tool_call(_id(own), name, own.get("args")) if isinstance(name, str) else None
    if kind == "function_response":
        return _answer(snake(value), lost, path)
    return {"type": f"{_OWN}{kind}", kind: dict(value)}


def _id(fields: Mapping[str, Any]) -> str | None:
    own = fields.get("id")
    return own if isinstance(own, str) and own else None


def _media(fields: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    mime_type = fields.get("mime_type")
    mime_type = mime_type if isinstance(mime_type, str) and mime_type else None
    if fields.get("display_name"):
        lost.add(f"{path}.display_name", "what media are called")
    data, address = fields.get("data"), fields.get("file_uri")
    if isinstance(data, str) and data:
        return parts.blob(data, mime_type)
    return parts.uri(address, mime_type) if isinstance(address, str) and address else None


def _answer(fields: Mapping[str, Any], lost: Lost, path: str) -> Part:
    said = fields.get("response")
    is_error = False
    if isinstance(said, Mapping) and len(said) == 1 and (name := next(iter(said))) in _WHOLE:
        said, is_error = said[name], name == "error"
    given = fields.get("parts")
    media = [
        _media(snake(inner), lost, f"{path}.parts[{j}]")
        for j, each in enumerate(given if isinstance(given, (list, tuple)) else ())
        if isinstance(each, Mapping)
        for inner in snake(each).values()
        if isinstance(inner, Mapping)
    ]
    name = fields.get("name")
    return parts.tool_call_response(
        _id(fields),
        said,
        name=name if isinstance(name, str) else None,
        is_error=is_error,
        parts=[part for part in media if part is not None],
    )


def write_part(part: Part, lost: Lost, path: str) -> dict[str, Any] | None:
    """Return a part in Google's JSON; None, and noted, if there is none for it."""
    kind = part["type"]
    if kind == "text":
        return {"text": part["content"]}
    if kind == "tool_call":
        given = as_object(part, lost, path)
        return {"function_call": {"id": part["id"], "name": part["name"], "args": given}}
    if kind == "tool_call_response":
        return {"function_response": _response(part, lost, path)}
    made: dict[str, Any] | None = None
    if kind == "reasoning":
        made = _written_thought(part)
    elif kind in ("blob", "uri"):
        made = _written_media(part)
    elif kind.startswith(_OWN):
        made = {name: part[name] for name in part if name == kind.removeprefix(_OWN)}
    if made and read_part(made, Lost(), path) == part:
        return made
    lost.add(path, f"{kind[:60]}, which google_adk has no part for")
    return None


def _written_thought(part: Part) -> dict[str, Any] | None:
    signature = part.get("signature")
    if signature is None:
        return {"text": part["content"], "thought": True}
    if parts.decoded(str(signature)) is None:
        return None
    own = parts.url_safe_base64(signature)
    return {"text": part["content"], "thought": True, "thought_signature": own}


def _written_media(part: Part) -> dict[str, Any]:
    own = {"mime_type": part["mime_type"]} if "mime_type" in part else {}
    if part["type"] == "uri":
        return {"file_data": {"file_uri": part["uri"], **own}}
    return {"inline_data": {"data": parts.url_safe_base64(part["content"]), **own}}


def _response(part: Part, lost: Lost, path: str) -> dict[str, Any]:
    said = part["response"]
    if part.get("is_error"):
        said = {"error": said}
    elif not isinstance(said, dict) or (len(said) == 1 and next(iter(said)) in _WHOLE):
        said = {"result": said}
    media = []
    for j, each in enumerate(part.get("parts", [])):
        inner = f"{path}.parts[{j}]"
        made = _written_media(each) if each["type"] in ("blob", "uri") else None
        if made is not None and read_part(made, Lost(), inner) == each:
            media.append(made)
        else:
            lost.add(inner, f"{each['type'][:60]} in the result of a tool")
    own = {"parts": media} if media else {}
    return {"id": part["id"], "name": part["name"], "response": said, **own}
