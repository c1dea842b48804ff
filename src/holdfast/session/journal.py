"""The journal: what was called since the head, so that a resumed program finds it done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from holdfast.errors import DivergenceError
from holdfast.session.effects import RETRY, Block, Effect
from holdfast.verbs import stored_values

LEASE = "lease"
"""In the note of a call that 0.2 wrote: the number of the lease under which it was made."""
TAKEN = "taken"
"""The note of 0.2 on a head: what those of earlier leases note from there on is void."""


def key_of(index: int, mark: str) -> str:
    """Return the key of a note on the head, for the call of that index."""
    return f"call/{index}/{mark}"


class CallJournal:
    """Calls since the head, and earlier ones of blocks that the program is still in.

    A resumed program makes them again, one by one. It has to make those since the head, as the
    state does not hold yet what they gave; the earlier ones it may. What is asked at every call is
    answered without looking at all of them.
    """

    def __init__(
        self,
        calls: Iterable[Effect] = (),
        earlier: Iterable[Effect] = (),
        loose: Collection[Block] = (),
        waits: bool = True,
    ) -> None:
        self._calls: dict[int, Effect] = {}
        self._places: dict[str, int] = {}
        self._started: set[int] = set()
        self._by_key: dict[tuple[str, str], set[int]] = {}
        self._reused: Counter[str] = Counter()
        self._waiting, self._cut, self._earlier = _Awaited(), _Awaited(), _Awaited()
        for call in sorted(calls, key=lambda call: call.index):
            self.put(call)
            if waits:
                self._waiting.add(call)
        for call in earlier:
            self._earlier.add(call)
        self._loose = loose
        self.retried: set[str] = set()
        """Calls of unknown end that the user wants made again."""

    @property
    def calls(self) -> list[Effect]:
        """All calls since the head in the order in which they were begun."""
        return self._at(self._calls)

    def _at(self, indexes: Iterable[int]) -> list[Effect]:
        return [self._calls[index] for index in sorted(indexes)]

    @property
    def earlier(self) -> list[Effect]:
        """Calls before the head that the program may make again."""
        return self._earlier.every()

    def waiting(self, block: Block) -> list[Effect]:
        """Return calls of a block since the head that the program has not made again yet."""
        return [self._calls[call.index] for call in self._waiting.of(block)]

    @property
    def all_waiting(self) -> list[Effect]:
        """The same of all blocks."""
        return [self._calls[call.index] for call in self._waiting.every()]

    def put(self, effect: Effect) -> None:
        """Record a call, or what became of it."""
        self._forget(effect.index)
        self._calls[effect.index] = effect
        self._places[effect.id] = effect.index
        if effect.status == "started":
            self._started.add(effect.index)
        if effect.key is not None:
            self._by_key.setdefault((effect.tool, effect.key), set()).add(effect.index)
        if effect.reused is not None:
            self._reused[effect.reused] += 1

    def drop(self, effect: Effect) -> None:
        """Forget a call that was not begun after all."""
        self._forget(effect.index)
        self._places.pop(effect.id, None)

    def _forget(self, index: int) -> None:
        known = self._calls.pop(index, None)
        if known is None:
            return
        self._started.discard(index)
        if known.key is not None:
            self._by_key[known.tool, known.key].discard(index)
        if known.reused is not None:
            self._reused[known.reused] -= 1

    def interrupted(self, effect: Effect) -> None:
        """Know that a call was cut off: its end is unknown, and the next equal call is this one."""
        self.put(effect)
        self._cut.add(effect)

    def unclaim(self, call: Effect) -> None:
        """Let a call wait again."""
        if call.index in self._calls and self._calls[call.index].id == call.id:
            self.interrupted(call)
        else:
            self._earlier.add(call, first=True)

    def forget(self) -> None:
        """Have nothing made again: the run goes on elsewhere."""
        self._waiting, self._cut, self._earlier = _Awaited(), _Awaited(), _Awaited()

    def find(self, effect_id: str) -> Effect | None:
        """Return the call of that id, as it is recorded since the head."""
        place = self._places.get(effect_id)
        return None if place is None else self._calls.get(place)

    def claim(self, effect: Effect) -> Effect | None:
        """Return the recorded call that this one is; None if it is to be made.

        Calls that were made at the same time may come in another order. A call that was never
        recorded, while others of its block wait to be made again, is a divergence.
        """
        earlier = self._earlier.take(effect)
        if earlier is not None:
            return earlier
        for awaited in (self._waiting, self._cut):
            found = awaited.take(effect)
            if found is not None:
                return self._calls[found.index]
        if self.is_left_by(effect):
            if effect.block not in self._loose:
                raise divergence(f"the program calls {effect}", self.waiting(effect.block)[0])
            return None
        self._earlier.drop(effect.block)
        return None

    def is_left_by(self, effect: Effect) -> bool:
        """Return whether a program that makes this call goes another way than the one recorded."""
        return effect.key is None and self._waiting.has(effect.block)

    def leave(self, block: Block) -> list[Effect]:
        """Take out what waits to be made again in a block: the program goes another way."""
        left = self.waiting(block)
        self._waiting.drop(block)
        for call in left:
            self.drop(call)
        self._earlier.drop(block)
        return left

    def unknown(self) -> list[Effect]:
        """Return calls that were begun and of whose end nothing is known."""
        return self._at(self._started)

    def with_key(self, tool: str, key: str) -> list[Effect]:
        """Return the calls of a tool under a key."""
        return self._at(self._by_key.get((tool, key), ()))

    def is_reused(self, effect_id: str) -> bool:
        """Return whether a call since the head was given the output of that one."""
        return self._reused[effect_id] > 0


def divergence(what: str, call: Effect) -> DivergenceError:
    """Return what to say of a program that does not do again what it did."""
    return DivergenceError(
        f"this run was resumed, and {what} where {call} was recorded. Make the program do again "
        "what it did, roll back to a checkpoint before, or open the session with "
        'on_divergence="live" to go on from here and leave what was recorded'
    )


_Same = tuple[Block, str, str | None, str]


def _same(call: Effect) -> _Same:
    """Return what a call shares with the one that it is when the program makes it again."""
    return call.block, call.tool, call.key, call.digest


class _Awaited:
    """Calls that the program is expected to make again, in order; the first that fits is taken."""

    def __init__(self) -> None:
        self._calls: dict[str, Effect] = {}
        self._alike: dict[_Same, dict[str, None]] = {}
        self._blocks: dict[Block, dict[str, None]] = {}

    def add(self, call: Effect, first: bool = False) -> None:
        """Await a call, behind those that are the same or before them."""
        alike = self._alike.setdefault(_same(call), {})
        alike[call.id] = None
        if first:
            self._alike[_same(call)] = {call.id: None, **alike}
        self._calls[call.id] = call
        self._blocks.setdefault(call.block, {})[call.id] = None

    def take(self, effect: Effect) -> Effect | None:
        """Return the first that a call of the program is, which is awaited no more."""
        for call_id in self._alike.get(_same(effect), ()):
            return self._remove(call_id)
        return None

    def _remove(self, call_id: str) -> Effect:
        call = self._calls.pop(call_id)
        del self._alike[_same(call)][call_id]
        del self._blocks[call.block][call_id]
        return call

    def has(self, block: Block) -> bool:
        """Return whether any of a block is awaited."""
        return bool(self._blocks.get(block))

    def of(self, block: Block) -> list[Effect]:
        """Return those of a block."""
        return [self._calls[call_id] for call_id in self._blocks.get(block, ())]

    def every(self) -> list[Effect]:
        """Return all of them."""
        return list(self._calls.values())

    def drop(self, block: Block) -> None:
        """Await none of a block any more."""
        for call_id in list(self._blocks.pop(block, ())):
            call = self._calls.pop(call_id)
            del self._alike[_same(call)][call_id]


_CALL: dict[str, stored_values.Kind] = {"id": stored_values.TEXT, LEASE: stored_values.NUMBER}


def _put(found: dict[str, Effect], value: Any, known: Effect | None = None) -> Effect:
    """Add what a note tells of a call to what was known of it; it comes last."""
    before = found.pop(value["id"], known)
    effect = Effect.from_dict({**(before.as_dict() if before is not None else {}), **value})
    found[effect.id] = effect
    return effect


def read(
    noted: Iterable[tuple[str, Any]], opened: Iterable[Effect] = ()
) -> tuple[list[Effect], set[str]]:
    """Return the calls that the notes of a head tell of, and which are to be made again.

    ``opened`` are earlier calls; those among them that had begun and not ended when the head was
    made count too. Notes are given as keys and values, in the order they were written.
    """
    found = {call.id: replace(call, index=-1) for call in opened if call.status == "started"}
    void: dict[str, Effect] = {}
    retried: set[str] = set()
    lease = 0
    for key, value in noted:
        kind, _, rest = key.partition("/")
        if kind == TAKEN:
            lease = stored_values.fields_of("the note of a takeover", {LEASE: value}, _CALL)[LEASE]
        if kind != "call":
            continue
        stored_values.fields_of("the note of a call", value, _CALL, ("id",))
        # Before 0.3 one who had lost the session could still write; now nobody can.
        is_void = value.get(LEASE, lease) < lease
        if is_void:
            _put(void, value, found.get(value["id"]))
            continue
        effect = _put(found, value)
        if rest.partition("/")[2].startswith(RETRY):
            retried.add(effect.id)
        else:
            retried.discard(effect.id)
    for effect in void.values():
        # What took place took place, and leases begin anew where a session was moved to.
        if effect.lasts and effect.status == "done":
            known = found.get(effect.id)
            found[effect.id] = replace(effect, index=-1 if known is None else known.index)
    free = 1 + max((call.index for call in found.values()), default=-1)
    calls = sorted(found.values(), key=lambda call: call.index)
    carried = [call for call in calls if call.index < 0]
    numbered = [replace(call, index=free + extra) for extra, call in enumerate(carried)]
    every = [*(call for call in calls if call.index >= 0), *numbered]
    return [call for call in every if call.status != "void"], retried
