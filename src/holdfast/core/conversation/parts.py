"""Parts of messages: made here, so that every reader of a framework's messages makes them alike.

They are those of OpenTelemetry's GenAI messages. None stands for what is empty or absent, so that
what a maker gives can be left out with ``filter(None, …)``.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from holdfast.core.conversation.lost import Lost

Part = dict[str, Any]
Message = dict[str, Any]

_DATA_URL = re.compile(r"^data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)
_QUOTED = re.compile(rb"%([0-9a-fA-F]{2})")
_MODALITIES = ("image", "audio", "video")
_URL_SAFE = str.maketrans("-_", "+/")
OCTETS = "application/octet-stream"


def text(content: str) -> Part:
    """Return a text."""
    return {"type": "text", "content": content}


def reasoning(content: str, **extra: Any) -> Part:
    """Return what a model thought; ``signature``, ``encrypted``, ``redacted``, ``id``, ``provider``
    where they are not None."""
    return {"type": "reasoning", "content": content, **_given(extra)}


def tool_call(call_id: str | None, name: str, arguments: Any) -> Part:
    """Return a call that a model asks for; its arguments as an object or as JSON text."""
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments_of(arguments)}
    return part if call_id is not None else {key: part[key] for key in part if key != "id"}


def tool_call_response(
    call_id: str | None,
    response: Any,
    *,
    name: str | None = None,
    is_error: bool = False,
    parts: list[Part] | None = None,
) -> Part:
    """Return the answer to a call; ``parts`` are the media that came with it."""
    extra = {"name": name, "is_error": is_error or None, "parts": parts or None}
    own = {"id": call_id} if call_id is not None else {}
    return {"type": "tool_call_response", **own, "response": response, **_given(extra)}


def by_role(role: str, given: Iterable[Part | None]) -> list[Message]:
    """Return what is said in one message that may also hold answers: those are of role ``tool``.

    >>> from holdfast.core.conversation.parts import by_role, text, tool_call_response
    >>> parts = [tool_call_response("c1", "12 m"), text("and?")]
    >>> [message["role"] for message in by_role("user", parts)]
    ['tool', 'user']
    """
    found: list[Message] = []
    for part in given:
        if part is None:
            continue
        own = "tool" if part["type"] == "tool_call_response" else role
        if own != "tool" and found and found[-1]["role"] == own:
            found[-1]["parts"].append(part)
        else:
            found.append({"role": own, "parts": [part]})
    return found


def blob(content: bytes | str, mime_type: str | None, modality: str | None = None) -> Part:
    """Return media, from bytes or from base64 of either alphabet.

    >>> from holdfast.core.conversation.parts import blob
    >>> blob("-_8", "image/png")["content"]
    '+/8='
    """
    data = base64.b64encode(content).decode() if isinstance(content, bytes) else content
    data = standard_base64(data)
    kind = {"mime_type": mime_type} if mime_type else {}
    return {"type": "blob", "modality": modality or modality_of(mime_type), **kind, "content": data}


def uri(address: str, mime_type: str | None = None, modality: str | None = None) -> Part:
    """Return media that are elsewhere; those inside a ``data:`` URL are a blob."""
    inline = from_data_url(address)
    if inline is not None:
        return inline
    kind = {"mime_type": mime_type} if mime_type else {}
    modality = modality or modality_of(mime_type, "image")
    return {"type": "uri", "modality": modality, **kind, "uri": address}


def file(file_id: str, mime_type: str | None = None, modality: str | None = None) -> Part:
    """Return a file that a provider keeps under an id."""
    kind = {"mime_type": mime_type} if mime_type else {}
    modality = modality or modality_of(mime_type)
    return {"type": "file", "modality": modality, **kind, "file_id": file_id}


def from_data_url(address: str) -> Part | None:
    """Return the blob inside a ``data:`` URL; None if the address is another."""
    head = _DATA_URL.match(address[:1000])
    if head is None:
        return None
    rest = address[head.end() :]
    mime_type = head[1] or "text/plain"
    if ";base64" not in head[2].lower():
        given = rest.encode("utf-8", "surrogatepass")
        return blob(_QUOTED.sub(lambda found: bytes.fromhex(found[1].decode()), given), mime_type)
    return blob("".join(rest.split()), mime_type)


def data_url(part: Part) -> str:
    """Return a blob as a ``data:`` URL, for frameworks that take media so."""
    return f"data:{part.get('mime_type') or OCTETS};base64,{part['content']}"


def standard_base64(content: str) -> str:
    """Return base64 in the standard alphabet, padded."""
    content = content.translate(_URL_SAFE).rstrip("=")
    return content + "=" * (-len(content) % 4)


def url_safe_base64(content: str) -> str:
    """Return standard base64 in the alphabet that URLs take, as Pydantic AI and Google have it."""
    return content.replace("+", "-").replace("/", "_")


def decoded(content: str) -> bytes | None:
    """Return the bytes of base64; None if it is none."""
    try:
        return base64.b64decode(standard_base64(content), validate=True)
    except (binascii.Error, ValueError):
        return None


def modality_of(mime_type: str | None, unknown: str = "document") -> str:
    """Return what a type of media is: image, audio, video or document."""
    if not mime_type:
        return unknown
    kind = mime_type.partition("/")[0].lower()
    return kind if kind in _MODALITIES else "document"


def arguments_of(given: Any) -> Any:
    """Return the arguments of a call as an object; as text only where they are no JSON object.

    >>> from holdfast.core.conversation.parts import arguments_of
    >>> arguments_of('{"q": "x"}'), arguments_of('{"q": '), arguments_of(None)
    ({'q': 'x'}, '{"q": ', {})
    """
    if given is None or given == "":
        return {}
    if not isinstance(given, str):
        return given if isinstance(given, dict) else json_text(given)
    try:
        found = json.loads(
            given,
            parse_constant=_no_json,
            parse_float=_finite,
            object_pairs_hook=_once,
        )
    except (ValueError, RecursionError):
        return given
    return found if isinstance(found, dict) else given


def as_object(call: Part, lost: Lost, path: str) -> dict[str, Any]:
    """Return the arguments of a call for a framework that takes nothing but an object."""
    given = call["arguments"]
    if isinstance(given, dict):
        return given
    lost.add(f"{path}.arguments", "are no JSON object: they are one with that text in it")
    return {"arguments": given}


def json_text(value: Any) -> str:
    """Return plain data as JSON text, as frameworks whose fields are texts take it."""
    return json.dumps(value, ensure_ascii=False)


def text_of_response(response: Any) -> str:
    """Return what a call gave as text: a text itself, all else as JSON."""
    return response if isinstance(response, str) else json_text(response)


def _given(extra: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in extra.items() if value is not None}


def _no_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that is there twice: an object could hold one of the two only."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found
