"""How far a long command is, on the terminal's last line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

_PATIENCE = 0.5
_PAUSE = 0.1
_WIDTH = 24


class Progress:
    """Called with how much is done and how much there is; shows itself after a moment only."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown_at = 0.0
        self._started = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._started < _PATIENCE:
            return
        is_over = total is not None and done >= total
        if now - self._shown_at < _PAUSE and not is_over:
            return
        self._shown_at = now
        _show("" if is_over else line(self._what, done, total))


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show how long something has taken of which nobody knows how far it is."""
    over = Event()
    started = time.monotonic()

    def show() -> None:
        while not over.wait(_PATIENCE):
            _show(f"{what}: {time.monotonic() - started:.0f} s")

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _show("")


def _show(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


def line(what: str, done: int, total: int | None) -> str:
    """The line that is shown."""
    if not total:
        return f"{what}: {done:,}"
    filled = min(_WIDTH, done * _WIDTH // total)
    return f"{what} [{'#' * filled}{'.' * (_WIDTH - filled)}] {done:,}/{total:,}"
