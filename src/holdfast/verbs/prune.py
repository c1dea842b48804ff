"""Which checkpoints to keep: the policy, and the verb that removes the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from holdfast.errors import CheckpointIntegrityError, InvalidArgumentError
from holdfast.model import CheckpointInfo, checked_name
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query
from holdfast.stores.capabilities import ListsRoots
from holdfast.system import crash_points
from holdfast.verbs.candidates import Candidates, Removed
from holdfast.verbs.progress import Progress, Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """A policy: a checkpoint is kept if any rule says so; at least one rule must be given.

    >>> from holdfast import Keep
    >>> Keep(last=10, named=True).last
    10
    """

    last: int | None = None
    """The newest n of each session."""
    within: timedelta | float | None = None
    """Those younger than this (seconds, or a timedelta)."""
    named: bool | Collection[str] = False
    """Those with a step name, or with one of these."""
    tags: Mapping[str, Any] = field(default_factory=dict)
    """Those with all of these tags."""
    agent_id: str | None = None
    """Look at this agent only; all others are left alone."""
    session_id: str | None = None
    """Look at this session only."""

    def __post_init__(self) -> None:
        if self.last is None and self.within is None and not self.named and not self.tags:
            raise InvalidArgumentError(
                "a policy without a rule would remove everything: give last, within, named or tags"
            )
        for what in ("agent_id", "session_id"):
            if getattr(self, what) is not None:
                checked_name(what, getattr(self, what))
        if not isinstance(self.tags, Mapping):
            raise InvalidArgumentError(f"tags are a dict of names and values, not {self.tags!r}")
        last = self.last
        if last is not None and (type(last) is not int or last < 0):
            raise InvalidArgumentError(f"last is a number from 0, not {last!r}")
        if self._age() < timedelta(0):
            raise InvalidArgumentError(f"within is an age from 0, not {self.within!r}")

    def _age(self) -> timedelta:
        if isinstance(self.within, timedelta):
            return self.within
        try:
            return timedelta(seconds=self.within or 0)
        except (OverflowError, TypeError, ValueError):
            raise InvalidArgumentError(
                f"within is a timedelta or a number of seconds, not {self.within!r}"
            ) from None

    def _names(self, info: CheckpointInfo) -> bool:
        if isinstance(self.named, bool):
            return self.named and info.step_name is not None
        wanted = {self.named} if isinstance(self.named, str) else self.named
        return info.step_name in wanted

    def keeps(self, info: CheckpointInfo, rank: int, now: datetime) -> bool:
        """Return whether a checkpoint is kept that is the rank-th newest of its session, from 0."""
        return (
            (self.last is not None and rank < self.last)
            or (self.within is not None and now - info.created_at < self._age())
            or self._names(info)
            or (bool(self.tags) and Query(tags=self.tags).tagged(info))
        )


_FEW = 3
_PAGE = 2000


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune removed, or would remove."""

    removed: Sequence[CheckpointInfo]
    """The newest first; on disk, however many they are."""
    kept: int
    dry_run: bool

    @property
    def size(self) -> int:
        """Bytes of the states that were removed, each counted whole."""
        if isinstance(self.removed, Removed):
            return self.removed.size
        return sum(info.size for info in self.removed)

    def __len__(self) -> int:
        return len(self.removed)

    def __str__(self) -> str:
        would = "would remove" if self.dry_run else "removed"
        names = ", ".join(info.checkpoint_id for info in self.removed[:_FEW])
        more = f" and {len(self.removed) - _FEW:,} more" if len(self.removed) > _FEW else ""
        told = f" of {self.size:,} bytes before sharing ({names}{more})" if self.removed else ""
        return f"{would} {len(self.removed):,} checkpoints{told}, kept {self.kept:,}"

    def __repr__(self) -> str:
        return f"<Pruned: {self}>"


def prune(
    engine: Engine, policy: Keep, dry_run: bool, progress: Progress | None = None
) -> Plan[Pruned]:
    """Remove what the policy does not keep; chunks that are no longer needed wait for gc.

    A checkpoint is whole unless it is tagged ``builds_on``, so its ancestors in the same session
    may go; where it is, those stay that it needs. The one a kept session was forked from stays, and
    so does a handoff that is not settled, with the checkpoint it offers.
    """
    if not isinstance(policy, Keep):
        raise InvalidArgumentError(f"prune() takes a Keep policy, not {type(policy).__name__}")
    candidates, now = Candidates(), datetime.now(UTC)
    told = Told(progress)
    while page := (yield from _next_page(engine, policy, candidates)):
        offered = yield from _open_offers(page)
        keeps = partial(_keeps, policy, now)
        before = candidates.last()
        yield from steps.do(partial(candidates.add, page, offered, keeps))
        told.add(len(page))
        if len(page) < _PAGE or not engine.can(ListsRoots):
            break
        if candidates.last() == before:
            raise CheckpointIntegrityError(before, "it is listed again behind itself")
    if policy.agent_id is not None or policy.session_id is not None:
        for ids in candidates.going():
            children = yield from steps.query(Query(parent_ids=ids))
            yield from steps.do(partial(candidates.children, children))
    removed, kept = yield from steps.do(candidates.removed)
    crash_points.reach("upkeep:chosen")
    if not dry_run:
        for ids in removed.ids():
            yield from steps.delete(ids)
            engine.forget(*ids)
            told.add(len(ids))
    told.end()
    return Pruned(removed, kept, dry_run)


def _keeps(policy: Keep, now: datetime, info: CheckpointInfo, rank: int) -> bool:
    return policy.keeps(info, rank, now)


def _next_page(engine: Engine, policy: Keep, candidates: Candidates) -> Plan[list[CheckpointInfo]]:
    """Return the next checkpoints that a policy is about, the newest first.

    A store that would have to look through all it has for each page is asked for all at once.
    """
    about = Query(agent_id=policy.agent_id, session_id=policy.session_id)
    if not engine.can(ListsRoots):
        return (yield from steps.query(about))
    while (last := candidates.last()) is not None:
        page = yield from steps.query(replace(about, before=last, limit=_PAGE))
        if page or (yield from steps.query(Query(ids=[last], include_expired=True))):
            return page
        candidates.drop_last()  # gone meanwhile, and nothing comes behind what is gone
    return (yield from steps.query(replace(about, limit=_PAGE)))


def _open_offers(infos: list[CheckpointInfo]) -> Plan[set[str]]:
    """Return those of the checkpoints that are handed off, and neither taken nor withdrawn."""
    offers = {info.checkpoint_id for info in infos if info.handoff_target is not None}
    noted = (yield from steps.notes(offers)) if offers else []
    return offers - {note.scope for note in noted if note.key == "settled"}
