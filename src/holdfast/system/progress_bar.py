"""Progress bars on the terminal's last line; where there is no terminal, nothing is drawn.

A program that wants one calls ``show`` or is given a ``Bar``: nothing here is drawn by itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from threading import Event, Thread

from holdfast.system.terminal_text import clean, cut

_PATIENCE = 0.5
"""Seconds that something may take before anything is said of it."""
_PAUSE = 0.1
_WIDTH = 24


def show(done: int, total: int | None, label: str = "") -> None:
    """Draw how much is done; what is done in full ends its line and stays."""
    if is_seen():
        _draw(line(done, total, label), ends=total is not None and done >= total)


def line(done: int, total: int | None, label: str = "") -> str:
    """Return ``[####....] 2/8 label``, or ``label: 2`` where nobody knows the whole."""
    if total is None:
        return f"{label}: {done:,}" if label else f"{done:,}"
    filled = min(_WIDTH, done * _WIDTH // max(total, 1))
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {done:,}/{total:,} {label}".rstrip()


def is_seen() -> bool:
    """Return whether anybody can see what is drawn."""
    return sys.stderr is not None and sys.stderr.isatty()


class Bar:
    """Told how much is done, it draws that if it takes long, now and then, and erases it."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._drawn_at = 0.0
        self._started = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._started < _PATIENCE:
            return
        is_over = total is not None and done >= total
        if now - self._drawn_at < _PAUSE and not is_over:
            return
        self._drawn_at = now
        _draw("" if is_over else line(done, total, self._label))


@contextmanager
def seconds(label: str) -> Iterator[None]:
    """Draw how long something has taken of which nobody knows how far it is."""
    over = Event()
    started = time.monotonic()

    def draw() -> None:
        while not over.wait(_PATIENCE):
            _draw(f"{label}: {time.monotonic() - started:.0f} s")

    thread = Thread(target=draw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _draw("")


def _draw(text: str, ends: bool = False) -> None:
    # A line that is too long would go on below, where it is not erased.
    room = get_terminal_size().columns - 1
    sys.stderr.write(f"\r\x1b[K{cut(clean(text), room)}" + ("\n" if ends else ""))
    sys.stderr.flush()
