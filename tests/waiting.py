"""Limits that follow progress, not the clock: a busy machine makes a test slower, not wrong.

A test hangs when all its processes together stand still, or when they have computed for longer
than any test does. What takes its time while others have the processors does neither.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STANDSTILL = 1 / 30
"""Of a spell, computed by all processes together: idle servers and polling take less."""
SPELLS_OF_COMPUTING = 2
"""How many spells' worth of computing a test may take; there are two processors at least."""
PATIENCE = 30.0
"""Seconds for which what was started may stand still before it counts as hung."""


def computed() -> float:
    """The seconds that this process, and all it started, have computed so far."""
    children: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:  # it ended meanwhile
                continue
            fields = text[text.rindex(")") + 2 :].split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            # Its own, and that of its children that have ended.
            spent[int(entry.name)] = sum(map(int, fields[11:15]))
    total, left = 0, [os.getpid()]
    while left:
        pid = left.pop()
        total += spent.get(pid, 0)
        left += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")


class Watch:
    """Looks after one test: asks at the end of each spell whether it went on."""

    def __init__(self, spell: float, hangs: Callable[[str], Any]) -> None:
        self._spell = spell
        self._hangs = hangs
        self._start = self._last = computed()

    def arm(self) -> None:
        """Begin."""
        signal.signal(signal.SIGALRM, lambda *_: self._alarm())
        signal.setitimer(signal.ITIMER_REAL, self._spell)

    def renew(self) -> None:
        """Begin anew: something was achieved."""
        self._start = self._last = computed()

    def rewind(self) -> None:
        """Let the spell begin anew, too."""
        signal.setitimer(signal.ITIMER_REAL, self._spell)

    @staticmethod
    def cancel() -> None:
        """End it."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _alarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._spell)
        self.ask()

    def ask(self) -> None:
        """Say so if it hangs: a spell is over."""
        now = computed()
        before, self._last = self._last, now
        if now - before < STANDSTILL * self._spell:
            self._hangs(f"nothing went on for {self._spell:.0f} s")
        if now - self._start > self._spell * SPELLS_OF_COMPUTING:
            self._hangs(f"it computed for {now - self._start:.0f} s and achieved nothing")


_watch: Watch | None = None


def watch(spell: float, hangs: Callable[[str], Any]) -> None:
    """Look after the test that begins now."""
    global _watch
    _watch = Watch(spell, hangs)
    _watch.arm()


def end_watch() -> None:
    """Let the test that ends now go."""
    global _watch
    if _watch is not None:
        _watch.cancel()
        _watch = None


def achieved() -> None:
    """Something was achieved, so the test may take as long again. From any thread."""
    if _watch is not None:
        _watch.renew()
        _watch.rewind()


def wait_until(there: Callable[[], Any], what: str) -> None:
    """Ask again and again, as servers have no other way to say that they are ready.

    It ends when what this process started stands still; asking itself does not count.
    """
    spell = PATIENCE
    last, since = computed(), time.monotonic()
    own = time.process_time()
    while not there():
        if time.monotonic() - since > spell:
            now, mine = computed(), time.process_time()
            if (now - last) - (mine - own) < STANDSTILL / 4 * spell:
                raise AssertionError(
                    f"{what} did not happen, and nothing went on for {spell:.0f} s"
                )
            last, since, own = now, time.monotonic(), mine
        time.sleep(0.02)
