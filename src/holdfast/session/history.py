"""The history of a session's calls: was this one made before, what is unknown, what is next.

Two parts hold it, and nobody else looks into them: the log, which is kept in the checkpoints and
tells of all calls up to the head, and the journal, noted on the head, of those made since.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import DivergenceError, RunError, UnknownEffectError
from holdfast.ids import new_id
from holdfast.runtime.steps import Plan
from holdfast.session import journal as journals
from holdfast.session.call_log import CallLog, jump, resume_point
from holdfast.session.effects import (
    ENDED,
    RETRY,
    STARTED,
    Block,
    Effect,
    identity,
)
from holdfast.session.folding import Calls, Entry
from holdfast.session.journal import CallJournal, divergence, key_of
from holdfast.session.recorded import Parted, parted
from holdfast.session.remembered import Remembered, look_back
from holdfast.session.volumes import Shelf

Noted = Iterable[tuple[str, Any]]
"""Keys and values of the notes on a head, in the order in which they were written."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A call that the program makes, and what is known of it."""

    effect: Effect
    """The record of this very call, if there is one; else the call, with its id."""
    is_recorded: bool = False
    reused: Effect | None = None
    """A call made before whose output this one is given."""


@dataclass(frozen=True)
class Closed:
    """A log with its oldest entries in volumes, to be written with a checkpoint."""

    log: CallLog
    chunks: dict[bytes, bytes]
    was: list[Entry]
    """The entries that were in no volume before."""


class CallHistory:
    """All calls of an open session."""

    def __init__(
        self,
        session: tuple[str, str],
        is_open: Callable[[Block], bool],
        may_diverge: bool,
        shelf: Shelf,
    ) -> None:
        self._session = session
        self._shelf = shelf
        """Where closed volumes of the log are read, and written."""
        self._is_open = is_open
        """Tells whether a resumed program comes to the calls of a block again."""
        self._may_diverge = may_diverge
        """Whether a resumed program may go another way than the one recorded."""
        self._log = CallLog()
        self._journal = CallJournal()
        self._lock = threading.Lock()
        self._next_index = 0
        self._made: Counter[Any] = Counter()
        """How often each call was made in its block, so that equal ones are told apart."""
        self._has_called = False
        """Whether the program has made a call."""
        self._under_way: dict[str, str] = {}
        """Calls that are being made, each with the head at which it was begun."""
        self._inherited = 0
        """How many calls were made on this way before the session was opened."""
        self._loaded: list[Entry] | None = None
        """What is in closed volumes, if all of it was asked for."""
        self.grown_from: str | None = None
        """The checkpoint whose log this one begins with."""

    # Opening, and going on from another checkpoint

    def load(self, entries: Sequence[Entry], checkpoint_id: str | None = None) -> None:
        """Know the calls that a checkpoint holds."""
        self._log = CallLog(entries)
        self._loaded = None
        self.grown_from = checkpoint_id

    def begin(self, noted: Noted) -> None:
        """Have a program begin at a head: what is noted there waits for it, and open calls do."""
        calls, self._journal.retried = journals.read(noted, self._open_calls())
        self._begin_with(calls)
        self._inherited = self._alive()

    def begin_again(self) -> None:
        """Have a program begin at a checkpoint on which nothing is noted yet."""
        self._begin_with([])

    def _begin_with(self, calls: list[Effect]) -> None:
        known = {call.id for call in calls}
        opened = [call for call in self._open_calls() if call.id not in known]
        self._made = Counter(self._place_of(call) for call in (*opened, *calls))
        self._journal_of(calls, opened, waits=True)

    def _journal_of(self, calls: list[Effect], earlier: list[Effect], waits: bool) -> None:
        retried = self._journal.retried
        self._journal = CallJournal(calls, earlier, self._log.jumped_in(), waits)
        self._journal.retried = retried
        self._next_index = 1 + max((call.index for call in calls), default=-1)

    def begin_fork(self) -> None:
        """Begin a session that was forked: what its calls did that lasts is not done again."""
        self._log.extend(
            {"left": call.id}
            for call in self._log.effects
            if call.is_final and call.status == "done" and not call.left
        )
        if self._log.older:
            self._log.extend([{"branched": self._log.older.volumes.count}])
        self._log.extend([resume_point()])

    def unknown_here(self, entries: Sequence[Entry]) -> Plan[list[Effect]]:
        """Return the calls that a checkpoint of another session tells of, and this log does not."""
        shelf = self._shelf.raw()
        return (yield from parted(shelf, CallLog(entries), self._log)).later

    def know_of(self, calls: Iterable[Effect]) -> Plan[None]:
        """Know what was done elsewhere and cannot be undone: it is not done again."""
        final = [each for each in calls if each.is_final and self._log.get(each.id) is None]
        known = yield from self._log.older.calls(self._shelf, [each.id for each in final])
        self._log.extend(
            replace(effect, abandoned=True).as_dict()
            for effect in final
            if effect.id not in known.effects
        )

    def go_back(
        self, entries: Sequence[Entry], since: Parted, undone: set[str], checkpoint_id: str
    ) -> Plan[None]:
        """Stand where a checkpoint stands, and know what was done since on the way that is left.

        ``undone`` are the calls made since that were compensated just now.
        """
        is_loaded = self._loaded is not None
        self.load(entries, checkpoint_id)
        self._journal.forget()
        marks: list[Entry] = [replace(each, abandoned=True).as_dict() for each in since.later]
        self._log.extend([*marks, *({"undone": each} for each in (*undone, *since.undone))])
        if is_loaded:
            yield from self.load_older()

    def join(self, entries: Sequence[Entry]) -> Plan[None]:
        """Know of what another branch did, which is gone on from.

        A resumed program does not make it again, so it is not of any block here.
        """
        theirs = yield from parted(self._shelf, CallLog(entries), self._log)
        joined: list[Entry] = [
            replace(effect, task=f"adopted:{effect.task or ''}").as_dict()
            for effect in theirs.later
        ]
        new = {effect.id for effect in theirs.later}
        self._log.extend([*joined, *({"undone": each} for each in theirs.undone - new)])

    def jump(self, blocks: Iterable[Block]) -> None:
        """Go on from another checkpoint, in the middle of these blocks."""
        self._log.extend([jump(blocks)])

    # Making calls

    def program_calls(self) -> None:
        """Know that the program has made a call: it did not come only to look."""
        self._has_called = True

    def recall(self, effect: Effect, again: bool, is_models: bool = False) -> Plan[Recalled]:
        """Return what is known of a call that the program makes.

        With ``again`` it is made even if an equal one was made that cannot be undone. A key
        that a model gave (``is_models``) does not make of an equal call another one.
        """
        while True:
            remembered = yield from look_back(self._shelf, self._log, effect)
            with self._lock:
                if remembered.is_of(self._log):
                    return self._recalled(effect, again, is_models, remembered)

    def _recalled(
        self, effect: Effect, again: bool, is_models: bool, remembered: Remembered
    ) -> Recalled:
        recorded = self._claimed(effect)
        if recorded is not None:
            return Recalled(recorded, is_recorded=True)
        reused = None if again else self._standing(effect, is_models, remembered)
        return Recalled(self._identified(effect, remembered), reused=reused)

    def _claimed(self, effect: Effect) -> Effect | None:
        """Return the record of this very call, if it was made before a resume."""
        try:
            found = self._journal.claim(effect)
        except DivergenceError:
            if not self._may_leave(effect.block):
                raise
            found = None
        if found is not None and found.status == "started":
            try:
                self._check_known(found)
            except RunError:
                self._journal.unclaim(found)
                raise
        if found is None and self._journal.is_left_by(effect):
            self._leave(effect.block)
        return found

    def _standing(self, effect: Effect, is_models: bool, remembered: Remembered) -> Effect | None:
        """Return a call with this key, or a lasting one that was made on a way since left."""
        if effect.key is None:
            return self._left_standing(effect, remembered)
        known = self._known_by_key(effect, effect.key, remembered)
        if known is None and is_models:
            return self._left_standing(effect, remembered)
        return known

    def _left_standing(self, effect: Effect, remembered: Remembered) -> Effect | None:
        """Return an equal call that cannot be undone, of a way or an attempt that was left.

        One whose end is unknown too: it may stand.
        """
        if not effect.is_final:
            return None
        equal = remembered.equal_to(effect, self._log)
        found = next(
            (
                each
                for each in equal
                if (each.left or each.abandoned)
                and each.status in ("done", "started")
                and not self._is_reused(each.id, remembered)
            ),
            None,
        )
        if found is not None and found.status == "started":
            if found.id in self._journal.retried:
                return None
            raise UnknownEffectError(
                f"{found} was begun at {found.started_at:%H:%M:%S} UTC, on a way that was left "
                "since, and its end is not recorded: it may have taken place or not, so an equal "
                "call is not made. Look; if it did not, make it with run.call(..., again=True), or "
                "give the tool of a framework another effect for this run"
            )
        return found

    def _is_reused(self, effect_id: str, remembered: Remembered) -> bool:
        """Return whether the output of a call was given to another one."""
        known = effect_id in self._log.reused or effect_id in remembered.reused
        return known or self._journal.is_reused(effect_id)

    def _known_by_key(self, effect: Effect, key: str, remembered: Remembered) -> Effect | None:
        same = remembered.under_key_of(effect, self._log)
        known = next((call for call in same if _holds(call)), None)
        for call in self._journal.with_key(effect.tool, key):
            if call.id in self._under_way:
                raise RunError(f"{call} is being made right now under the key {key!r}")
            if call.status == "started":
                self._check_known(call)
            known = call if call.status == "done" else known
        if known is not None and known.digest != effect.digest:
            raise DivergenceError(
                f"the call with key {key!r} was recorded as {known}, and is made now as "
                f"{effect}: give it another key"
            )
        return known

    def _identified(self, effect: Effect, remembered: Remembered) -> Effect:
        """Return the call with an id that it has again after a resume."""
        place = self._place_of(effect)
        if effect.key is not None:
            before = len(remembered.under_key_of(effect, self._log))
            before += len(self._journal.with_key(effect.tool, effect.key))
            parts: tuple[Any, ...] = (*self._session, "key", effect.key, before)
        else:
            parts = (*self._session, place[0], effect.task, effect.attempt, self._made[place])
        self._made[place] += 1
        return replace(effect, id=identity(*parts, effect.tool, effect.digest))

    def _place_of(self, call: Effect) -> tuple[Any, ...]:
        """Return what equal calls share, while neither their block nor the run is elsewhere."""
        return self._log.token(call.task), call.block, call.tool, call.digest

    def not_made(self, effect: Effect) -> None:
        """Forget that a call was about to be made: the next equal one is the same call."""
        with self._lock:
            self._made[self._place_of(effect)] -= 1

    def begin_call(self, effect: Effect) -> None:
        """Know that a call is being made, until ``end_call``."""
        self._under_way[effect.id] = ""

    def end_call(self, effect: Effect) -> None:
        """Know that a call is being made no more, however it ended."""
        self._under_way.pop(effect.id, None)

    def cut_off(self, effect: Effect) -> None:
        """Know that a call was cut off: whether it took place is not known."""
        with self._lock:
            begun = self._journal.find(effect.id)
            if begun is not None:
                self._journal.interrupted(begun)

    def unkept(self, effect: Effect, problem: str) -> Effect:
        """Return a call that was begun, with the reason for which its end cannot be kept."""
        return replace(self._journal.find(effect.id) or effect, reason=problem)

    # Writing down calls on the head

    def is_noted(self, effect: Effect) -> bool:
        """Return whether a call was written down since the head."""
        return self._journal.find(effect.id) is not None

    def put(self, effect: Effect) -> Effect:
        """Remember a call, or what became of it, and return it with its number since the head.

        Where a checkpoint was made while its tool ran, that is another one now.
        """
        known = self._journal.find(effect.id)
        effect = replace(effect, index=self._new_index() if known is None else known.index)
        self._journal.put(effect)
        return effect

    def _new_index(self) -> int:
        with self._lock:
            index, self._next_index = self._next_index, self._next_index + 1
        return index

    def drop(self, effect: Effect) -> None:
        """Forget a call that could not be written down: it was not begun."""
        self._journal.drop(effect)

    def note_of(self, effect: Effect, mark: str, head: str) -> tuple[str, dict[str, Any]]:
        """Return the key and the value of the note that says what became of a call.

        Only its end is said on the head on which its beginning was.
        """
        is_end = mark == ENDED and self._under_way.get(effect.id) == head
        if effect.id in self._under_way and mark.startswith(STARTED):
            self._under_way[effect.id] = head
        return key_of(effect.index, mark), effect.end_dict() if is_end else effect.as_dict()

    def undecided(self, effect: Effect) -> Effect:
        """Return a call whose end is unknown, as it stands; an error if it is known by now."""
        for call in self._cut_off():
            if call.id == effect.id:
                return call
        raise RunError(f"{effect} is not unknown any more")

    def retry(self, effect: Effect) -> None:
        """Have a call of unknown end made again."""
        self._journal.retried.add(effect.id)

    # What is known

    def unknown(self) -> list[Effect]:
        """Return calls that were begun and of whose end nothing is known."""
        return self._journal.unknown()

    def waiting_for_decision(self) -> int:
        """Return how many calls wait for somebody to say how they ended."""
        return sum(call.is_unknown for call in self._journal.unknown())

    def is_cut_off(self) -> bool:
        """Return whether a call was cut off that may have done something lasting."""
        return any(call.is_unknown for call in self._cut_off())

    def is_only_looked_at(self) -> bool:
        """Return whether calls wait to be made again, and the program has made none."""
        waits = self._journal.all_waiting or self._journal.unknown()
        return bool(waits) and not self._has_called

    def _cut_off(self) -> list[Effect]:
        """Return calls whose end is unknown, and which nobody is making now."""
        return [call for call in self._journal.unknown() if call.id not in self._under_way]

    def _open_calls(self) -> list[Effect]:
        """Return calls before the head that a resumed program makes again."""
        return self._log.open_calls(self._is_open)

    def every_call(self) -> Plan[list[Effect]]:
        """Return all calls so far as they stand, the oldest first."""
        older = yield from self._older_entries()
        return self._folded(older)

    def load_older(self) -> Plan[None]:
        """Read what is in closed volumes, and keep it at hand."""
        while True:
            older, entries = self._log.older, (yield from self._older_entries())
            with self._lock:
                if older is self._log.older:
                    self._loaded = entries
                    return

    def every_call_at_hand(self) -> list[Effect]:
        """Return all calls so far without reading any; an error where that cannot be."""
        if self._log.older and self._loaded is None:
            raise RunError(
                "this run has calls that are so old that they are only in the store: read them "
                "first, with `await run.load_effects()`"
            )
        return self._folded(self._loaded or [])

    def _older_entries(self) -> Plan[list[Entry]]:
        if self._loaded is not None:
            return self._loaded
        return (yield from self._log.older.entries(self._shelf))

    def _folded(self, older: list[Entry]) -> list[Effect]:
        noted = [call.as_dict() for call in self._journal.calls]
        return list(Calls([*older, *self._log.recent, *noted]).effects.values())

    def since(self, entries: Sequence[Entry]) -> Plan[Parted]:
        """Return what was done after a checkpoint that holds these, the oldest first."""
        noted = [call.as_dict() for call in self._journal.calls]
        return (yield from parted(self._shelf, self._log, CallLog(entries), noted))

    def made_since_opening(self) -> int:
        """Return how many calls were made since the session was opened."""
        return self._alive() - self._inherited

    def _alive(self) -> int:
        """Return how many calls were made on this way."""
        alive = self._log.alive
        for call in self._journal.calls:
            known = self._log.get(call.id)
            alive += (not call.abandoned) - (known is not None and not known.abandoned)
        return alive

    def last_files(self) -> Any:
        """Return the files as the last call since the head left them; None if none captured any."""
        ended = [call.workspace for call in self._journal.calls if call.workspace is not None]
        return ended[-1] if ended else None

    # Going another way than the one recorded

    def check_made(self, block: Block) -> None:
        """Refuse to go on to a checkpoint past calls that a resumed program has not made again."""
        cut_off = self._cut_off()
        for call in cut_off:
            self._check_known(call)
        again = [call for call in cut_off if call.is_unknown and call.block == block]
        if again:
            raise divergence("comes to a checkpoint", again[0])
        missing = [call for call in self._journal.waiting(block) if call.status != "started"]
        if missing and not self._may_leave(block):
            raise divergence("comes to a checkpoint", missing[0])
        if missing:
            self._leave(block)

    def _check_known(self, found: Effect) -> None:
        """Refuse to go on where nobody knows whether a call took place, and it matters."""
        if not found.lasts or found.id in self._journal.retried:
            return
        why = f" ({found.reason})" if found.reason else ""
        raise UnknownEffectError(
            f"{found} was begun at {found.started_at:%H:%M:%S} UTC and its end is not recorded"
            f"{why}: it may have taken place or not. Look, then decide for each of "
            "run.unknown_effects(): .retry(), .mark_done(output) or .mark_failed(error); or on "
            f"the command line: holdfast resolve {found.id[:8]} --done VALUE, --failed or --retry"
        )

    def _may_leave(self, block: Block) -> bool:
        """Return whether a resumed program may go another way than the one recorded."""
        return self._may_diverge or block in self._log.jumped_in()

    def _leave(self, block: Block) -> None:
        """Go on live: what was recorded and not made again belongs to a way that is left."""
        for call in self._journal.waiting(block):
            if call.status == "started":
                self._check_known(call)
        left = self._journal.leave(block)
        self._log.extend(replace(call, abandoned=True).as_dict() for call in left)
        self._log.extend([jump([])])

    # What a checkpoint keeps

    def entries_with(self, news: Iterable[Entry], closed: Closed | None = None) -> list[Entry]:
        """Return what a checkpoint keeps of the calls, with what it adds."""
        return [*(self._log if closed is None else closed.log).entries, *news]

    def closed(self) -> Plan[Closed | None]:
        """Return the log with its oldest entries in volumes, where it has become long."""
        if not self._log.is_long(self._shelf) or not self._shelf.engine.shares_chunks:
            return None
        into: dict[bytes, bytes] = {}
        was = list(self._log.recent)
        log = yield from self._log.closed(self._shelf, self._is_open, into)
        return Closed(log, into, was)

    def close(self, closed: Closed) -> None:
        """Go on with volumes that were written; what was added meanwhile comes behind them."""
        with self._lock:
            moved = len(closed.was) - len(closed.log.recent)
            if self._loaded is not None:
                self._loaded = [*self._loaded, *closed.was[:moved]]
            closed.log.extend(self._log.recent[len(closed.was) :])
            self._log = closed.log
            token = self._log.token
            self._made = Counter(
                {at: n for at, n in self._made.items() if at[0] == token(at[1][0])}
            )

    def linked(self) -> dict[bytes, bool]:
        """Return the chunks that its volumes begin with, each with whether it refers to more."""
        return self._log.older.linked()

    def news(self, marks: Iterable[Entry], block: Block | None) -> list[Entry]:
        """Return what the next checkpoint adds; calls under way come last, past all marks."""
        calls = self._journal.calls
        cut_off = {call.id for call in self._cut_off() if call.block == block}
        ended = [call for call in calls if call.id not in self._under_way]
        return [
            *(replace(call, abandoned=call.id in cut_off).as_dict() for call in ended),
            *marks,
            *(call.as_dict() for call in calls if call.id in self._under_way),
        ]

    def follow(self, news: Iterable[Entry], checkpoint_id: str) -> None:
        """Go on past a checkpoint that added these: what is being made, and what still waits."""
        with self._lock:  # no call is claimed meanwhile
            self._log.extend(news)
            self.grown_from = checkpoint_id
            under_way = [call for call in self._journal.calls if call.id in self._under_way]
            still = {call.id for call in (*self._journal.earlier, *self._journal.all_waiting)}
            opened = [call for call in self._open_calls() if call.id in still] if still else []
            moved = [replace(call, index=index) for index, call in enumerate(under_way)]
            self._journal_of(moved, opened, waits=False)

    def notes_on(self) -> dict[str, Any]:
        """Return the notes with which the journal goes over to another head as it is.

        But for the files: those are captured with that head.
        """
        notes: dict[str, Any] = {}
        for call in self._journal.calls:
            value = replace(call, workspace=None).as_dict()
            notes[key_of(call.index, STARTED)] = value
            if call.id in self._journal.retried:
                notes[key_of(call.index, f"{RETRY}/{new_id()}")] = value
        return notes

    def move_on(self, checkpoint_id: str) -> None:
        """Go on from a head that has the notes of ``notes_on``."""
        self.grown_from = checkpoint_id
        for call in self._journal.calls:
            self._journal.put(replace(call, workspace=None))

    def left_by(self, block: Block) -> list[Entry]:
        """Return marks for what a failed attempt did and cannot be undone: it is not done twice."""
        every = [*self._open_calls(), *self._journal.calls]
        return [
            {"left": call.id}
            for call in every
            if call.is_final and (call.status, call.block) == ("done", block)
        ]

    def resume_point(self, block: Block) -> Entry:
        """Return a mark: a resumed program makes nothing of before again, in a block."""
        return resume_point(block[0])


def _holds(call: Effect) -> bool:
    """Return whether what a call gave still holds."""
    undone = call.compensated or (call.abandoned and not call.lasts)
    return call.status == "done" and not undone


def without(news: Iterable[Entry], written: Iterable[Entry]) -> list[Entry]:
    """Return what a checkpoint adds, but for the calls that another one has added."""
    known = {entry.get("id") for entry in written} - {None}
    return [entry for entry in news if entry.get("id") not in known]
