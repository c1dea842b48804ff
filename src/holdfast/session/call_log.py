"""The log of a session: every call up to its head, and what became of it later. It only grows.

Beside calls it holds marks: ``undone`` (a call that was compensated), ``left`` (one that a failed
attempt made), ``passed`` (a resumed program does not make again what comes before), ``turned``
(the run went on from another checkpoint, so that equal calls are other calls from here on) and
``branched`` (what closed volumes tell of was done before a fork). What is older is in closed
volumes, and is not here: only calls that are still open are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from holdfast.ids import new_id
from holdfast.runtime.steps import Plan
from holdfast.session.effects import Block, Effect
from holdfast.session.folding import Calls, Entry
from holdfast.session.older import Older, Standing
from holdfast.session.volumes import Shelf
from holdfast.verbs import stored_values

_NOTHING = Older()


class CallLog:
    """Entries in order, and where to find calls that must not be made twice."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        kept = stored_values.items("the record of calls", entries)
        self.older = _NOTHING
        if kept and isinstance(kept[0], (list, tuple)):
            self.older, kept = Older.of(kept[0]), kept[1:]
        at = self.older.standing
        self._first: list[Any] = [self.older.as_entry()] if self.older else []
        self.recent: list[Entry] = []
        """The entries that are in no volume."""
        self.known = Calls()
        """The calls that are open, and those that the recent entries tell of."""
        self._by_key: dict[tuple[str, str], list[str]] = {}
        self._by_digest: dict[str, list[str]] = {}
        self.reused: set[str] = set()
        """Calls whose output was given to another one, as far as the recent entries tell."""
        self._tokens = dict(at.tokens)
        self._token = at.token
        self._since: dict[str, None] = {}
        self._jumped_in = set(at.jumped_in)
        self.alive = 0
        """How many calls there are, in volumes too, that were not abandoned."""
        for entry in at.opened:
            self._take(entry)
        self.alive = at.alive
        self.extend(kept)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Add entries; what is there is never changed."""
        for entry in entries:
            self._take(entry)
            self.recent.append(entry)

    def _take(self, entry: Entry) -> None:
        effect, known = self.known.take(entry)
        if effect is not None:
            self._add(effect, known)
        elif self.known.left and not self.older:
            raise stored_values.damaged("a recorded mark", "is of a call that was not recorded")
        self._mark(entry)

    def _add(self, effect: Effect, known: Effect | None) -> None:
        was_alive = known is not None and not known.abandoned
        self.alive += (not effect.abandoned) - was_alive
        if not effect.abandoned:
            self._since[effect.id] = None
        if known is not None:
            return
        if effect.key is not None:
            self._by_key.setdefault((effect.tool, effect.key), []).append(effect.id)
        if effect.is_final:
            self._by_digest.setdefault(effect.digest, []).append(effect.id)
        if effect.reused is not None:
            self.reused.add(effect.reused)

    def _mark(self, entry: Entry) -> None:
        if "turned" in entry:
            self._token, self._tokens = entry["turned"], {}
            self._jumped_in |= {(task, attempt) for task, attempt in entry["in"]}
        elif "passed" in entry:
            self._pass(entry)
        elif "branched" in entry:
            at = replace(self.older.standing, branched=entry["branched"])
            self.older = replace(self.older, standing=at)

    def _pass(self, entry: Entry) -> None:
        if "task" not in entry:
            self._token, self._tokens = entry["passed"], {}
            self._since, self._jumped_in = {}, set()
            return
        task, effects = entry["task"], self.known.effects
        self._tokens[task] = entry["passed"]
        self._since = {i: None for i in self._since if effects[i].task != task}
        self._jumped_in = {block for block in self._jumped_in if block[0] != task}

    @property
    def entries(self) -> list[Entry]:
        """All that a checkpoint keeps of it."""
        return [*self._first, *self.recent]

    @property
    def effects(self) -> list[Effect]:
        """The calls that are here, as they stand now, in the order in which they were begun."""
        return list(self.known.effects.values())

    def get(self, effect_id: str) -> Effect | None:
        """Return the call of that id, if it is here."""
        return self.known.effects.get(effect_id)

    def with_key(self, tool: str, key: str) -> list[Effect]:
        """Return the calls of a tool under a key that are here."""
        return [self.known.effects[each] for each in self._by_key.get((tool, key), ())]

    def final(self, digest: str) -> list[Effect]:
        """Return the calls of a digest that are here and cannot be undone."""
        return [self.known.effects[each] for each in self._by_digest.get(digest, ())]

    def token(self, task: str | None) -> str:
        """Return what tells calls of a task apart from equal ones made before its last mark."""
        return self._tokens.get(task, self._token)

    def open_calls(self, is_open: Callable[[Block], bool]) -> list[Effect]:
        """Return calls that a resumed program makes again: those of its blocks, since their mark.

        A block that was closed is never open again, so its calls are not looked at twice.
        """
        effects = self.known.effects
        self._since = {i: None for i in self._since if is_open(effects[i].block)}
        return [effects[i] for i in self._since]

    def jumped_in(self) -> set[Block]:
        """Return the blocks in whose middle the run went on from another checkpoint."""
        return set(self._jumped_in)

    # Volumes

    def is_long(self, shelf: Shelf) -> bool:
        """Return whether so many entries are here that the oldest should go into a volume."""
        return len(self.recent) >= 2 * shelf.length

    def closed(
        self, shelf: Shelf, is_open: Callable[[Block], bool], into: dict[bytes, bytes]
    ) -> Plan[CallLog]:
        """Return the same with its oldest entries in volumes, whose chunks come ``into`` others."""
        count = (len(self.recent) // shelf.length - 1) * shelf.length
        closed, recent = self.recent[:count], self.recent[count:]
        before = CallLog(self._first)
        before.extend(closed)
        standing = Standing(
            tuple(call.as_dict() for call in before.open_calls(is_open)),
            before._token,
            before._tokens,
            frozenset(before._jumped_in),
            before.alive,
            before.older.standing.branched,
        )
        older = yield from self.older.with_entries(shelf, closed, before.known, standing, into)
        return CallLog([older.as_entry(), *recent])  # type: ignore[list-item]

    def linked(self) -> dict[bytes, bool]:
        """Return the chunks that it links to, each with whether it refers to more."""
        return self.older.linked()


def resume_point(*task: str | None) -> Entry:
    """Return a mark: a resumed program makes nothing again from before it, in a task or at all."""
    return {"passed": new_id(), **({"task": task[0]} if task else {})}


def jump(blocks: Iterable[Block]) -> Entry:
    """Return a mark: the run goes on from another checkpoint, in the middle of these blocks."""
    return {"turned": new_id(), "in": [list(block) for block in blocks]}
