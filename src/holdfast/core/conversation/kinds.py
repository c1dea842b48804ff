"""Each kind of part, checked against its own fields.

OpenTelemetry's schema alone proves nothing: whatever has a type is a generic part to it.
"""

from __future__ import annotations

import re
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Part

MODALITIES = ("image", "audio", "video", "document")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MEDIA = {"blob": "content", "uri": "uri", "file": "file_id"}
_CALLS = ("tool_call", "tool_call_response")
_NOT_INSIDE = ("text", *_CALLS)
_REASONING = ("signature", "encrypted", "redacted", "id", "provider")


def problem(part: Any) -> str | None:
    """Return what is wrong with a part; None if it is what its type says."""
    if not isinstance(part, dict):
        return f"is {type(part).__name__}, where a part is a dict"
    kind = part.get("type")
    if not isinstance(kind, str) or not kind:
        return "has no type"
    if kind in ("text", "reasoning"):
        return _text_problem(part)
    if kind in _MEDIA:
        return _media_problem(part, _MEDIA[kind])
    if kind == "tool_call":
        if not _is_name(part.get("name")):
            return "is a call without a name"
        if not isinstance(part.get("arguments"), (dict, str)):
            return "is a call whose arguments are neither an object nor text"
        return _id_problem(part)
    if kind == "tool_call_response":
        return _response_problem(part)
    return None


def _text_problem(part: Part) -> str | None:
    content = part.get("content")
    if not isinstance(content, str):
        return f"is {part['type']} without content"
    return "is an empty text" if part["type"] == "text" and not content else None


def _media_problem(part: Part, field: str) -> str | None:
    content = part.get(field)
    if not isinstance(content, str) or not content:
        return f"is a {part['type']} without {field}"
    if part.get("modality") not in MODALITIES:
        return f"is a {part['type']} of no known modality"
    if not isinstance(part.get("mime_type", ""), str):
        return f"is a {part['type']} whose mime_type is no text"
    if field == "content" and (content.startswith("data:") or not _is_base64(content)):
        return "is a blob that is not standard base64"
    if field == "uri" and content[:5].lower() == "data:":
        return "is a data: URL, where inline media are a blob"
    return None


def _response_problem(part: Part) -> str | None:
    if "response" not in part:
        return "is an answer without a response"
    inner = part.get("parts", [])
    for each in inner if isinstance(inner, list) else [None]:
        if not isinstance(each, dict) or each.get("type") in _NOT_INSIDE:
            return "is an answer with something else than media among its parts"
        found = problem(each)
        if found is not None:
            return f"is an answer one of whose parts {found}"
    return _id_problem(part)


def _id_problem(part: Part) -> str | None:
    call_id = part.get("id")
    if isinstance(call_id, str) and CALL_ID.fullmatch(call_id):
        return None
    return "has no id" if not call_id else "has an id that not every provider takes"


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_base64(content: str) -> bool:
    return not ("-" in content or "_" in content) and parts.decoded(content) is not None


def mended(part: Any, lost: Lost, path: str) -> Part | None:
    """Return a part as its kind has it; None if nothing is in it, or if it is lost.

    Ids are left alone: pairing calls and answers mends those.
    """
    if not isinstance(part, dict) or not isinstance(part.get("type"), str) or not part["type"]:
        lost.add(path, "is no part of a message")
        return None
    kind = part["type"]
    if kind == "text":
        content = part.get("content")
        if content == "" or content is None:
            return None
        made = parts.text(content) if isinstance(content, str) else None
    elif kind == "reasoning":
        made = _mended_reasoning(part)
    elif kind in _MEDIA:
        made = _mended_media(part, _MEDIA[kind], lost, path)
    elif kind == "tool_call":
        name, own = part.get("name"), part.get("id")
        own = own if isinstance(own, str) else None
        is_named = isinstance(name, str) and name
        made = parts.tool_call(own, str(name), part.get("arguments")) if is_named else None
    elif kind == "tool_call_response":
        made = _mended_response(part, lost, path)
    else:
        return part
    if made is None:
        lost.add(path, f"{problem(part) or 'is damaged'}")
        return None
    _tell_of_fields(part, made, lost, path)
    return made


def _mended_reasoning(part: Part) -> Part | None:
    content = part.get("content", "")
    extra = {name: part.get(name) for name in _REASONING}
    if not isinstance(content, str) or (not content and not any(extra.values())):
        return None
    return parts.reasoning(content, **extra)


def _mended_media(part: Part, field: str, lost: Lost, path: str) -> Part | None:
    content, mime_type = part.get(field), part.get("mime_type")
    if not isinstance(content, str) or not content:
        return None
    mime_type = mime_type if isinstance(mime_type, str) else None
    modality = part.get("modality")
    modality = modality if modality in MODALITIES else None
    if field == "file_id":
        return parts.file(content, mime_type, modality)
    inline = parts.from_data_url(content)
    if inline is not None:
        made = inline if modality is None else {**inline, "modality": modality}
    elif field == "uri":
        return parts.uri(content, mime_type, modality)
    else:
        made = parts.blob(content, mime_type, modality)
    return made if made["content"] and parts.decoded(made["content"]) is not None else None


def _mended_response(part: Part, lost: Lost, path: str) -> Part:
    given = part.get("parts")
    inner = given if isinstance(given, list) else []
    kept = [mended(each, lost, f"{path}.parts[{i}]") for i, each in enumerate(inner)]
    media = [each for each in kept if each and each["type"] not in _NOT_INSIDE]
    if any(each and each["type"] in _CALLS for each in kept):
        lost.add(path, "has calls or answers inside an answer")
    response = part.get("response")
    texts = [each["content"] for each in kept if each and each["type"] == "text"]
    if texts and (response is None or isinstance(response, str)):
        response = "\n".join(([response] if response else []) + texts)
    elif texts:
        lost.add(path, "has text beside a response that is no text")
    name = part.get("name")
    return parts.tool_call_response(
        part.get("id") if isinstance(part.get("id"), str) else None,
        response,
        name=name if _is_name(name) else None,
        is_error=part.get("is_error") is True,
        parts=media,
    )


_NO_LOSS = {"id", "modality", "mime_type", "uri", "parts", "is_error", "arguments"}


def _tell_of_fields(part: Part, made: Part, lost: Lost, path: str) -> None:
    """Name the fields that no part of the kind has."""
    for name in part:
        if name not in made and name not in _NO_LOSS and part[name] is not None:
            lost.add(f"{path}.{name}"[:200], "a field that this kind of part does not have")
