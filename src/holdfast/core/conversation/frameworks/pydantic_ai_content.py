"""What is inside the parts of Pydantic AI's messages: media, results of tools, thoughts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Part

_URLS = {"image-url": "image", "audio-url": "audio", "video-url": "video"}
_URLS |= {"document-url": "document"}
_MEDIA = ("binary", "uploaded-file", *_URLS)
_KINDS = {modality: kind for kind, modality in _URLS.items()}
_DETAILS = "holdfast"
_REDACTED = "redacted_thinking"
_PROVIDER = "pydantic_ai"


def items_of(content: Any, lost: Lost, path: str) -> list[Part]:
    """Return the parts of what a user said: a text, or a list of texts and media."""
    each = content if isinstance(content, (list, tuple)) else [content]
    found = [item_of(item, lost, f"{path}[{i}]") for i, item in enumerate(each)]
    return [part for part in found if part is not None]


def item_of(item: Any, lost: Lost, path: str) -> Part | None:
    """Return the part that an item of a content is; None, and noted, if it is none."""
    if isinstance(item, str):
        return parts.text(item) if item else None
    kind = item.get("kind") if isinstance(item, Mapping) else None
    if kind in ("text-content", "structured-content"):
        if item.get("value") is not None or item.get("metadata") is not None:
            lost.add(path, "the data behind a text")
        content = item.get("content")
        return parts.text(content) if isinstance(content, str) else None
    if kind in _MEDIA:
        return _media(item, lost, path)
    if kind == "cache-point":
        lost.add(path, "a cache point, which is its provider's")
        return None
    if isinstance(item, Mapping) and isinstance(kind, str):
        return {**item, "type": f"{_PROVIDER}_{kind}"}
    lost.add(path, "is nothing that a user can say")
    return None


def _media(item: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    mime_type = item.get("media_type")
    mime_type = mime_type if isinstance(mime_type, str) and mime_type else None
    if item.get("vendor_metadata"):
        lost.add(f"{path}.vendor_metadata", "what a provider is told of media")
    kind = item["kind"]
    field = {"binary": "data", "uploaded-file": "file_id"}.get(kind, "url")
    content = item.get(field)
    if not isinstance(content, str) or not content:
        lost.add(path, f"is {kind} without {field}")
        return None
    if kind == "binary":
        return parts.blob(content, mime_type)
    if kind == "uploaded-file":
        return parts.file(content, mime_type)
    return parts.uri(content, mime_type, _URLS[kind])


def content_of(part: Part, lost: Lost, path: str) -> Any:
    """Return a part as an item of a content; None, and noted, if it cannot be one."""
    kind = part["type"]
    mime_type = part.get("mime_type")
    if kind == "text":
        return part["content"]
    if kind == "blob":
        data = parts.url_safe_base64(part["content"])
        item = {"kind": "binary", "data": data, "media_type": mime_type or parts.OCTETS}
        if _media(item, Lost(), path) != part:
            lost.add(path, f"that media of type {mime_type} are called {part['modality']}")
        return item
    if kind == "uri":
        extra = {"media_type": mime_type} if mime_type else {}
        return {"kind": _KINDS[part["modality"]], "url": part["uri"], **extra}
    if kind.startswith(f"{_PROVIDER}_") and part.get("kind") == kind[len(_PROVIDER) + 1 :]:
        return {name: value for name, value in part.items() if name != "type"}
    lost.add(path, f"a part {kind[:60]}, which a user cannot say here")
    return None


def result_of(content: Any, lost: Lost, path: str) -> tuple[Any, list[Part]]:
    """Return what a tool gave: its response, and the media among it."""
    if _is_media(content):
        content = [content]
    if not isinstance(content, (list, tuple)) or not any(map(_is_media, content)):
        return content, []
    rest = [item for item in content if not _is_media(item)]
    media = [
        part
        for i, item in enumerate(content)
        if _is_media(item) and (part := _media(item, lost, f"{path}[{i}]")) is not None
    ]
    response = rest[0] if len(rest) == 1 else rest
    return (response if rest else ""), media


def _is_media(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("kind") in _MEDIA


def result_content(part: Part, lost: Lost, path: str) -> Any:
    """Return the content of a tool's answer: its response, with the media behind it."""
    given = part.get("parts", [])
    items = [content_of(each, lost, f"{path}.parts[{k}]") for k, each in enumerate(given)]
    media = [item for item in items if item is not None]
    response = part["response"]
    if not media:
        return response
    return media if response == "" else [response, *media]


def read_reasoning(part: Mapping[str, Any]) -> Part:
    """Return what a model thought; a provider's own way of hiding it is told by its name."""
    content, provider = part.get("content"), part.get("provider_name")
    details = part.get("provider_details")
    carried = details.get(_DETAILS) if isinstance(details, Mapping) else None
    if isinstance(carried, Mapping):
        return {**carried, "type": "reasoning"}
    said = content if isinstance(content, str) else ""
    signature, own_id = part.get("signature"), part.get("id")
    if own_id == _REDACTED:
        return parts.reasoning(said, encrypted=signature, redacted=True, provider=provider)
    name = "encrypted" if isinstance(provider, str) and "openai" in provider else "signature"
    return parts.reasoning(said, id=own_id, provider=provider, **{name: signature})


def written_reasoning(part: Part) -> dict[str, Any]:
    """Return what a model thought, as its provider's model takes it back."""
    is_redacted = part.get("redacted") is True
    made: dict[str, Any] = {
        "part_kind": "thinking",
        "content": part["content"],
        "id": _REDACTED if is_redacted else part.get("id"),
        "signature": part.get("encrypted") or part.get("signature"),
        "provider_name": part.get("provider"),
    }
    if read_reasoning(made) != part:
        made["provider_details"] = {_DETAILS: part}
    return made
