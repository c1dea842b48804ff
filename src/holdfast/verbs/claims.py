"""Claims: who works on an offer, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.errors import HandoffError
from holdfast.verbs import leases, stored_values


@dataclass(frozen=True, slots=True)
class Claim(leases.Lease):
    """A worker's right to an offer, until its lease ends."""

    worker: str
    session_id: str

    KIND = "claim"
    RENEWAL = "renewed/"

    @property
    def offer_id(self) -> str:
        """The offer, beside which it is noted."""
        return self.scope

    def value(self) -> dict[str, Any]:
        """Return what its notes tell."""
        return {"worker": self.worker, "session_id": self.session_id, "until": self.until}

    def lost(self) -> HandoffError:
        """Return what to tell who does not have it any more."""
        return HandoffError(
            self.offer_id,
            f"was taken by another when the lease of {self.worker} was over: nothing more is "
            "saved by this one; take another offer",
        )


_KINDS: dict[str, stored_values.Kind] = {
    "worker": stored_values.TEXT,
    "until": stored_values.MOMENT,
    "session_id": stored_values.TEXT,
}


def last_claim(what: str, noted: Iterable[tuple[str, Any]]) -> leases.LastLease | None:
    """Return the last claim that the notes beside an offer tell of, if there is one."""
    return leases.last_lease(Claim, what, noted, _KINDS, tuple(_KINDS))
