"""What a checkpoint holds of calls that are in closed volumes of its log.

It stands as the first entry of the log, as a list: who does not know of it must not take what
follows for all. It has what a program that goes on needs at once: open calls, tokens, how many
calls there are. All else is looked up in the volumes, by an index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.runtime.steps import Plan
from holdfast.session.effects import Block, Effect
from holdfast.session.folding import Calls, Entry, block_of
from holdfast.session.terms import Index, Term
from holdfast.session.volumes import Shelf, Volumes
from holdfast.verbs import stored_values

OLDER = "older"
_WHAT = "the record of older calls"


@dataclass(frozen=True)
class Standing:
    """Where a log stands after an entry: what is needed to go on from there."""

    opened: tuple[Entry, ...] = ()
    """Calls that a resumed program may make again."""
    token: str = ""
    tokens: Mapping[str | None, str] = field(default_factory=dict)
    jumped_in: frozenset[Block] = frozenset()
    alive: int = 0
    """How many calls there are that were not abandoned."""
    branched: int = 0
    """How many volumes are of before a fork: what they did that lasts is not done again."""


@dataclass(frozen=True, eq=False)
class Older:
    """The closed volumes of a log, and where it stood at their end."""

    volumes: Volumes = field(default_factory=Volumes)
    index: Index = field(default_factory=Index)
    standing: Standing = field(default_factory=Standing)

    def __bool__(self) -> bool:
        return bool(self.volumes.levels)

    def as_entry(self) -> list[Any]:
        """Return it as it is kept."""
        at = self.standing
        return [
            OLDER,
            {
                "volumes": self.volumes.as_value(),
                "index": self.index.as_value(),
                "open": list(at.opened),
                "token": at.token,
                "tokens": [[task, token] for task, token in at.tokens.items()],
                "in": [list(block) for block in sorted(at.jumped_in, key=repr)],
                "alive": at.alive,
                "branched": at.branched,
            },
        ]

    @classmethod
    def of(cls, entry: Any) -> Older:
        """Return it from what was kept."""
        match entry:
            case [str(kind), dict(value)] if kind == OLDER:
                found = stored_values.fields_of(_WHAT, value, _KINDS, tuple(_KINDS))
            case _:
                raise stored_values.damaged("the record of calls", _NEITHER)
        tokens = dict(map(_token, found["tokens"]))
        blocks = frozenset(map(block_of, found["in"]))
        at = Standing(
            tuple(found["open"]), found["token"], tokens, blocks, found["alive"], found["branched"]
        )
        return cls(Volumes.of(found["volumes"]), Index.of(found["index"]), at)

    def with_entries(
        self,
        shelf: Shelf,
        entries: Sequence[Entry],
        known: Calls,
        standing: Standing,
        into: dict[bytes, bytes],
    ) -> Plan[Older]:
        """Return the same and some more entries in volumes; what is written comes ``into``.

        ``known`` are calls of which these entries may tell.
        """
        left = {entry["left"] for entry in entries if _is_left(entry)}
        elsewhere = yield from self.calls(shelf, left - known.effects.keys())
        effects = {**elsewhere.effects, **known.effects}
        volumes, terms = self.volumes, set[tuple[Term, int]]()
        before = number = volumes.count
        for start in range(0, len(entries), shelf.length):
            part = entries[start : start + shelf.length]
            volumes = volumes.with_one(shelf.volume(part, into), into)
            terms |= {(term, number) for entry in part for term in _terms(entry, effects)}
            number += 1
        index = yield from self.index.with_terms(shelf, terms, number - before, into)
        return Older(volumes, index, standing)

    def linked(self) -> dict[bytes, bool]:
        """Return the chunks that it links to, each with whether it refers to more."""
        links = [link for level in self.volumes.levels for link in level]
        return {link.name: True for link in (*links, *(run for _, run in self.index.runs))}

    # Looking things up

    def calls(self, shelf: Shelf, ids: Collection[str]) -> Plan[Calls]:
        """Return what the volumes tell of some calls."""
        wanted = set(ids)
        volumes = yield from self._telling(shelf, [_of_id(each) for each in wanted])
        found = Calls()
        for number, entries in volumes.items():
            found.extend(each for each in entries if named_in(each) in wanted)
            if number < self.standing.branched:
                found.leave_final()
        return found

    def entries(self, shelf: Shelf) -> Plan[list[Entry]]:
        """Return all entries of the volumes, the oldest first."""
        return (yield from shelf.entries((yield from self.volumes.links(shelf))))

    def with_key(self, shelf: Shelf, tool: str, key: str) -> Plan[Calls]:
        """Return the calls of a tool under a key."""
        volumes = yield from self._telling(shelf, [_of_key(tool, key)])
        return (
            yield from self._matching(
                shelf, volumes, lambda call: (call.tool, call.key) == (tool, key)
            )
        )

    def final(self, shelf: Shelf, digest: str, also: Collection[str]) -> Plan[Calls]:
        """Return equal calls that cannot be undone, if any of them may have been left.

        ``also`` are calls that newer entries say were left.
        """
        terms = [_left(digest), *([_final(digest)] if self.standing.branched else [])]
        volumes = yield from self._telling(shelf, terms)
        by_digest = yield from self._matching(
            shelf, volumes, lambda call: call.is_final and call.digest == digest
        )
        marked = {each["left"] for part in volumes.values() for each in part if _is_left(each)}
        other = {*marked, *also} - by_digest.effects.keys()
        if not other:
            return by_digest
        found = yield from self.calls(shelf, {*by_digest.effects, *other})
        return found.only(lambda call: call.is_final and call.digest == digest)

    def reusing(self, shelf: Shelf, ids: Collection[str]) -> Plan[set[str]]:
        """Return those of some calls whose output was given to another one."""
        wanted = set(ids)
        volumes = yield from self._telling(shelf, [_reused(each) for each in wanted])
        said = {each.get("reused") for part in volumes.values() for each in part if "id" in each}
        return {each for each in wanted if each in said}

    def _matching(
        self, shelf: Shelf, volumes: Mapping[int, Sequence[Entry]], fits: Callable[[Effect], bool]
    ) -> Plan[Calls]:
        """Return the calls in volumes that fit, as all volumes tell of them."""
        calls = (Effect.from_dict(e) for part in volumes.values() for e in part if "id" in e)
        ids = {call.id for call in calls if fits(call)}
        return (yield from self.calls(shelf, ids)) if ids else Calls()

    def _telling(self, shelf: Shelf, terms: Collection[Term]) -> Plan[dict[int, list[Entry]]]:
        """Return the volumes that may tell of any of some terms, the oldest first."""
        if not terms:
            return {}
        found = yield from self.index.find(shelf, terms)
        numbers = sorted(set().union(*found.values()))
        return (yield from self.volumes.numbered(shelf, numbers))


_KINDS: dict[str, stored_values.Kind] = {
    "volumes": stored_values.LIST,
    "index": stored_values.LIST,
    "open": stored_values.LIST,
    "token": stored_values.TEXT,
    "tokens": stored_values.LIST,
    "in": stored_values.LIST,
    "alive": stored_values.NUMBER,
    "branched": stored_values.NUMBER,
}
_NEITHER = "holds what is neither a call nor a mark"


def _token(value: Any) -> tuple[str | None, str]:
    match value:
        case [str() | None as task, str() as token]:
            return task, token
    raise stored_values.damaged(_WHAT, "has something else as a token")


def _terms(entry: Entry, known: Mapping[str, Effect]) -> Iterator[Term]:
    """Yield what an entry is found by."""
    if "id" in entry:
        effect = Effect.from_dict(entry)
        yield _of_id(effect.id)
        if effect.key is not None:
            yield _of_key(effect.tool, effect.key)
        if effect.is_final:
            yield _final(effect.digest)
            if effect.abandoned or effect.left:
                yield _left(effect.digest)
        if effect.reused is not None:
            yield _reused(effect.reused)
        return
    marked = named_in(entry)
    if marked is not None:
        yield _of_id(marked)
        if _is_left(entry) and marked in known:
            yield _left(known[marked].digest)


def named_in(entry: Entry) -> str | None:
    """Return the id of the call that an entry is or marks."""
    return entry.get("id") or entry.get("undone") or entry.get("left")


def _is_left(entry: Entry) -> bool:
    return "left" in entry and "id" not in entry


def _of_id(effect_id: str) -> Term:
    return "id", effect_id


def _of_key(tool: str, key: str) -> Term:
    return "key", tool, key


def _final(digest: str) -> Term:
    return "final", digest


def _left(digest: str) -> Term:
    return "left", digest


def _reused(effect_id: str) -> Term:
    return "reused", effect_id
