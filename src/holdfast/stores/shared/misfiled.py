"""What is said of records that a store which speaks SQL would not find where it filed them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo
from holdfast.stores.shared.tags import unfiled_in
from holdfast.stores.shared.touched import span_of


def asked_for(known: Mapping[str, CheckpointInfo], name: str) -> CheckpointInfo:
    """Return the record that was asked for by its id; an error if another one was found by that."""
    info = known.get(name)
    if info is None:
        raise CheckpointIntegrityError(
            None, f"the index of ids leads to {name!r} in place of others"
        )
    return info


def reasons(
    info: CheckpointInfo, place: int, touched: Any, filed: Container[int]
) -> Iterator[tuple[str, str]]:
    """Give what is wrong with how the session of a record is filed.

    That is when it was touched last, which is never before one of its records, and under which
    numbers of tags. What its listings say of other records may still be right.
    """
    if type(touched) is not int or touched < span_of(place):
        reason = "its session is filed as touched before it, so listings miss it"
        yield info.checkpoint_id, reason
    names = unfiled_in(info.metadata, filed)
    if names:
        said = ", ".join(map(repr, names))
        yield info.checkpoint_id, f"its session is not filed by its tags, so find misses it: {said}"
