"""Whether an agent may go on with its session: nobody has written it since, and all is decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from strands.types.session import encode_bytes_values

from holdfast.adapters.strands import contents
from holdfast.adapters.strands.errors import HoldfastStorageError
from holdfast.adapters.strands.keys import Place
from holdfast.adapters.strands.steps import messages_of
from holdfast.adapters.strands.storage import entry_in
from holdfast.errors import UnknownEffectError


def fingerprint_in(state: Any, place: Place) -> str | None:
    """Return the fingerprint of what a session's state holds in a place; None if nothing."""
    entry = _entry(state, place)
    return None if entry is None else contents.fingerprint(contents.bytes_of(entry, place.key))


def check_goes_on(messages: list[Any], seen: str | None, state: Any, place: Place) -> None:
    """Refuse an agent that has not seen what its session holds now: it would write over that.

    ``seen`` is the fingerprint of what it read or wrote last.
    """
    if fingerprint_in(state, place) == seen:
        return
    if messages_of(_entry(state, place)) == encode_bytes_values(messages):
        return  # it was restored, or saved by hand
    raise HoldfastStorageError(
        f"session {place.session_id!r} is not as this agent knows it: another agent went on with "
        "it, or it was rolled back, since this one read it. Make the agent again "
        "(Agent(session_manager=…)), and it goes on from there; nothing was written"
    )


def check_decided(unknown: Iterable[Any]) -> None:
    """Refuse to leave calls of which nobody knows whether they took place, where that matters."""
    for each in unknown:
        if each.effect.is_unknown:
            raise UnknownEffectError(
                f"{each.effect} was begun and its end is not recorded: it may have taken place or "
                "not, so no other prompt is taken. Look, then decide: holdfast resolve "
                f"{each.effect.id[:8]} --done VALUE, --failed or --retry; and go on with the "
                "prompt that was cut off"
            )


def _entry(state: Any, place: Place) -> Any:
    return entry_in((state or {}).get("entries", {}), place)
