"""Content of messages as the chat interfaces have it: OpenAI's, Anthropic's and LangChain's blocks.

Many frameworks keep content in one of these, or let any of them through. So they are read here,
together: no two of them mean different things by the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Part

_NOTES = ("annotations", "citations")


def parts_of(content: Any, lost: Lost, path: str, provider: str) -> list[Part]:
    """Return the parts of a content: a text, or blocks of any of these kinds.

    A block that none of them has becomes a part of the type ``<provider>_<its type>``.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [parts.text(content)]
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, (list, tuple)):
        lost.add(path, f"is {type(content).__name__}, where the content of a message is")
        return []
    found = [part_of(each, lost, f"{path}[{i}]", provider) for i, each in enumerate(content)]
    return [part for part in found if part is not None]


def part_of(block: Any, lost: Lost, path: str, provider: str) -> Part | None:
    """Return the part that a block is; None, and noted, if it is damaged."""
    if isinstance(block, str):
        return parts.text(block)
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str) or not kind:
        lost.add(path, "is no block of a content")
        return None
    for note in _NOTES:
        if block.get(note):
            lost.add(f"{path}.{note}", "notes of a provider on a text")
    reader = _READERS.get(kind)
    if reader is None:
        return {**block, "type": f"{provider}_{kind}"}
    found = reader(block, lost, path, provider)
    if found is None:
        lost.add(path, f"is {kind} without what such a block holds")
    return found


Reader = Callable[[Mapping[str, Any], Lost, str, str], Part | None]


def _text(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    said = block.get("text", block.get("refusal"))
    return parts.text(said) if isinstance(said, str) else None


def _thinking(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    said = word(block, "thinking") or ""
    return parts.reasoning(said, signature=word(block, "signature"), provider="anthropic")


def _redacted(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    hidden = word(block, "data")
    return parts.reasoning("", encrypted=hidden, redacted=True, provider="anthropic")


def _reasoning(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    """Read LangChain's own, or an item of OpenAI's Responses."""
    if "summary" not in block and "encrypted_content" not in block:
        extras = block.get("extras")
        signature = word(extras, "signature") if isinstance(extras, Mapping) else None
        said = word(block, "reasoning") or ""
        return parts.reasoning(said, signature=signature, id=word(block, "id"))
    given = block.get("summary")
    summary = given if isinstance(given, (list, tuple)) else ()
    lines = [word(each, "text") for each in summary if isinstance(each, Mapping)]
    hidden = word(block, "encrypted_content")
    own = {"id": word(block, "id"), "encrypted": hidden, "provider": "openai"}
    return parts.reasoning("\n\n".join(filter(None, lines)), **own)


def _call(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    return call_of(block)


def _result(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    inner = parts_of(block.get("content"), lost, f"{path}.content", provider)
    call_id = word(block, "tool_use_id", "tool_call_id", "id")
    return response_of(call_id, inner, is_error=block.get("is_error") is True)


def _image_url(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    given = block.get("image_url")
    address = word(given, "url") if isinstance(given, Mapping) else given
    if isinstance(address, str) and address:
        return parts.uri(address, modality=None if _is_data(address) else "image")
    file_id = word(block, "file_id")
    return None if file_id is None else parts.file(file_id, modality="image")


def _input_audio(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    given = block.get("input_audio")
    data = word(given, "data") if isinstance(given, Mapping) else None
    if data is None or not isinstance(given, Mapping):
        return None
    return parts.blob(data, f"audio/{word(given, 'format') or 'wav'}", "audio")


def _media(block: Mapping[str, Any], lost: Lost, path: str, provider: str) -> Part | None:
    """Read media with their bytes, address or id in any of the fields that are in use."""
    modality = _MODALITIES[block["type"]]
    inner = next((block[key] for key in ("source", "file") if key in block), None)
    given = {**block, **inner} if isinstance(inner, Mapping) else block
    mime_type = word(given, "mime_type", "media_type")
    data = word(given, "base64", "data", "file_data")
    if data is not None:
        inline = parts.from_data_url(data)
        return inline if inline is not None else parts.blob(data, mime_type, modality)
    address = word(given, "url", "file_url")
    if address is not None:
        return parts.uri(address, mime_type, None if _is_data(address) else modality)
    file_id = word(given, "file_id", "id")
    return None if file_id is None else parts.file(file_id, mime_type, modality)


_MODALITIES = {
    "image": "image",
    "audio": "audio",
    "video": "video",
    "file": "document",
    "document": "document",
    "input_file": "document",
}
_READERS: dict[str, Reader] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "reasoning": _reasoning,
    "tool_use": _call,
    "tool_call": _call,
    "tool_result": _result,
    "image_url": _image_url,
    "input_image": _image_url,
    "input_audio": _input_audio,
    **dict.fromkeys(_MODALITIES, _media),
}
KNOWN = frozenset(_READERS)
"""The types of blocks that are read here."""


def call_of(block: Mapping[str, Any]) -> Part | None:
    """Return a call, whatever its fields are called; None if it has no name."""
    inner = block.get("function")
    own = word(block, "call_id", "id", "tool_call_id")
    given = inner if isinstance(inner, Mapping) else block
    name = word(given, "name", "tool_name")
    keys = ("arguments", "args", "input")
    arguments = next((given[key] for key in keys if key in given), None)
    return None if name is None else parts.tool_call(own, name, arguments)


def response_of(
    call_id: str | None, inner: list[Part], *, name: str | None = None, is_error: bool = False
) -> Part:
    """Return the answer to a call that consists of these parts: texts are its response."""
    said = [part["content"] for part in inner if part["type"] == "text"]
    media = [part for part in inner if part["type"] != "text"]
    return parts.tool_call_response(
        call_id, "\n".join(said), name=name, is_error=is_error, parts=media
    )


def word(value: Any, *names: str) -> str | None:
    """Return the first of these fields that is a text, and not an empty one."""
    return next((each for name in names if isinstance(each := value.get(name), str) and each), None)


def _is_data(address: str) -> bool:
    return address[:5].lower() == "data:"
