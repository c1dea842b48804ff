"""What the log tells of a call that the program is about to make, in closed volumes too."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.runtime.steps import Plan
from holdfast.session.call_log import CallLog
from holdfast.session.effects import Effect
from holdfast.session.folding import Calls
from holdfast.session.older import Older
from holdfast.session.volumes import Shelf


@dataclass(frozen=True)
class Remembered:
    """What closed volumes tell of a call; it holds while the log has no others."""

    older: Older
    """The volumes that were looked into."""
    left: frozenset[str]
    """Calls in them that newer entries said were left."""
    keyed: Calls = field(default_factory=Calls)
    """Calls of that tool under that key."""
    final: Calls = field(default_factory=Calls)
    """Equal calls that cannot be undone."""
    reused: frozenset[str] = frozenset()
    """Those of them whose output was given to another call."""

    def is_of(self, log: CallLog) -> bool:
        """Return whether a log has these volumes and no others."""
        return self.older is log.older and self.left == log.known.left

    def under_key_of(self, effect: Effect, log: CallLog) -> list[Effect]:
        """Return the calls of a tool under a key, as a log tells of them, the oldest first."""
        if effect.key is None:
            return []
        found = self.keyed.overlaid(log.known)
        found |= {each.id: each for each in log.with_key(effect.tool, effect.key)}
        return list(found.values())

    def equal_to(self, effect: Effect, log: CallLog) -> list[Effect]:
        """Return equal calls that cannot be undone, as a log tells of them, the oldest first."""
        found = self.final.overlaid(log.known)
        found |= {each.id: each for each in log.final(effect.digest)}
        return list(found.values())


def look_back(shelf: Shelf, log: CallLog, effect: Effect) -> Plan[Remembered]:
    """Return what closed volumes tell of a call; few calls have to be looked for there."""
    older, left = log.older, frozenset(log.known.left)
    keyed = final = Calls()
    reused = set[str]()
    if older and effect.key is not None:
        keyed = yield from older.with_key(shelf, effect.tool, effect.key)
    if older and effect.is_final:
        final = yield from older.final(shelf, effect.digest, left)
        reused = yield from older.reusing(shelf, list(final.effects))
    return Remembered(older, left, keyed, final, frozenset(reused))
