"""Which records of a session are checkpoints of LangGraph's."""

from __future__ import annotations

from dataclasses import replace

from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query


def put_by_a_saver(info: CheckpointInfo) -> bool:
    """Whether it is no other checkpoint in the session of a thread, such as one kept by hand."""
    return {"checkpoint_id", "checkpoint_ns"} <= info.metadata.keys()


def newest(query: Query) -> Plan[CheckpointInfo | None]:
    """The newest of these that a saver put."""
    found = yield from steps.query(replace(query, limit=1))
    if found and not put_by_a_saver(found[0]):
        found = [info for info in (yield from steps.query(query)) if put_by_a_saver(info)]
    return found[0] if found else None
