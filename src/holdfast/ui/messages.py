"""The conversation of a checkpoint, as people read it: from its end, a page at a time."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from holdfast.cli.access.parts import parts_of
from holdfast.cli.exits import NotFound
from holdfast.cli.output.messages import Known, MessageChanges, said_since
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Part, text_of_response
from holdfast.core.json_form import to_json
from holdfast.core.short_repr import brief
from holdfast.model import Checkpoint
from holdfast.ui.checkpoint import meant
from holdfast.ui.files import media_of
from holdfast.ui.numbers import exact
from holdfast.ui.reading import DAMAGE, next_start, parent_of, small, start_of
from holdfast.ui.routes import Content, Parameters, Route
from holdfast.ui.shapes import MESSAGES

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.core.conversation.said import Said
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import Store

_LONGEST = 10_000
"""So many characters of a text are given; the rest has an address of its own."""
_REMEMBERED = 32 * 2**20
"""States of so many bytes in all are remembered as conversations."""
_MOST_COMPARED = 64 * 2**20
"""What is new is not looked for in larger states."""
_FIELDS = {
    "text": "content",
    "reasoning": "content",
    "tool_call": "arguments",
    "tool_call_response": "response",
}
"""Where the words of a part are."""


@dataclass(frozen=True)
class _Read:
    """The conversation of a checkpoint, and what could not be read of it."""

    known: Known
    lost: list[str]
    size: int


class _Recent:
    """Conversations that were read last. Checkpoints never change, so that they stay true."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[str, _Read] = OrderedDict()

    def get(self, checkpoint_id: str) -> _Read | None:
        with self._lock:
            if checkpoint_id in self._found:
                self._found.move_to_end(checkpoint_id)
            return self._found.get(checkpoint_id)

    def add(self, checkpoint_id: str, read: _Read) -> None:
        with self._lock:
            self._found[checkpoint_id] = read
            while sum(each.size for each in self._found.values()) > _REMEMBERED:
                self._found.popitem(last=False)


_recent: WeakKeyDictionary[Store, _Recent] = WeakKeyDictionary()
_lock = threading.Lock()


def _read(client: SyncClient, info: CheckpointInfo) -> _Read:
    with _lock:
        recent = _recent.setdefault(client.store, _Recent())
    found = recent.get(info.checkpoint_id)
    if found is None:
        kept = Checkpoint.from_parts(info, parts_of(client, info, "execution_state"))
        lost = Lost()
        found = _Read(Known.of(kept, lost), lost.found, info.size)
        recent.add(info.checkpoint_id, found)
    return found


def messages(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return the last messages of a checkpoint in their order, or those before a page."""
    info = meant(client, given)
    read = _read(client, info)
    said = read.known.messages
    skipped = start_of(given.text("cursor"))
    end = max(len(said) - skipped, 0)
    begin = max(end - given.limit, 0)
    removed, added = _changes(client, info)
    return {
        "checkpoint_id": info.checkpoint_id,
        "messages": [
            {
                "role": said[at].role,
                "parts": [_part(info, part, (at, i)) for i, part in enumerate(said[at].parts)],
                "index": at,
                "new": None if added is None else id(said[at]) in added,
            }
            for at in range(begin, end)
        ],
        "total": len(said),
        "next": next_start(skipped, given.limit, len(said)),
        "removed": removed,
        "lost": read.lost,
        "pending": sorted(_pending(said)),
    }


def _changes(client: SyncClient, info: CheckpointInfo) -> tuple[int, set[int] | None]:
    """Return how many messages went since the checkpoint before, and which came, if known."""
    parent = parent_of(client, info)
    changed = None if parent is None else said_between(client, parent, info)
    if changed is None:
        return 0, None
    return len(changed.removed), {id(message) for message in changed.added}


def said_between(
    client: SyncClient, old: CheckpointInfo, new: CheckpointInfo
) -> MessageChanges | None:
    """Return what was said from one checkpoint to another; None if that is not known."""
    if old.size + new.size > _MOST_COMPARED:
        return None
    try:
        before, now = _read(client, old).known, _read(client, new).known
    except DAMAGE:
        return None
    return said_since(before, now) if before.messages or now.messages else None


def _pending(said: list[Said]) -> set[str]:
    """Return the calls that nothing answers."""
    calls: set[str] = set()
    answers: set[str] = set()
    for part in (part for message in said for part in message.parts):
        if part["type"] == "tool_call":
            calls.add(str(part.get("id", "")))
        elif part["type"] == "tool_call_response":
            answers.add(str(part.get("id", "")))
    return calls - answers - {""}


def _part(info: CheckpointInfo, part: Part, place: tuple[int, ...]) -> dict[str, Any]:
    """Return a part of a message, with an address for what is too long to be given whole."""
    kind = part["type"]
    if kind == "blob":
        told = {name: value for name, value in part.items() if name != "content"}
        size = len(part["content"]) * 3 // 4 - part["content"][-2:].count("=")
        return {**told, "size": size, "src": _address(info, place)}
    field = _FIELDS.get(kind)
    if field is None:
        shown: dict[str, Any] = small({name: to_json(each) for name, each in part.items()})
        return {"type": kind, **shown}
    said = part[field]
    made = dict(part) if type(said) is str else {**part, field: exact(to_json(said))}
    if "parts" in part:
        inner = enumerate(part["parts"])
        made["parts"] = [_part(info, each, (*place, i)) for i, each in inner]
    words = text_of_response(part[field])
    if len(words) > _LONGEST:
        made |= {field: words[:_LONGEST], "cut": len(words), "src": _address(info, place)}
    return made


def _address(info: CheckpointInfo, place: tuple[int, ...]) -> str:
    where = ".".join(map(str, place))
    return f"message-part?{urlencode({'id': info.checkpoint_id, 'place': where})}"


def message_part(client: SyncClient, given: Parameters) -> Content:
    """Return the whole of a part: the bytes of an image, or a text."""
    info = meant(client, given)
    part = _at(_read(client, info).known.messages, given.needed("place"))
    field = _FIELDS.get(part["type"])
    if part["type"] == "blob":
        data = base64.b64decode(part["content"])
        media = media_of(data)
        return Content(data, media or "application/octet-stream", None if media else "content")
    if field is None:
        raise NotFound(f"a {part['type']} of a message has no more than is told of it")
    text = text_of_response(part[field])
    return Content(text.encode("utf-8", "backslashreplace"), "text/plain; charset=utf-8")


def _at(said: list[Said], place: str) -> Part:
    try:
        index, first, *inner = _numbers(place)
        found = said[index].parts[first]
        for at in inner:
            found = found["parts"][at]
        return found
    except (ValueError, IndexError, KeyError):
        raise NotFound(f"there is no part {brief(place)} of the messages") from None


def _numbers(place: str) -> Iterator[int]:
    for each in place.split("."):
        if not (each.isascii() and each.isdecimal() and len(each) < 10):
            raise ValueError(place)
        yield int(each)


_ID = {"id": "the checkpoint, as the command line takes it"}
ROUTES = (
    Route(
        "messages",
        messages,
        "The last messages of a checkpoint, in their order",
        {
            **_ID,
            "limit": "messages of a page",
            "cursor": "what a page gave as next, for the messages before it",
        },
        MESSAGES,
    ),
    Route(
        "message-part",
        message_part,
        "A part of a message, whole",
        {**_ID, "place": "the numbers of the message and its part, as src has them"},
    ),
)
"""The addresses of this family."""
