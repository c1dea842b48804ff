"""Which checkpoint is meant by an id: the whole of it, or an unambiguous beginning.

The library and the command line ask here, so that what one prints the other finds.
"""

from __future__ import annotations

from holdfast.errors import AmbiguousIdError, CheckpointNotFoundError
from holdfast.ids import MIN_PREFIX, is_whole, spellings
from holdfast.model import checked_name
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan

_LISTED = 3


def resolve(checkpoint_id: str) -> Plan[str]:
    """Return the whole id for an unambiguous beginning of one, with its dashes or without.

    A whole id is not looked for; any other is found in the order of ids, without reading more.
    """
    checked_name("checkpoint_id", checkpoint_id)
    if is_whole(checkpoint_id):
        return checkpoint_id
    found: list[str] = []
    for beginning in spellings(checkpoint_id):
        found += yield from steps.match(beginning, _LISTED)
        if beginning in found:
            return beginning
    if not found:
        raise CheckpointNotFoundError(checkpoint_id)
    if len(checkpoint_id) < MIN_PREFIX:
        raise CheckpointNotFoundError(
            checkpoint_id, f"give at least {MIN_PREFIX} characters of its id"
        )
    if len(found) > 1:
        raise AmbiguousIdError(checkpoint_id, found[:_LISTED])
    return found[0]
