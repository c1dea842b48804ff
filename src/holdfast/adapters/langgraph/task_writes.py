"""What tasks wrote, as it is noted beside a checkpoint, and back as LangGraph's pending writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerCompat
from langgraph.checkpoint.serde.types import ERROR

from holdfast.adapters.langgraph.allowed_types import is_data
from holdfast.adapters.langgraph.channel_codec import ChannelCodec, unkeepable, value_path
from holdfast.adapters.langgraph.named_types import plain_text
from holdfast.adapters.langgraph.safe_reading import WHOLE
from holdfast.core.codec import Unpacker, pack
from holdfast.core.raw import Raw, Sealed

_APART = "error"
"""The tag of an error in Holdfast's own form: one of an unknown class must not stop a resume."""


def noted(
    codec: ChannelCodec, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> dict[str, Any]:
    """Return what is noted of a task's writes."""
    rows = []
    for index, (channel, value) in enumerate(writes):
        kept, sealed = _kept(codec, channel, value)
        rows.append([WRITES_IDX_MAP.get(channel, index), channel, kept, sealed])
    return {"task_id": task_id, "task_path": task_path, "writes": rows}


def _kept(codec: ChannelCodec, channel: str, value: Any) -> tuple[Any, bool]:
    """Return what is kept of one write, and whether that is sealed."""
    if codec.is_open and channel == ERROR and isinstance(value, BaseException):
        with codec.sealing(channel, value):
            return _kept_error(codec, value)
    if codec.is_open and unkeepable(value) is None:
        return value, False
    with codec.sealing(channel, value):
        return codec.sealer.seal_whole(codec.serde, value), True


def _kept_error(codec: ChannelCodec, error: BaseException) -> tuple[Any, bool]:
    """Return what is kept of an error: its text, as LangGraph's serializer makes it of almost all.

    One that it would revive (a dataclass, say) is kept apart, since one of a class that is not
    known any more must not stop a resume.
    """
    tag, data = codec.serde.dumps_typed(error)
    text = plain_text(tag, data)
    if text is not None:
        return text, False
    if unkeepable(error) is None:
        return Sealed(_APART, pack(error)), True
    return codec.sealer.seal_whole(codec.serde, error), True


def pending(codec: ChannelCodec, notes: Iterable[dict[str, Any]]) -> list[PendingWrite]:
    """Return the writes of a checkpoint, in LangGraph's order, from notes in theirs.

    The first of equal writes counts, but of errors, interrupts and resumes the last.
    """
    return [
        (key[1], channel, _opened(codec, channel, value) if sealed else value)
        for key, (channel, value, sealed) in _rows(notes)
    ]


def _rows(notes: Iterable[dict[str, Any]]) -> list[tuple[Any, tuple[str, Any, bool]]]:
    """Return what was written, each under what orders it."""
    found: dict[tuple[str, str, int], tuple[str, Any, bool]] = {}
    taken: dict[tuple[str, int], tuple[str, str, int]] = {}
    for note in notes:
        task_id, path = note["task_id"], note["task_path"]
        for row in note["writes"]:
            index, channel, value, sealed = row[0], row[1], row[2], row[3]
            known = taken.get((task_id, index))
            if known is not None and channel not in WRITES_IDX_MAP:
                continue
            if known is not None:
                del found[known]
            key = writes_sort_key(path, task_id, index)
            taken[task_id, index] = key
            found[key] = (channel, value, sealed)
    return sorted(found.items(), key=lambda item: item[0])


def _opened(codec: ChannelCodec, channel: str, kept: Any) -> Any:
    """Return the value of a write that was sealed."""
    own_tags = isinstance(codec.serde, SerializerCompat)  # there they are names of classes
    if channel == ERROR and kept.tag == _APART and not own_tags:
        return _as_langgraph(Unpacker("raw", trusts=codec.trusts).unpack(kept.data))
    return codec.sealer.open(codec.serde, WHOLE, kept, value_path(channel))


def _as_langgraph(error: Any) -> Any:
    """Return an error that was kept as it was raised as LangGraph's savers give it: as text.

    Made without asking its class, but for classes of data: LangGraph revives those.
    """
    if isinstance(error, Raw):
        name = error.type_name.rpartition(":")[2].rpartition(".")[2]
        args, *group = error.reduced()[1][2:]
        return f"{name}({', '.join(map(repr, group if args is None else args))})"
    if not isinstance(error, BaseException) or is_data(type(error)):
        return error
    return BaseException.__repr__(error)
