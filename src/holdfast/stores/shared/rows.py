"""Records as rows of a table: what the stores that speak SQL share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import ormsgpack

from holdfast.core.codec import pack, unpack
from holdfast.errors import CheckpointIntegrityError, HoldfastError, InvalidArgumentError
from holdfast.model import CheckpointInfo, microseconds
from holdfast.model.decoding import METADATA_IN_BODY, info_of_columns
from holdfast.model.record import body_of
from holdfast.stores.base import TIES, seq_of

Row = tuple[Any, ...]

_FARTHEST = 2**63 // TIES - 1


def bound_of(moment: datetime) -> int:
    """Return the first place for a time; those before 1685 and after 2255 have none."""
    return max(-_FARTHEST * TIES, min(_FARTHEST * TIES, seq_of(moment)))


def check_time(created_at: datetime) -> None:
    """Refuse a time that has no place of its own."""
    if bound_of(created_at) != seq_of(created_at):
        raise InvalidArgumentError(f"created_at is {created_at}: too far away to be kept")


def made_at(created_at: datetime, seq: int) -> int | None:
    """Return what is kept of a record's time beside its place: nothing where the place tells it."""
    time = microseconds(created_at)
    return None if seq // TIES == time else time


def packed_body(info: CheckpointInfo) -> bytes:
    """Return what of a record has no column of its own."""
    return pack(body_of(info.__dict__))


def info_of(
    row: Row, id_of: Callable[[Any], str], shown: Callable[[Any], str] | None = None
) -> CheckpointInfo:
    """Return the record of a row: seq, made, id, agent, session, parent, expires, target, root, …

    ``made`` is its time where that is not the one of its place; size, body and sum come last.

    ``id_of`` reads an id as the store keeps it, ``shown`` says one that may be damaged.
    """
    seq, made, key, agent, session, parent, expires, target, root, size, body, checksum = row
    try:
        info = info_of_columns(
            id_of(key),
            agent,
            session,
            None if parent is None else id_of(parent),
            seq // TIES if made is None else made,
            target,
            checksum,
            root,
            size,
            unpacked(body),
        )
        if expires is not None or info.ttl_seconds is not None:
            end = info.expires_at
            if end is None or microseconds(end) != expires:
                raise ValueError("its time to live does not fit")
        return info
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = f"unreadable record ({error})"
    except CheckpointIntegrityError as error:
        reason = error.reason
    raise CheckpointIntegrityError((shown or id_of)(key), reason)


def metadata_in(body: Any) -> dict[str, Any]:
    """Return the metadata of a packed record; none of one that is damaged, which reading tells."""
    try:
        found = unpacked(body)[METADATA_IN_BODY]
    except (HoldfastError, IndexError, KeyError, TypeError, ValueError):
        return {}
    return found if type(found) is dict else {}


def unpacked(data: bytes) -> Any:
    """Return packed values; classes that are not known are given raw."""
    try:
        return ormsgpack.unpackb(data)
    except ValueError:  # it holds more than plain values, or is damaged
        return unpack(data, "raw")
