"""Claims: who works on an offer, and until when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from holdfast.errors import HandoffError
from holdfast.ids import new_id
from holdfast.stores.base import Fence

if TYPE_CHECKING:
    from holdfast.runtime.engine import Engine
    from holdfast.verbs.notes import NoteBatch


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to an offer, until its lease ends."""

    offer_id: str
    attempt: int
    worker: str
    session_id: str
    lease: timedelta
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def until(self) -> datetime:
        return self.made_at + self.lease

    @property
    def key(self) -> str:
        """The key of its note, which an offer has once."""
        return f"claim/{self.attempt}"

    @property
    def fence(self) -> Fence:
        """The note that another writes who takes the offer when the lease of this is over."""
        return self.offer_id, f"claim/{self.attempt + 1}"

    def lost(self) -> HandoffError:
        """What to tell who does not have it any more."""
        return HandoffError(
            self.offer_id,
            f"was taken by another when the lease of {self.worker} was over: nothing more is "
            "saved by this one; take another offer",
        )

    def note(self, engine: Engine, written: NoteBatch) -> None:
        """Add it to what is to be written."""
        self._add(engine, written, self.key)

    def renewed(self, engine: Engine, written: NoteBatch) -> Claim:
        """The same claim with a new lease, which is added to what is to be written."""
        again = replace(self, made_at=datetime.now(UTC))
        again._add(engine, written, f"{self.key}/renewed/{new_id()}")
        return again

    def is_half_over(self) -> bool:
        """Whether it is time to renew it."""
        return datetime.now(UTC) >= self.made_at + self.lease / 2

    def _add(self, engine: Engine, written: NoteBatch, key: str) -> None:
        value = {"worker": self.worker, "session_id": self.session_id, "until": self.until}
        written.add(engine, self.offer_id, key, value)
