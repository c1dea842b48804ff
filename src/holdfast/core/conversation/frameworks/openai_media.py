"""Text and media inside items of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Part

_FORMATS = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_AUDIO = {mime_type: name for name, mime_type in _FORMATS.items()}
_TEXTS = ("input_text", "output_text", "text")


def content_part(content: Any, path: str, lost: Lost) -> Part | None:
    """Return the part that an entry of a message's content is; None if it is lost."""
    if not isinstance(content, Mapping):
        lost.add(path, f"is {type(content).__name__}, where an object is")
        return None
    kind = content.get("type")
    if kind in _TEXTS:
        for name in ("annotations", "logprobs"):
            if content.get(name):
                lost.add(f"{path}.{name}", f"{name} of a text")
        return parts.text(content.get("text", ""))
    if kind == "refusal":
        lost.add(path, "a refusal, which is text here")
        return parts.text(content.get("refusal", ""))
    if content.get("detail") not in (None, "auto"):
        lost.add(f"{path}.detail", "how closely the media are looked at")
    if kind == "input_image":
        return _image_part(content, path, lost)
    if kind == "input_file":
        return _file_part(content, path, lost)
    if kind == "input_audio":
        return _audio_part(content, path, lost)
    lost.add(path, f"content of the type {str(kind)[:40]!r}")
    return None


def _image_part(content: Mapping[str, Any], path: str, lost: Lost) -> Part | None:
    if isinstance(content.get("image_url"), str) and content["image_url"]:
        made = parts.uri(content["image_url"], modality="image")
        return {**made, "modality": "image"}
    if content.get("file_id"):
        return parts.file(content["file_id"], modality="image")
    lost.add(path, "an image without an address")
    return None


def _file_part(content: Mapping[str, Any], path: str, lost: Lost) -> Part | None:
    if content.get("filename") not in (None, _FILE):
        lost.add(f"{path}.filename", "the name of a file")
    if content.get("file_data"):
        data = str(content["file_data"])
        return parts.from_data_url(data) or parts.blob(data, None)
    if content.get("file_url"):
        return parts.uri(str(content["file_url"]), modality="document")
    if content.get("file_id"):
        return parts.file(str(content["file_id"]), modality="document")
    lost.add(path, "a file without content or address")
    return None


def _audio_part(content: Mapping[str, Any], path: str, lost: Lost) -> Part | None:
    audio = content.get("input_audio")
    audio = audio if isinstance(audio, Mapping) else {}
    name = str(audio.get("format"))
    if not audio.get("data"):
        lost.add(path, "sound without content")
        return None
    return parts.blob(str(audio["data"]), _FORMATS.get(name, f"audio/{name}"), "audio")


_FILE = "file"


def media_content(
    part: Part, path: str, lost: Lost, *, of_output: bool = False
) -> dict[str, Any] | None:
    """Return the entry of content that a part becomes; None, and why, if it cannot be one.

    What reads back as another part than it was is told of too.
    """
    made = _content(part, of_output)
    if made is None:
        where = "the answer to a call" if of_output else "a user's message"
        lost.add(path, f"{_kind(part)} in {where}")
    elif content_part(made, path, Lost()) != part:
        lost.add(path, f"what {_kind(part)} says of itself beside its content")
    return made


def _kind(part: Part) -> str:
    modality = part.get("modality")
    return f"{modality} ({part['type']})" if modality else str(part["type"])


def _content(part: Part, of_output: bool) -> dict[str, Any] | None:
    kind, modality, mime_type = part["type"], part.get("modality"), part.get("mime_type")
    if kind == "text":
        return {"type": "input_text", "text": part["content"]}
    if modality == "image" and kind in _IMAGE:
        name, address = _IMAGE[kind], parts.data_url(part) if kind == "blob" else None
        return {"type": "input_image", "detail": "auto", name: address or part[_FIELDS[kind]]}
    if modality == "document" and kind == "blob":
        return {"type": "input_file", "filename": _FILE, "file_data": parts.data_url(part)}
    if modality == "document" and kind in _IMAGE:
        name = "file_url" if kind == "uri" else "file_id"
        return {"type": "input_file", name: part[_FIELDS[kind]]}
    if kind == "blob" and mime_type in _AUDIO and not of_output:
        sound = {"data": part["content"], "format": _AUDIO[mime_type]}
        return {"type": "input_audio", "input_audio": sound}
    return None


_IMAGE = {"blob": "image_url", "uri": "image_url", "file": "file_id"}
_FIELDS = {"uri": "uri", "file": "file_id"}
