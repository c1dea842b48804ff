"""Choosing one of many lines: with arrows on a full terminal, by number on any other."""

from __future__ import annotations

import codecs
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.cli.exits import Refused
from holdfast.cli.output.escaping import CLEAR_BELOW, above, printable
from holdfast.cli.output.terminal import Terminal
from holdfast.system.terminal_text import clean, cut

_KEYS = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "first",
    "\x1bOH": "first",
    "\x1b[1~": "first",
    "\x1b[F": "last",
    "\x1bOF": "last",
    "\x1b[4~": "last",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "back",
    "\b": "back",
    "\x1b": "escape",
    "\x04": "escape",
}
_LETTERS = {"k": "up", "j": "down", "g": "first", "G": "last", "q": "escape", "/": "filter"}
_MOVES = {"up": -1, "down": 1, "first": -(10**9), "last": 10**9}
_HELP = "arrows or j k, enter chooses, / filters, q leaves"
_PATIENCE = 0.05
"""Seconds after which an escape is a key of its own, and not the beginning of an arrow's."""

Lines = Callable[[Sequence[int]], list[str]]
"""Gives the lines of some choices: only of those that are seen, as each may take long."""


@dataclass
class Choosing:
    """What is chosen among texts, key by key; nothing here knows of a terminal."""

    texts: Sequence[str]
    page: int = 10
    at: int = 0
    sought: str = ""
    is_typing: bool = False
    found: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._seek()

    def _seek(self) -> None:
        words = self.sought.lower().split()
        self.found = [i for i, text in enumerate(self.texts) if _has(text.lower(), words)]
        self.at = min(self.at, max(len(self.found) - 1, 0))

    def press(self, key: str) -> int | None:
        """Take a key; return what is chosen with it, if anything. Leaving is an error."""
        name = _KEYS.get(key) or ("" if self.is_typing else _LETTERS.get(key, ""))
        if name == "enter" and self.found:
            return self.found[self.at]
        if name == "escape":
            if not self.is_typing and not self.sought:
                raise Refused("nothing was changed")
            self.is_typing, self.sought = False, ""
            self._seek()
        elif name in ("page up", "page down"):
            self._move(-self.page if name == "page up" else self.page)
        elif name in _MOVES:
            self._move(_MOVES[name])
        elif name == "filter":
            self.is_typing = True
        elif self.is_typing and (name == "back" or key.isprintable()):
            self.sought = self.sought[:-1] if name == "back" else self.sought + key
            self.at = 0
            self._seek()
        return None

    def _move(self, by: int) -> None:
        self.at = max(0, min(self.at + by, len(self.found) - 1))

    def seen(self, height: int) -> range:
        """Return which of those that were found are seen where there is room for so many."""
        first = max(0, min(self.at - height // 2, len(self.found) - height))
        return range(first, min(first + height, len(self.found)))


def _has(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


def pick(texts: Sequence[str], lines: Lines, question: str, terminal: Terminal) -> int:
    """Let the user choose one of some texts; return its number."""
    if not texts:
        raise Refused("there is nothing to choose from")
    terminal.flush()
    if os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return _by_number(lines(range(len(texts))), question)
    return _by_keys(Choosing(texts), lines, question, terminal)


def _by_number(lines: Sequence[str], question: str) -> int:
    for number, line in enumerate(lines, 1):
        print(printable(f"{number:>4}  {line}"))
    while True:
        try:
            answer = input(printable(f"{question} (1 to {len(lines)}, q leaves) ")).strip()
        except EOFError:
            answer = "q"
        if answer.lower() in ("q", ""):
            raise Refused("nothing was changed")
        if answer.isascii() and answer.isdecimal() and 0 < int(answer[:9]) <= len(lines):
            return int(answer[:9]) - 1


def _by_keys(choosing: Choosing, lines: Lines, question: str, terminal: Terminal) -> int:
    drawn = 0
    with _key_by_key() as keys:
        while True:
            shown = _drawing(choosing, lines, question, terminal)
            sys.stdout.write(above(drawn) + CLEAR_BELOW + "".join(f"{each}\n" for each in shown))
            sys.stdout.flush()
            drawn = len(shown)
            try:
                chosen = choosing.press(next(keys, "\x04"))
            except Refused:
                _wipe(drawn)
                raise
            if chosen is not None:
                _wipe(drawn)
                return chosen


def _wipe(drawn: int) -> None:
    sys.stdout.write(above(drawn) + CLEAR_BELOW)
    sys.stdout.flush()


def _drawing(choosing: Choosing, lines: Lines, question: str, terminal: Terminal) -> list[str]:
    columns = max(terminal.width - 1, 10)
    choosing.page = max(min(terminal.height - 3, 30), 1)
    seen = choosing.seen(choosing.page)
    mark = "…" if terminal.unicode else "..."
    rows = []
    for place, line in zip(seen, lines([choosing.found[i] for i in seen]), strict=True):
        is_at = place == choosing.at
        line = cut(f"{'>' if is_at else ' '} {line}", columns, mark)
        rows.append(terminal.paint(line, "head") if is_at else line)
    left = len(choosing.found) - len(seen)
    more = f" ({left} more)" if left else ""
    if choosing.is_typing or choosing.sought:
        below = f"/{clean(choosing.sought)}" + ("" if choosing.found else "  (nothing)")
    else:
        below = _HELP
    whole = [
        terminal.paint(cut(question + more, columns, mark), "name"),
        *rows,
        terminal.paint(cut(below, columns, mark), "dim"),
    ]
    return [printable(each, terminal.colored) for each in whole]


@contextmanager
def _key_by_key() -> Iterator[Iterator[str]]:
    """Have the terminal give every key at once; it is as it was afterwards."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        yield _keys(fd)
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _keys(fd: int) -> Iterator[str]:
    """Yield keys, an arrow's escape sequence as one; ends when the terminal is gone."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    waiting = ""
    while True:
        if not waiting or (waiting[0] == "\x1b" and not _is_whole(waiting)):
            is_alone = bool(waiting) and not select.select([fd], [], [], _PATIENCE)[0]
            if not is_alone:
                part = _read(fd)
                if not part:
                    return
                waiting += decoder.decode(part)
                continue
        length = _length(waiting)
        yield waiting[:length]
        waiting = waiting[length:]


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1024)
    except OSError:  # the terminal was closed
        return b""


def _is_whole(keys: str) -> bool:
    return len(keys) > 2 and (keys[1] == "O" or any("@" <= c <= "~" for c in keys[2:]))


def _length(keys: str) -> int:
    """Return how many characters the first key is."""
    if keys[0] != "\x1b" or len(keys) == 1 or keys[1] not in "[O":
        return 1
    return next((i for i, c in enumerate(keys) if i > 1 and "@" <= c <= "~"), len(keys) - 1) + 1
