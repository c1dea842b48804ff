"""What the fields of a record may be, whoever wrote it: checked wherever one is read."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from holdfast.model import CheckpointInfo

LONGEST_NAME = 1024
_TIMES = (int, float)
_FIELDS = itemgetter(
    *("checkpoint_id", "agent_id", "session_id", "parent_id", "schema_version"),
    *("step_index", "step_name", "handoff_target", "handoff_schema", "size"),
)


def shaped(values: dict[str, Any]) -> CheckpointInfo:
    """The record of these fields; ValueError if one is of a type or size that no save writes.

    A checksum is proven when a record is restored. Listings show the record before that, so
    nothing in it may surprise them.
    """
    checkpoint_id, agent_id, session_id, parent_id, version, index, name, target, schema, size = (
        _FIELDS(values)
    )
    if (
        type(checkpoint_id) is not str
        or type(agent_id) is not str
        or type(session_id) is not str
        or (parent_id is not None and type(parent_id) is not str)
        or type(version) is not str
        or type(index) is not int
        or (name is not None and type(name) is not str)
        or (target is not None and type(target) is not str)
        or (schema is not None and type(schema) is not str)
        or type(size) is not int
        or type(values["metadata"]) is not dict
    ):
        raise ValueError("a field of another type")
    if (
        not 0 < len(checkpoint_id) <= LONGEST_NAME
        or not 0 < len(agent_id) <= LONGEST_NAME
        or not 0 < len(session_id) <= LONGEST_NAME
        or (parent_id is not None and len(parent_id) > LONGEST_NAME)
        or (target is not None and len(target) > LONGEST_NAME)
    ):
        raise ValueError("a name that is empty or too long")
    seconds = values["ttl_seconds"]
    if size < 0 or (seconds is not None and not (type(seconds) in _TIMES and seconds >= 0)):
        raise ValueError("a number that is none, or below 0")
    return CheckpointInfo.of(values)
