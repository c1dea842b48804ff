"""Checks of records that were made elsewhere: built by hand, or read from a bundle."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.core.safe_repr import briefly
from holdfast.errors import InvalidArgumentError
from holdfast.model import CheckpointInfo, Framework, checked_name

_TYPES: dict[str, tuple[type, ...]] = {
    "checkpoint_id": (str,),
    "agent_id": (str,),
    "session_id": (str,),
    "parent_id": (str, type(None)),
    "framework": (Framework,),
    "schema_version": (str,),
    "step_index": (int,),
    "step_name": (str, type(None)),
    "metadata": (dict,),
    "created_at": (datetime,),
    "ttl_seconds": (int, float, type(None)),
    "handoff_target": (str, type(None)),
    "handoff_schema": (str, type(None)),
    "checksum": (str,),
    "content_id": (str,),
    "size": (int,),
}
_NAMES = ("checkpoint_id", "agent_id", "session_id", "parent_id", "handoff_target")
_NUMBERS = ("step_index", "ttl_seconds", "size")


def check_record(info: CheckpointInfo) -> None:
    """Refuse a record that no store could give back as it is."""
    values: dict[str, Any] = vars(info)
    for what, types in _TYPES.items():
        # Exactly: a subclass of str would come back as str, and no longer fit the checksum.
        if type(values[what]) not in types:
            wanted = " or ".join(t.__name__ for t in types).replace("NoneType", "None")
            raise InvalidArgumentError(f"{what} is {wanted}, not {type(values[what]).__name__}")
    for what in _NAMES:
        if values[what] is not None:
            checked_name(what, values[what])
    if info.checkpoint_id.startswith("/"):  # else its notes would be leases, or decisions
        raise InvalidArgumentError(
            f"checkpoint_id {info.checkpoint_id!r} begins with '/', as no checkpoint's does"
        )
    for what in _NUMBERS:
        if values[what] is not None and not 0 <= values[what] < 2**63:
            raise InvalidArgumentError(f"{what} is a number from 0, not {briefly(values[what])}")
    if info.created_at.tzinfo is None:
        raise InvalidArgumentError("created_at is a datetime with a time zone")
