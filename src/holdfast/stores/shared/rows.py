"""Records as rows of a table: what the stores that speak SQL share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import ormsgpack

from holdfast.core.codec import pack, unpack
from holdfast.errors import CheckpointIntegrityError, InvalidArgumentError
from holdfast.model import CheckpointInfo, Framework, microseconds, moment
from holdfast.stores.base import TIES, seq_of
from holdfast.stores.shared.shapes import shaped

Row = tuple[Any, ...]

_FARTHEST = 2**63 // TIES - 1
_FRAMEWORKS = {framework.value: framework for framework in Framework}


def bound_of(moment: datetime) -> int:
    """The first place for a time; times before 1685 and after 2255 have none of their own."""
    return max(-_FARTHEST * TIES, min(_FARTHEST * TIES, seq_of(moment)))


def check_time(created_at: datetime) -> None:
    """Refuse a time that has no place of its own."""
    if bound_of(created_at) != seq_of(created_at):
        raise InvalidArgumentError(f"created_at is {created_at}: too far away to be kept")


def made_at(created_at: datetime, seq: int) -> int | None:
    """What is kept of a record's time beside its place: nothing where the place tells it."""
    time = microseconds(created_at)
    return None if seq // TIES == time else time


def body_of(info: CheckpointInfo) -> bytes:
    """What of a record has no column of its own."""
    return pack(
        [
            info.framework.value,
            info.schema_version,
            info.step_index,
            info.step_name,
            info.metadata,
            info.ttl_seconds,
            info.handoff_schema,
        ]
    )


def info_of(
    row: Row, id_of: Callable[[Any], str], shown: Callable[[Any], str] | None = None
) -> CheckpointInfo:
    """The record of a row: seq, made, id, agent, session, parent, expires, target, root, size, …

    ``made`` is its time where that is not the one of its place; body and sum come last.

    ``id_of`` reads an id as the store keeps it, ``shown`` says one that may be damaged.
    """
    seq, made, key, agent, session, parent, expires, target, root, size, body, checksum = row
    try:
        framework, version, index, name, metadata, ttl, schema = _unpacked(body)
        info = shaped(
            {
                "checkpoint_id": id_of(key),
                "agent_id": agent,
                "session_id": session,
                "parent_id": None if parent is None else id_of(parent),
                "framework": _FRAMEWORKS[framework],
                "schema_version": version,
                "step_index": index,
                "step_name": name,
                "metadata": metadata,
                "created_at": moment(seq // TIES if made is None else made),
                "ttl_seconds": ttl,
                "handoff_target": target,
                "handoff_schema": schema,
                "checksum": checksum.hex(),
                "content_id": root.hex(),
                "size": size,
            }
        )
        if expires is not None or ttl is not None:
            end = info.expires_at
            if end is None or microseconds(end) != expires:
                raise ValueError("its time to live does not fit")
        return info
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = f"unreadable record ({error})"
    except CheckpointIntegrityError as error:
        reason = error.reason
    raise CheckpointIntegrityError((shown or id_of)(key), reason)


def _unpacked(body: bytes) -> Any:
    try:
        return ormsgpack.unpackb(body)
    except ValueError:  # it holds more than plain values, or is damaged
        return unpack(body, "raw")
