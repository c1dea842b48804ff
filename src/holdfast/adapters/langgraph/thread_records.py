"""Which records of a session are checkpoints of LangGraph's, and which of them is the newest."""

from __future__ import annotations

from dataclasses import replace

from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query


def put_by_a_saver(info: CheckpointInfo) -> bool:
    """Return whether it is no other checkpoint in a thread's session, such as one kept by hand."""
    return {"checkpoint_id", "checkpoint_ns"} <= info.metadata.keys()


def langgraph_id(info: CheckpointInfo) -> str:
    """Return the id that LangGraph gave a checkpoint."""
    return str(info.metadata["checkpoint_id"])


def every(query: Query) -> Plan[list[CheckpointInfo]]:
    """Return all of these that savers put."""
    return [info for info in (yield from steps.query(query)) if put_by_a_saver(info)]


def newest(query: Query) -> Plan[CheckpointInfo | None]:
    """Return the newest of these that a saver put."""
    found = yield from steps.query(replace(query, limit=1))
    if found and not put_by_a_saver(found[0]):
        found = yield from every(query)
    return found[0] if found else None
