"""Which offers to an agent may be open, found without reading those that are settled.

An offer is announced on the channel of its target, or else entered under that, in the transaction
that makes it; one that is imported, only once somebody has begun to leave marks. Where a mark says
up to where all was looked through, only what it left open and what was entered since is read.
Without one, the store is asked for all that was ever offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from holdfast.errors import InvalidArgumentError
from holdfast.ids import new_id
from holdfast.model import CheckpointInfo
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Fence, Query
from holdfast.stores.capabilities import ListsTargets
from holdfast.verbs import events, notes, open_marks, stored_values
from holdfast.verbs.open_marks import Mark

_ENTERED = "/offers/"
_SEVERAL = 32
"""Of more agents without a mark than this, what was offered is asked for in one question."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Offers to an agent of which some may be settled."""

    agent_id: str
    infos: list[CheckpointInfo]
    """The oldest first; also those that have expired."""
    places: dict[str, int]
    """How far what was entered has been read."""
    gone: int
    """How many more were entered, and are there no more or are no offers to this agent."""
    is_first: bool = False
    """Whether there was no mark."""

    @property
    def announced(self) -> int:
        """The place up to which the agent's channel was read."""
        return self.places.get(_channel_scope(self.agent_id) or "", 0)

    def is_worth_a_mark(self, unsettled: int) -> bool:
        """Return whether much of what was looked at is settled."""
        settled = self.gone + len(self.infos) - unsettled
        return open_marks.is_worth_it(settled, unsettled)

    def mark(self, engine: Engine, unsettled: list[str]) -> Plan[None]:
        """Leave a mark."""
        mark = Mark(self.places, dict.fromkeys(unsettled, 0))
        yield from open_marks.write(engine, _own_scope(self.agent_id), mark)


def channel(agent_id: str) -> str:
    """Return where offers to an agent are announced."""
    return f"handoffs:{agent_id}"


def _own_scope(agent_id: str) -> str:
    # A name may be as long as the name of a scope.
    return _ENTERED + sha256(agent_id.encode("utf-8", "surrogatepass")).hexdigest()


def _channel_scope(agent_id: str) -> str | None:
    try:
        return events.scope(channel(agent_id))
    except InvalidArgumentError:  # too long for the name of a channel
        return None


def _scopes(agent_id: str) -> list[str]:
    return [*filter(None, [_channel_scope(agent_id)]), _own_scope(agent_id)]


def enter(engine: Engine, batch: notes.NoteBatch, info: CheckpointInfo) -> None:
    """Enter a record that is an offer, and is not announced, in what is written with it."""
    if info.handoff_target is not None:
        value = {"checkpoint_id": info.checkpoint_id}
        batch.add(engine, _own_scope(info.handoff_target), new_id(), value, info.expires_at)


def needs_no_entry(info: CheckpointInfo) -> Fence | None:
    """Return what an offer may be written unless it is there, without an entry."""
    target = info.handoff_target
    return None if target is None else open_marks.beginning(_own_scope(target))


def begin(engine: Engine, agent_id: str) -> Plan[None]:
    """See that from now on every offer to an agent has an entry: all is to be looked through."""
    yield from open_marks.begin(engine, _own_scope(agent_id))


def candidates(engine: Engine, agent_id: str) -> Plan[Candidates]:
    """Return all offers to an agent that are open, and some that are not."""
    name = _own_scope(agent_id)
    mark = (yield from open_marks.last(engine, [name])).get(name)
    if mark is not None:
        return (yield from _since(engine, agent_id, mark))
    places = yield from open_marks.ends(engine, _scopes(agent_id))
    return Candidates(agent_id, (yield from steps.query(_ever(agent_id))), places, 0, True)


def candidates_of_all(engine: Engine) -> Plan[list[CheckpointInfo]]:
    """Return all offers to anybody that are open, and some that are not."""
    infos: list[CheckpointInfo] | None = None
    if engine.can(ListsTargets):
        agents = set((yield from steps.targets()))
    else:
        infos = yield from steps.query(_ever(None))
        agents = {str(info.handoff_target) for info in infos}
    names = {_own_scope(agent): agent for agent in agents}
    marks = yield from open_marks.last(engine, names)
    found: list[CheckpointInfo] = []
    for name, mark in marks.items():
        found += (yield from _since(engine, names[name], mark)).infos
    unmarked = agents - {names[name] for name in marks}
    if infos is None and len(unmarked) > _SEVERAL:
        infos = yield from steps.query(_ever(None))
    if infos is not None:
        return found + [info for info in infos if info.handoff_target in unmarked]
    for agent in sorted(unmarked):
        found += yield from steps.query(_ever(agent))
    return found


def _ever(agent_id: str | None) -> Query:
    return Query(handoff_target=agent_id, is_offered=True, oldest_first=True, include_expired=True)


def _since(engine: Engine, agent_id: str, mark: Mark) -> Plan[Candidates]:
    """Return what a mark left open, and what was entered since."""
    places, ids = dict(mark.places), dict(mark.open)
    for scope in _scopes(agent_id):
        after = places.get(scope, 0)
        for note, value in (yield from notes.read(engine, [scope], after, on_unknown="raw")):
            places[scope] = note.seq
            said = stored_values.fields_of(f"an entry of {scope!r}", value, _KINDS, tuple(_KINDS))
            if said["checkpoint_id"] is not None:
                ids[said["checkpoint_id"]] = 0
    found: list[CheckpointInfo] = []
    if ids:
        asked = Query(ids=list(ids), oldest_first=True, include_expired=True)
        found = [i for i in (yield from steps.query(asked)) if i.handoff_target == agent_id]
    return Candidates(agent_id, found, places, len(ids) - len(found))


_KINDS: dict[str, stored_values.Kind] = {"checkpoint_id": stored_values.MAYBE_TEXT}
