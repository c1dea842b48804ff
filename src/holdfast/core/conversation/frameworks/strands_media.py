"""Media as Bedrock has them: a format by name, and bytes or a place in S3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.parts import Part

_FORMATS = {
    "image": {"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"},
    "audio": {
        "mp3": "audio/mpeg",
        "wav": "audio/wav",
        "ogg": "audio/ogg",
        "flac": "audio/flac",
        "aac": "audio/aac",
        "opus": "audio/opus",
        "m4a": "audio/m4a",
        "webm": "audio/webm",
        "pcm": "audio/pcm",
        "mp4": "audio/mp4",
    },
    "video": {
        "mp4": "video/mp4",
        "mov": "video/quicktime",
        "mkv": "video/x-matroska",
        "webm": "video/webm",
        "mpeg": "video/mpeg",
        "flv": "video/x-flv",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    },
}
_MIME_TYPES = {
    kind: {mime_type: name for name, mime_type in known.items()} for kind, known in _FORMATS.items()
}
KINDS = tuple(_FORMATS)
NAMELESS = "document"
"""How a document is called whose name is not known; Bedrock wants one."""
_ENCODED = "__bytes_encoded__"


def encoded(content: str) -> dict[str, Any]:
    """Return base64 as Strands keeps bytes in JSON."""
    return {_ENCODED: True, "data": content}


def base64_of(given: Any) -> str | None:
    """Return bytes that Strands keeps in JSON as base64; None if they are none."""
    if isinstance(given, Mapping) and given.get(_ENCODED) is True:
        given = given.get("data")
    if not isinstance(given, str) or not given or parts.decoded(given) is None:
        return None
    return parts.standard_base64(given)


def read_media(kind: str, block: Any) -> Part | None:
    """Return the part that a block of media is; None if it is damaged."""
    if not isinstance(block, Mapping) or not isinstance(block.get("source"), Mapping):
        return None
    name, source = block.get("format"), block["source"]
    mime_type = _FORMATS[kind].get(name) if isinstance(name, str) else None
    if mime_type is None and isinstance(name, str) and name:
        mime_type = f"{'application' if kind == 'document' else kind}/{name}"
    data = base64_of(source.get("bytes"))
    if data is not None:
        return parts.blob(data, mime_type, kind)
    place = source.get("location") or source.get("s3Location")
    address = place.get("uri") if isinstance(place, Mapping) else None
    return parts.uri(address, mime_type, kind) if isinstance(address, str) and address else None


def write_media(part: Part) -> dict[str, Any] | None:
    """Return a part as a block of media; None if Strands has none for it."""
    kind = part["modality"]
    name = _MIME_TYPES[kind].get(part.get("mime_type", ""))
    if name is None:
        return None
    if part["type"] == "blob":
        source: dict[str, Any] = {"bytes": encoded(part["content"])}
    elif part["type"] == "uri" and part["uri"].startswith("s3://"):
        source = {"location": {"type": "s3", "uri": part["uri"]}}
    else:
        return None
    own = {"name": NAMELESS} if kind == "document" else {}
    return {kind: {"format": name, **own, "source": source}}
