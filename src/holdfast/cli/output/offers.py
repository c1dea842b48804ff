"""Offers of checkpoints, as commands show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.core.json_form import to_json
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.verbs.handoff import Offer


def standing_of(offer: Offer) -> str:
    if offer.outcome is not None:
        return offer.outcome + (f": {clean(offer.reason)}" if offer.reason else "")
    return "open" if offer.is_open() else f"taken by {clean(offer.worker or 'a worker')}"


def offer_json(offer: Offer) -> dict[str, Any]:
    times = ("offered_at", "expires_at", "claimed_until")
    data = {name: getattr(offer, name) for name in offer.__dataclass_fields__}
    data["schema"] = None if offer.schema is None else to_json(offer.schema)
    for name in times:
        data[name] = None if data[name] is None else data[name].isoformat()
    return {**data, "open": offer.is_open()}
