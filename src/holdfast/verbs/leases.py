"""Leases: the right to work on something, for a time, that can be lost to one other at most.

A lease is a numbered note, ``lease/1``, ``lease/2``, …, of which a scope has each once: of two who
want the same number one wins. It is renewed by more notes under its number, each instead of the one
before. Whatever its holder writes is written unless the next number is there, in the same
transaction: one who was away for too long, and lost it to another, can write nothing that counts,
whatever it still believes. So the first note of each number stays, as nobody knows who is away;
what else was noted of leases goes once others have followed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Self, TypeVar

from holdfast.errors import FencedError, HoldfastError
from holdfast.ids import new_id
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Fence
from holdfast.verbs import stored_values
from holdfast.verbs.notes import NoteBatch

RELEASED = "released"
"""What follows the number in the key of the note with which a lease is given back."""
_REMEMBERED = 2
"""How many leases before the last one are still told of."""


@dataclass(frozen=True, slots=True)
class Lease(ABC):
    """A lease that is held; its kinds say what their notes are called and tell."""

    scope: str
    number: int
    seconds: float
    until: datetime
    renewal: str | None = field(default=None, kw_only=True, compare=False)
    """The key of the note with which it was renewed last."""

    KIND: ClassVar[str]
    """How the keys of its notes begin."""
    RENEWAL: ClassVar[str] = ""
    """What comes before the id in the key of a renewal."""
    RENEWALS_EXPIRE: ClassVar[bool] = False

    @abstractmethod
    def value(self) -> dict[str, Any]:
        """Return what its notes tell: who holds it, and until when."""

    @abstractmethod
    def lost(self) -> HoldfastError:
        """Return what to tell who does not hold it any more."""

    @property
    def key(self) -> str:
        """The key of its first note, which its scope has once."""
        return f"{self.KIND}/{self.number}"

    @property
    def fence(self) -> Fence:
        """The note that whoever takes over writes first."""
        return self.scope, f"{self.KIND}/{self.number + 1}"

    @property
    def is_half_over(self) -> bool:
        """Whether it is time to renew it."""
        return datetime.now(UTC) >= self.until - timedelta(seconds=self.seconds / 2)

    def note(self, engine: Engine, batch: NoteBatch) -> None:
        """Add its first note to what is to be written."""
        batch.add(engine, self.scope, self.key, self.value())

    def renewed(self, engine: Engine, batch: NoteBatch) -> Self:
        """Return the same lease for another while, whose note is added to what is to be written."""
        key = f"{self.key}/{self.RENEWAL}{new_id()}"
        again = replace(self, until=end_of(self.seconds), renewal=key)
        expires_at = again.until if self.RENEWALS_EXPIRE else None
        batch.add(engine, self.scope, key, again.value(), expires_at)
        self.replace_renewal(batch)
        return again

    def replace_renewal(self, batch: NoteBatch) -> None:
        """Have what is to be written take the place of the last renewal, if there was one."""
        if self.renewal is not None:
            batch.instead_of += ((self.scope, self.renewal),)


L = TypeVar("L", bound=Lease)


def end_of(seconds: float) -> datetime:
    """Return when a lease of so many seconds ends that begins now."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


def renew(engine: Engine, lease: L) -> Plan[L]:
    """Hold on to a lease; an error if another has it now."""
    batch = NoteBatch()
    again = lease.renewed(engine, batch)
    try:
        yield from batch.write(lease.fence, is_quiet=True)
    except FencedError:
        raise lease.lost() from None
    return again


@dataclass(frozen=True, slots=True)
class LastLease:
    """The last lease of a scope, as its notes tell."""

    number: int
    told: dict[str, Any]
    is_released: bool = False
    past: tuple[str, ...] = field(default=(), compare=False)
    """The keys of notes that tell of leases long past."""

    @property
    def until(self) -> datetime:
        """When it ends, unless it is renewed."""
        until: datetime = self.told["until"]
        return until

    @property
    def is_over(self) -> bool:
        """Whether nobody holds it by its own notes: it was given back, or its time is over."""
        return self.is_released or datetime.now(UTC) >= self.until


def last_lease(
    kind: type[Lease],
    what: str,
    noted: Iterable[tuple[str, Any]],
    kinds: Mapping[str, stored_values.Kind],
    needed: tuple[str, ...],
) -> LastLease | None:
    """Return the last lease that notes tell of, given as keys and values in their order.

    A renewal that comes too late, as another holds it by then, counts for nothing.
    """
    last: LastLease | None = None
    marks: list[tuple[int, str]] = []
    for key, value in noted:
        text, _, mark = key.removeprefix(f"{kind.KIND}/").partition("/")
        number = stored_values.number_in(what, text)
        told = stored_values.fields_of(what, value, kinds, needed)
        if mark:
            marks.append((number, key))
        if last is None or number > last.number:
            last = LastLease(number, told)
        elif number == last.number:
            # A renewal under way may be written after the lease was given back.
            is_released = last.is_released or mark == RELEASED
            last = LastLease(number, {**last.told, **told}, is_released)
    if last is None:
        return None
    past = tuple(key for number, key in marks if number <= last.number - _REMEMBERED)
    return replace(last, past=past)
