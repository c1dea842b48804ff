"""Listing checkpoints, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from holdfast.adapters.langgraph.channel_codec import ChannelCodec
from holdfast.adapters.langgraph.checkpoint_ids import says_when
from holdfast.adapters.langgraph.plans.lookup import noted_on
from holdfast.adapters.langgraph.records import tuple_of
from holdfast.adapters.langgraph.saver_context import SaverContext
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.adapters.langgraph.thread_records import every, langgraph_id
from holdfast.model import CheckpointInfo
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query
from holdfast.verbs.read import restore_all
from holdfast.verbs.thread_names import sessions_below

_PAGE = 20
"""Checkpoints that are read with their states at a time."""


def infos(
    context: SaverContext,
    position: ThreadPosition | None,
    every_namespace: bool,
    wanted: dict[str, Any],
    before: str | None,
    limit: int | None,
) -> Plan[list[CheckpointInfo]]:
    """Return the records of a listing, newest first; of all threads for no position."""
    if limit is not None and limit <= 0:
        return []
    if position is not None and position.checkpoint_id is not None:
        wanted = {**wanted, "checkpoint_id": position.checkpoint_id}
    # Stores compare types as well; for LangGraph 1 is True, and what is missing is None.
    tags = {name: value for name, value in wanted.items() if type(value) is str}
    others = wanted.keys() - tags.keys()
    query = Query(
        agent_id=context.agent_id,
        tags=tags,
        limit=limit if before is None and not others else None,
    )
    found = yield from _in(query, position, every_namespace)
    if query.limit is not None and not all(says_when(langgraph_id(info)) for info in found):
        found = yield from _in(replace(query, limit=None), position, every_namespace)
    found = [
        info
        for info in found
        if all(info.metadata.get(name) == wanted[name] for name in others)
        and (before is None or langgraph_id(info) < before)
    ]
    found.sort(key=langgraph_id, reverse=True)
    return found[:limit]


def _in(
    query: Query, position: ThreadPosition | None, every_namespace: bool
) -> Plan[list[CheckpointInfo]]:
    """Return those of a thread that savers put, of one namespace or of all."""
    if position is None:
        return (yield from every(query))
    found = yield from every(replace(query, session_id=position.session_id))
    if every_namespace:
        below = sessions_below(position.thread_id)
        found += yield from every(replace(query, session_prefix=below))
    return found


def of_thread(context: SaverContext, thread_id: str) -> Plan[list[CheckpointInfo]]:
    """Return all records of a thread, of every namespace."""
    return (yield from infos(context, ThreadPosition(thread_id), True, {}, None, None))


def pages(found: Sequence[CheckpointInfo]) -> Iterable[Sequence[CheckpointInfo]]:
    """Return records in parts that are small enough to hold with their states."""
    return (found[start : start + _PAGE] for start in range(0, len(found), _PAGE))


def tuples(
    context: SaverContext, codec: ChannelCodec, page: Sequence[CheckpointInfo]
) -> Plan[list[CheckpointTuple]]:
    """Return these records as LangGraph knows them."""
    kept = yield from restore_all(context.engine, page, codec.trusts)
    noted = yield from noted_on(context, codec, page)
    return [tuple_of(codec, each, noted[each.checkpoint_id]) for each in kept]
