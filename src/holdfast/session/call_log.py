"""The log of a session: every call up to its head, and what became of it later. It only grows.

Beside calls it holds marks: ``undone`` (a call that was compensated), ``left`` (one that a failed
attempt made), ``passed`` (a resumed program does not make again what comes before) and ``turned``
(the run went on from another checkpoint, so that equal calls are other calls from here on).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.ids import new_id
from holdfast.session.effects import Block, Effect
from holdfast.verbs import stored_values

Entry = Mapping[str, Any]


class CallLog:
    """Entries in order, and where to find calls that must not be made twice."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries: list[Entry] = []
        self._effects: dict[str, Effect] = {}
        self._by_key: dict[tuple[str, str], list[str]] = {}
        self._by_digest: dict[str, list[str]] = {}
        self._reused: set[str] = set()
        self._tokens: dict[str | None, str] = {}
        self._token = ""
        self._since: dict[str, None] = {}
        self._jumped_in: set[Block] = set()
        self.extend(stored_values.items("the record of calls", entries))

    def extend(self, entries: Iterable[Entry]) -> None:
        """Add entries; what is there is never changed."""
        for entry in entries:
            effect = Effect.from_dict(entry) if "id" in _checked(entry) else None
            self.entries.append(entry)
            if effect is not None:
                self._add(effect)
            self._mark(entry)

    def _add(self, effect: Effect) -> None:
        known = effect.id in self._effects
        self._effects[effect.id] = effect
        if not effect.abandoned:
            self._since[effect.id] = None
        if known:
            return
        if effect.key is not None:
            self._by_key.setdefault((effect.tool, effect.key), []).append(effect.id)
        if effect.is_final:
            self._by_digest.setdefault(effect.digest, []).append(effect.id)
        if effect.reused is not None:
            self._reused.add(effect.reused)

    def _mark(self, entry: Entry) -> None:
        if "turned" in entry:
            self._token, self._tokens = entry["turned"], {}
            self._jumped_in |= {(task, attempt) for task, attempt in entry["in"]}
        elif "passed" in entry:
            self._pass(entry)
        elif "undone" in entry and (undone := self._effects.get(entry["undone"])) is not None:
            self._effects[undone.id] = replace(undone, compensated=True)
        elif "left" in entry and "id" not in entry:
            left = self._effects.get(entry["left"])
            if left is None:
                raise stored_values.damaged("a recorded mark", "is of a call that was not recorded")
            self._effects[left.id] = replace(left, left=True)

    def _pass(self, entry: Entry) -> None:
        if "task" not in entry:
            self._token, self._tokens = entry["passed"], {}
            self._since, self._jumped_in = {}, set()
            return
        task = entry["task"]
        self._tokens[task] = entry["passed"]
        self._since = {i: None for i in self._since if self._effects[i].task != task}
        self._jumped_in = {block for block in self._jumped_in if block[0] != task}

    @property
    def effects(self) -> list[Effect]:
        """All calls, as they stand now, in the order in which they were begun."""
        return list(self._effects.values())

    def get(self, effect_id: str) -> Effect | None:
        """Return the call of that id, if there is one."""
        return self._effects.get(effect_id)

    def with_key(self, tool: str, key: str) -> list[Effect]:
        """Return the calls of a tool under a key."""
        return [self._effects[each] for each in self._by_key.get((tool, key), ())]

    def known_by(self, tool: str, key: str) -> Effect | None:
        """Return the call that was made under that key, if it still holds."""
        for effect in self.with_key(tool, key):
            undone = effect.compensated or (effect.abandoned and not effect.lasts)
            if effect.status == "done" and not undone:
                return effect
        return None

    def left_standing(self, digest: str, is_reused: Callable[[str], bool]) -> Effect | None:
        """Return an equal call that cannot be undone, of a way or an attempt that was left.

        One whose end is unknown too: it may stand.
        """
        for effect_id in self._by_digest.get(digest, ()):
            effect = self._effects[effect_id]
            is_left = effect.left or effect.abandoned
            is_taken = effect_id in self._reused or is_reused(effect_id)
            if is_left and effect.status in ("done", "started") and not is_taken:
                return effect
        return None

    def token(self, task: str | None) -> str:
        """Return what tells calls of a task apart from equal ones made before its last mark."""
        return self._tokens.get(task, self._token)

    def open_calls(self, is_open: Callable[[Block], bool]) -> list[Effect]:
        """Return calls that a resumed program makes again: those of its blocks, since their mark.

        A block that was closed is never open again, so its calls are not looked at twice.
        """
        self._since = {i: None for i in self._since if is_open(self._effects[i].block)}
        return [self._effects[i] for i in self._since]

    def jumped_in(self) -> set[Block]:
        """Return the blocks in whose middle the run went on from another checkpoint."""
        return set(self._jumped_in)


_MARKS: dict[str, stored_values.Kind] = {
    "turned": stored_values.TEXT,
    "in": stored_values.LIST,
    "passed": stored_values.TEXT,
    "task": stored_values.MAYBE_TEXT,
    "undone": stored_values.TEXT,
    "left": stored_values.TEXT,
}


def _checked(entry: Any) -> Entry:
    """Return an entry of the log; a mark that lacks its fields is an error."""
    if not isinstance(entry, dict):
        raise stored_values.damaged(
            "the record of calls", "holds what is neither a call nor a mark"
        )
    if "id" not in entry:
        found = stored_values.fields_of(
            "a recorded mark", entry, _MARKS, ("in",) if "turned" in entry else ()
        )
        for block in found.get("in", ()):
            match block:
                case [str() | None, int()]:
                    pass
                case _:
                    raise stored_values.damaged("a recorded mark", "has something else as its in")
    return entry


def resume_point(*task: str | None) -> Entry:
    """Return a mark: a resumed program makes nothing again from before it, in a task or at all."""
    return {"passed": new_id(), **({"task": task[0]} if task else {})}


def jump(blocks: Iterable[Block]) -> Entry:
    """Return a mark: the run goes on from another checkpoint, in the middle of these blocks."""
    return {"turned": new_id(), "in": [list(block) for block in blocks]}
