"""The journal: what was called since the head, so that a resumed program finds it done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.errors import DivergenceError
from holdfast.session.effects import Effect

STARTED, ENDED, RETRY = "started", "ended", "retry"


def key_of(index: int, mark: str) -> str:
    """The key of a note on the head, for the call of that index."""
    return f"call/{index}/{mark}"


class Journal:
    """Calls since the head, as recorded; a resumed program makes them again, one by one."""

    def __init__(self, recorded: Iterable[Effect] = ()) -> None:
        self._calls = {call.index: call for call in recorded}
        self._waiting = sorted(self._calls)
        self.retried: set[str] = set()
        """Calls of unknown end that the user wants made again."""

    @property
    def calls(self) -> list[Effect]:
        """All calls in the order in which they were begun."""
        return [self._calls[index] for index in sorted(self._calls)]

    @property
    def waiting(self) -> list[Effect]:
        """Calls that were recorded and that the resumed program has not made again yet."""
        return [self._calls[index] for index in self._waiting]

    def claim_all(self) -> None:
        """Take all that is recorded as made again."""
        self._waiting = []

    def put(self, effect: Effect) -> None:
        """Record a call, or what became of it."""
        self._calls[effect.index] = effect

    def claim(self, effect: Effect) -> Effect | None:
        """The recorded call that this one is; None when all that is recorded is behind us.

        Calls that were made at the same time may come in another order. A call that was never
        recorded, while others wait to be made again, is a divergence.
        """
        for call in self.waiting:
            if (call.tool, call.key) != (effect.tool, effect.key):
                continue
            if call.digest == effect.digest:
                self._waiting.remove(call.index)
                return call
            if call.key is not None:
                raise DivergenceError(
                    f"the call with key {call.key!r} was recorded as {call}, and is made now as "
                    f"{effect}: give it another key"
                )
        if self._waiting and effect.key is None:
            raise self.divergence(f"the program calls {effect}")
        return None

    def divergence(self, what: str) -> DivergenceError:
        """What to say of a program that does not do again what it did."""
        return DivergenceError(
            f"this run was resumed, and {what} where {self.waiting[0]} was recorded. Make the "
            "program do again what it did, roll back to a checkpoint before, or open the session "
            'with on_divergence="live" to go on from here and leave what was recorded'
        )

    def unknown(self) -> list[Effect]:
        """Calls that were begun and of whose end nothing is known."""
        return [call for call in self.calls if call.status == "started"]

    def known_by(self, tool: str, key: str) -> Effect | None:
        """A call that was made under that key."""
        for call in self._calls.values():
            if (call.tool, call.key, call.status) == (tool, key, "done"):
                return call
        return None

    @classmethod
    def read(cls, noted: Iterable[tuple[str, Any]]) -> Journal:
        """The journal that the notes of a head tell of, given as keys and values in order."""
        found: dict[int, Effect] = {}
        retried: set[str] = set()
        for key, value in noted:
            kind, _, rest = key.partition("/")
            if kind != "call":
                continue
            effect = Effect.from_dict(value)
            found[effect.index] = effect
            if rest.partition("/")[2].startswith(RETRY):
                retried.add(effect.id)
            else:
                retried.discard(effect.id)
        journal = cls(found.values())
        journal.retried = retried
        return journal
