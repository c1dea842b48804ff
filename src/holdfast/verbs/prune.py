"""Which checkpoints to keep: the policy, and the verb that removes the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.errors import InvalidArgumentError
from holdfast.model import CheckpointInfo, checked_name
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query


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


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune removed, or would remove."""

    removed: list[CheckpointInfo]
    kept: int
    dry_run: bool

    def __len__(self) -> int:
        return len(self.removed)

    def __str__(self) -> str:
        would = "would remove" if self.dry_run else "removed"
        names = ", ".join(info.checkpoint_id for info in self.removed[:_FEW])
        more = f" and {len(self.removed) - _FEW:,} more" if len(self.removed) > _FEW else ""
        size = sum(info.size for info in self.removed)
        told = f" of {size:,} bytes before sharing ({names}{more})" if self.removed else ""
        return f"{would} {len(self.removed):,} checkpoints{told}, kept {self.kept:,}"

    def __repr__(self) -> str:
        return f"<Pruned: {self}>"


def prune(engine: Engine, policy: Keep, dry_run: bool) -> Plan[Pruned]:
    """Remove what the policy does not keep; chunks that are no longer needed wait for gc."""
    if not isinstance(policy, Keep):
        raise InvalidArgumentError(f"prune() takes a Keep policy, not {type(policy).__name__}")
    infos = yield from steps.query(Query(agent_id=policy.agent_id, session_id=policy.session_id))
    outside = infos
    if policy.agent_id is not None or policy.session_id is not None:
        outside = yield from steps.query(Query())
    offers = [info.checkpoint_id for info in infos if info.handoff_target is not None]
    noted = (yield from steps.notes(offers)) if offers else []
    settled = {note.scope for note in noted if note.key == "settled"}
    kept = chosen(infos, outside, policy, datetime.now(UTC), settled)
    removed = [info for info in infos if info.checkpoint_id not in kept]
    if removed and not dry_run:
        ids = [info.checkpoint_id for info in removed]
        yield from steps.delete(ids)
        engine.forget(*ids)
    return Pruned(removed, len(infos) - len(removed), dry_run)


def chosen(
    infos: list[CheckpointInfo],
    everything: list[CheckpointInfo],
    policy: Keep,
    now: datetime,
    settled: Collection[str] = (),
) -> set[str]:
    """Ids to keep of these (newest first): what the policy says and what that hangs on.

    A checkpoint is whole unless it is tagged ``builds_on``, so its ancestors in the same session
    may go; where it is, those stay that it needs. The one a kept session was forked from stays, and
    so does a handoff that is not settled, with the checkpoint it offers.
    """
    ranks: dict[tuple[str, str], int] = {}
    kept: set[str] = set()
    for info in infos:
        session = _session(info)
        rank = ranks.get(session, 0)
        ranks[session] = rank + 1
        if info.handoff_target is not None and info.checkpoint_id not in settled:
            kept.add(info.checkpoint_id)
            if info.parent_id is not None:
                kept.add(info.parent_id)
        elif policy.keeps(info, rank, now):
            kept.add(info.checkpoint_id)
    by_id = {info.checkpoint_id: info for info in everything}
    considered = {info.checkpoint_id for info in infos}
    stay = [i for i in everything if i.checkpoint_id in kept or i.checkpoint_id not in considered]
    while stay:
        info = stay.pop()
        parent = by_id.get(info.parent_id or "")
        # An ancestor that stays has to be whole as well, so one leads to the next.
        if parent is not None and (_parts(info) or _session(parent) != _session(info)):
            if parent.checkpoint_id in considered and parent.checkpoint_id not in kept:
                stay.append(parent)
            kept.add(parent.checkpoint_id)
    return kept


def _parts(info: CheckpointInfo) -> set[str]:
    named = info.metadata.get("builds_on")
    return {name for name in named if isinstance(name, str)} if type(named) is list else set()


def _session(info: CheckpointInfo) -> tuple[str, str]:
    return info.agent_id, info.session_id
