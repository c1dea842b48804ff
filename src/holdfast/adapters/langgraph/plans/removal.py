"""Removing checkpoints, and never what another one's delta channels build on."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

from holdfast.adapters.langgraph.plans.listing import of_thread
from holdfast.adapters.langgraph.records import BUILDS_ON
from holdfast.adapters.langgraph.saver_context import SaverContext
from holdfast.errors import InvalidArgumentError
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query

logger = logging.getLogger("holdfast")

_AT_ONCE = 500


def delete_thread(context: SaverContext, thread_id: str) -> Plan[None]:
    """Remove a thread with all its namespaces and writes."""
    yield from _delete(context, (yield from of_thread(context, thread_id)))


def delete_for_runs(context: SaverContext, run_ids: Sequence[str]) -> Plan[None]:
    """Remove what these runs made, but for what the state of a later run still builds on."""
    agent_id = context.agent_id
    made: dict[str, CheckpointInfo] = {}
    for run_id in run_ids:
        found = yield from steps.query(Query(agent_id=agent_id, tags={"run_id": str(run_id)}))
        made.update({info.checkpoint_id: info for info in found})
    infos: list[CheckpointInfo] = []
    for session_id in {info.session_id for info in made.values()}:
        infos += yield from steps.query(Query(agent_id=agent_id, session_id=session_id))
    spared = yield from _spared(context, infos, made.keys())
    if spared:
        logger.warning(
            "%d checkpoints of the deleted runs are kept: delta channels of others need them",
            len(spared),
        )
    yield from _delete(context, [info for key, info in made.items() if key not in spared])


def prune(context: SaverContext, thread_ids: Sequence[str], strategy: str) -> Plan[None]:
    """Remove all but the newest checkpoint of each namespace and what it builds on; or all."""
    if strategy not in ("keep_latest", "delete"):
        raise InvalidArgumentError(f'strategy is "keep_latest" or "delete", not {strategy!r}')
    for thread_id in thread_ids:
        infos = yield from of_thread(context, thread_id)
        removed = {info.checkpoint_id for info in infos}
        if strategy == "keep_latest":
            heads = {info.session_id: info for info in reversed(infos)}
            removed -= {head.checkpoint_id for head in heads.values()}
            removed -= yield from _spared(context, infos, removed)
        yield from _delete(context, [info for info in infos if info.checkpoint_id in removed])


def _spared(
    context: SaverContext, infos: list[CheckpointInfo], removed: Collection[str]
) -> Plan[set[str]]:
    """Return those to be removed, of these sessions, without which one that stays is not whole.

    They stay, and so have to be whole as well.
    """
    if any(BUILDS_ON in info.metadata for info in infos if info.checkpoint_id in removed):
        infos = yield from steps.query(Query(agent_id=context.agent_id))  # forks are elsewhere
    by_id = {info.checkpoint_id: info for info in infos}
    stay = [info for info in infos if info.checkpoint_id not in removed]
    spared: set[str] = set()
    while stay:
        info = stay.pop()
        parent = by_id.get(info.parent_id or "")
        if parent is None or parent.checkpoint_id in spared or BUILDS_ON not in info.metadata:
            continue
        if parent.checkpoint_id in removed:
            spared.add(parent.checkpoint_id)
            stay.append(parent)
    return spared


def _delete(context: SaverContext, infos: Iterable[CheckpointInfo]) -> Plan[None]:
    ids = [info.checkpoint_id for info in infos]
    for start in range(0, len(ids), _AT_ONCE):
        part = ids[start : start + _AT_ONCE]
        yield from steps.delete(part)
        context.engine.forget(*part)
