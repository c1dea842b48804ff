"""What delta channels are rebuilt from: a stored value of an ancestor, and the writes since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import DeltaChannelHistory, PendingWrite

from holdfast.adapters.langgraph import task_writes
from holdfast.adapters.langgraph.channel_codec import ChannelCodec
from holdfast.adapters.langgraph.plans.listing import pages
from holdfast.adapters.langgraph.plans.lookup import find, noted_on
from holdfast.adapters.langgraph.records import BUILDS_ON, damage_named, tuple_of
from holdfast.adapters.langgraph.saver_context import SaverContext
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo
from holdfast.runtime.steps import Plan
from holdfast.verbs.read import ancestors, restore_all


def history(
    context: SaverContext, codec: ChannelCodec, position: ThreadPosition, channels: Sequence[str]
) -> Plan[dict[str, DeltaChannelHistory]]:
    """Return for each channel the nearest value that an ancestor holds, and the writes since."""
    writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    remaining = set(channels)
    info = yield from find(context, position)
    chain = [] if info is None else (yield from _path(info))
    for page in pages(chain):
        noted = yield from noted_on(context, codec, page)
        for info in page:
            if not remaining:
                break
            with damage_named(info.checkpoint_id):
                pending = task_writes.pending(codec, noted[info.checkpoint_id])
            for write in reversed(pending):
                if write[1] in remaining:
                    writes[write[1]].append(write)
            # What builds on its ancestors in all that is asked for need not be read.
            if remaining - set(info.metadata.get(BUILDS_ON, ())):
                for kept in (yield from restore_all(context.engine, [info], codec.trusts)):
                    values = tuple_of(codec, kept, ()).checkpoint["channel_values"]
                    seeds.update({name: values[name] for name in remaining & values.keys()})
            remaining -= seeds.keys()
    if info is not None:
        _check_whole(chain[-1] if chain else info, remaining)
    found: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        found[channel] = {"writes": writes[channel][::-1]}
        if channel in seeds:
            found[channel]["seed"] = seeds[channel]
    return found


def _path(info: CheckpointInfo) -> Plan[list[CheckpointInfo]]:
    """Return the ancestors of a checkpoint, but for the twin that a fork is made of.

    What tasks wrote on the twin led to its own children.
    """
    path = []
    for ancestor in (yield from ancestors(info.checkpoint_id)):
        if ancestor.metadata.get("checkpoint_id") != info.metadata.get("checkpoint_id"):
            path.append(ancestor)
        info = ancestor
    return path


def _check_whole(oldest: CheckpointInfo, missing: set[str]) -> None:
    """Refuse a path that ends too early: a part of these channels was removed."""
    lost = missing.intersection(oldest.metadata.get(BUILDS_ON, ()))
    if lost and oldest.parent_id is not None:
        raise CheckpointIntegrityError(
            oldest.checkpoint_id,
            f"its delta channels {', '.join(sorted(lost))} build on {oldest.parent_id}, "
            "which was removed",
        )
