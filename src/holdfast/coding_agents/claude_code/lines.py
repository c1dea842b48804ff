"""The lines of a transcript of Claude Code, and what of them leads to a place. Pure.

Each line names the one before it, and an answer of the model is one line for each of its blocks. So
calls that are made side by side, and their results, stand beside the way back from the last line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.core.conversation.frameworks.claude_entries import (
    Entry,
    answer_of,
    calls_in,
    content_of,
    is_message,
    is_of,
    results_in,
)

TOLD = "toldByHook"
"""Marks an entry of ours: what a hook told before the program wrote it down."""
_OF_THE_MOMENT = frozenset(
    {
        *("queue-operation", "last-prompt", "file-history-snapshot", "file-history-delta"),
        *("api-request", "api-request-shape", "api-request-blob", "tools-used", "atis-latch"),
        *("cost-state", "progress"),
    }
)
"""Lines without a place in the conversation that a session which goes on elsewhere has no use for:
it was tried that the model is sent the same without them."""


def is_kept(entry: Any) -> bool:
    """Return whether a line is a part of the conversation, or may be."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        return False
    return isinstance(entry.get("uuid"), str) or entry["type"] not in _OF_THE_MOMENT


class Lines:
    """What a transcript holds, in the order in which it was written."""

    def __init__(self, entries: Sequence[Any], with_told: bool = False) -> None:
        every = [each for each in entries if is_kept(each) and (with_told or TOLD not in each)]
        marked = [each for each in every if "isSidechain" in each]
        if not all(each["isSidechain"] for each in marked):  # in one file with their parent, once
            every = [each for each in every if not each.get("isSidechain")]
        self.entries: list[Entry] = every
        self._places: dict[str, int] = {}
        for i, each in enumerate(every):
            if isinstance(each.get("uuid"), str):
                self._places.setdefault(each["uuid"], i)
        self._linked = sorted(self._places.values())

    @property
    def last(self) -> int | None:
        """Where the last line is that others can follow."""
        return self._linked[-1] if self._linked else None

    def place(self, uuid: Any) -> int | None:
        """Return where a line is."""
        return self._places.get(uuid) if isinstance(uuid, str) else None

    def result(self, call_id: str) -> int | None:
        """Return where the result of a call is."""
        return self._first(i for i in self._linked if call_id in results_in(self.entries[i]))

    def call(self, call_id: str) -> int | None:
        """Return where a call is asked for."""
        return self._first(i for i in self._linked if call_id in calls_in(self.entries[i]))

    def prompt(self, prompt_id: str) -> int | None:
        """Return where a prompt begins: what the program says before it belongs to it."""
        return self._first(
            i
            for i in self._linked
            if self.entries[i].get("promptId") == prompt_id
            and self.entries[i]["type"] == "user"
            and not results_in(self.entries[i])
        )

    @staticmethod
    def _first(places: Iterable[int]) -> int | None:
        return next(iter(places), None)

    def before(self, i: int) -> int | None:
        """Return where the line is that a line follows; None for the first.

        Where that one is missing, what was written before is what came before.
        """
        parent = self.entries[i].get("parentUuid")
        if parent is None:
            return None
        found = self.place(parent)
        if found is not None and found < i:
            return found
        at = bisect_left(self._linked, i)
        return self._linked[at - 1] if at else None

    def way(self, leaf: int | None) -> list[int]:
        """Return the places from a line back to the first that leads to it."""
        found: list[int] = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.before(leaf)
        return found

    def said_last(self, leaf: int | None) -> int | None:
        """Return where the last message is on the way to a line."""
        return self._first(i for i in self.way(leaf) if is_message(self.entries[i]))

    def ends_turn(self, i: int) -> bool:
        """Return whether the model says something there and asks for nothing more."""
        entry, answer = self.entries[i], answer_of(self.entries[i])
        if entry["type"] != "assistant" or not is_message(entry) or not text_of(entry):
            return False
        return not any(
            calls_in(each)
            for each in self.entries
            if each is entry or (answer is not None and answer_of(each) == answer)
        )

    def last_of_answer(self, i: int) -> int:
        """Return where the last block is of the answer of which a line is one."""
        answer = answer_of(self.entries[i])
        if answer is None:
            return i
        return max(j for j in (i, *self._linked) if answer_of(self.entries[j]) == answer)

    def up_to(self, leaf: int | None, end: int) -> list[Any]:
        """Return what leads to a line, with what was written beside it until ``end``.

        Calls without a result by then are left out: in the place to go on from nobody waits for
        them. What stands before a compaction stays as it is, for the program takes from it what it
        wants. Nothing, if nothing was said.
        """
        way = self.way(leaf)
        start = max((i for i in way if _is_compaction(self.entries[i])), default=0)
        kept = self._with_sides({i for i in way if i >= start}, start, end)
        settled = _settled([(i, self.entries[i]) for i in sorted(kept)])
        places = {*range(start), *settled}
        found: list[Any] = []
        for i, entry in enumerate(self.entries[: end + 1]):
            if i in settled:
                found.append(_plain(self._linked_to(i, settled[i], places)))
            elif i < start or not isinstance(entry.get("uuid"), str):
                found.append(_plain(entry))
        return found if any(map(is_message, found)) else []

    def _with_sides(self, way: set[int], start: int, end: int) -> set[int]:
        """Return places with those of the other blocks of the same answers, and of all results."""
        answers = {answer_of(self.entries[i]) for i in way if self._is_answer(i)} - {None}
        within = [i for i in self._linked if start <= i <= end]
        beside = {i for i in within if self._is_answer(i) and answer_of(self.entries[i]) in answers}
        called = {call for i in way | beside for call in calls_in(self.entries[i])}
        return way | beside | {i for i in within if called & set(results_in(self.entries[i]))}

    def _is_answer(self, i: int) -> bool:
        return bool(self.entries[i]["type"] == "assistant")

    def _linked_to(self, i: int, entry: Entry, kept: set[int]) -> Entry:
        """Return an entry that follows the nearest one before it that is kept."""
        at = self.before(i)
        while at is not None and at not in kept:
            at = self.before(at)
        if at is None:
            earlier = [each for each in self._linked if each < i and each in kept]
            at = earlier[-1] if earlier and not _is_compaction(entry) else None
        parent = None if at is None else self.entries[at]["uuid"]
        return entry if entry.get("parentUuid") == parent else {**entry, "parentUuid": parent}


def text_of(entry: Entry) -> str:
    """Return what an entry says in words."""
    texts = [each.get("text") for each in content_of(entry) if is_of(each, "text")]
    return "\n".join(each for each in texts if isinstance(each, str))


def _is_compaction(entry: Entry) -> bool:
    return entry["type"] == "system" and entry.get("subtype") == "compact_boundary"


def _plain(entry: Entry) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != TOLD}


def _settled(entries: Sequence[tuple[int, Entry]]) -> dict[int, Entry]:
    """Return entries in which every call has one result behind it, and every result its call."""
    asked: set[str] = set()
    answered: set[str] = set()
    for _, entry in entries:
        answered.update(each for each in results_in(entry) if each in asked)
        asked.update(calls_in(entry))
    left = {"tool_use": set(answered), "tool_result": set(answered)}
    found: dict[int, Entry] = {}
    for i, entry in entries:
        content = content_of(entry)
        kept = [each for each in content if _is_wanted(each, left)]
        if len(kept) == len(content):
            found[i] = entry
        elif kept:
            found[i] = {**entry, "message": {**entry["message"], "content": kept}}
    return found


_IDS = {"tool_use": "id", "tool_result": "tool_use_id"}


def _is_wanted(block: Any, left: dict[str, set[str]]) -> bool:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str) or kind not in _IDS:
        return True
    own = block.get(_IDS[kind])
    if not isinstance(own, str) or own not in left[kind]:
        return False
    left[kind].discard(own)
    return True
