"""What is printed: lines or JSON, with colours, a pager and the width of the terminal."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import FAILED, Refused, code_of, error_json
from holdfast.cli.output.escaping import json_text, painted, printable
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH_OF_A_PIPE = 100


class Terminal:
    """Where a command prints: nothing is written before it is whole, so that it can be paged."""

    def __init__(self, options: Namespace) -> None:
        self.json = bool(options.json)
        self.is_terminal = sys.stdout.isatty()
        self.colored = _is_colored(options.color, self.is_terminal)
        self.unicode = _speaks_unicode()
        self.yes = bool(getattr(options, "yes", False))
        self._pages = self.is_terminal and not options.no_pager and not self.json
        self._lines: list[str] = []

    @property
    def width(self) -> int:
        """How long lines may be; on a pipe as long as they are, unless COLUMNS says otherwise."""
        if self.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
            return _size().columns
        return 10**6

    @property
    def height(self) -> int:
        """How many lines there is room for; on a pipe as many as there are."""
        return _size().lines if self.is_terminal else 10**6

    def paint(self, text: str, style: str) -> str:
        """Return text in a colour, where there are colours."""
        return painted(text, style) if self.colored and text else text

    def line(self, text: str = "") -> None:
        """Print a line, when the command has ended."""
        self._lines.append(text)

    def lines(self, text: str) -> None:
        """Print lines, when the command has ended."""
        self._lines += text.splitlines()

    def emit(self, data: Any) -> None:
        """Print the answer as JSON."""
        print(json_text(data, 2, self.unicode))

    def emit_line(self, data: Any) -> None:
        """Print one of many answers at once, as JSON on a line of its own."""
        print(json_text(data, None, self.unicode), flush=True)

    def now(self, line: str) -> None:
        """Print a line at once, for what is followed live."""
        print(printable(line, self.colored), flush=True)

    def hint(self, text: str) -> None:
        """Say something beside the answer."""
        print(printable(f"holdfast: {text}"), file=sys.stderr)

    def flush(self) -> None:
        """Print all lines, through a pager if they are many and there is a terminal."""
        text = "".join(f"{printable(line, self.colored)}\n" for line in self._lines)
        self._lines = []
        if not text:
            return  # writing nothing fails where nobody reads
        if not self._pages or text.count("\n") < self.height or not _page(text):
            sys.stdout.write(text)

    def confirm(self, question: str) -> None:
        """Go on only if the user agrees: with --yes, or when asked on a terminal."""
        if self.yes:
            return
        self.flush()  # what would be done is shown in any case
        if self.json or not (sys.stdin.isatty() and self.is_terminal):
            raise Refused(f"{question} Nothing was changed: pass --yes to do it")
        try:
            answer = input(printable(f"{question} [y/N] ")).strip().lower()
        except EOFError:
            answer = ""
        if answer not in ("y", "yes"):
            raise Refused("nothing was changed")

    def progress(self, what: str) -> Callable[[int, int | None], None] | None:
        """Return what shows how far a long command is; None if nobody can see it."""
        from holdfast.system import progress_bar

        return progress_bar.Bar(what) if progress_bar.is_seen() else None

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Show how long work takes that does not say how far it is."""
        from holdfast.system import progress_bar

        return progress_bar.seconds(what) if progress_bar.is_seen() else nullcontext()


def report(error: HoldfastError | OSError, as_json: bool) -> int:
    """Say what went wrong; returns the exit code."""
    code = code_of(error) if isinstance(error, HoldfastError) else FAILED
    if as_json:
        print(json_text(error_json(error)), file=sys.stderr)
    else:
        print(printable(f"holdfast: {error}"), file=sys.stderr)
    return code


def _size() -> os.terminal_size:
    from shutil import get_terminal_size  # which imports much that a pipe does not need

    return get_terminal_size((WIDTH_OF_A_PIPE, 24))


def _is_colored(wanted: str, is_terminal: bool) -> bool:
    if wanted != "auto":
        return wanted == "always"
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _speaks_unicode() -> bool:
    # A name that cannot be shown is escaped; the command goes on.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        "○│├─╯→…".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _page(text: str) -> bool:
    """Show text in a pager; False if there is none."""
    import shlex
    import subprocess
    from shutil import which

    command = os.environ.get("HOLDFAST_PAGER", os.environ.get("PAGER", "less -FRX"))
    words = shlex.split(command)
    if not words or words == ["cat"] or which(words[0]) is None:
        return False
    environment = {"LESS": "FRX", **os.environ}
    with subprocess.Popen(  # noqa: S603  (the user's own pager)
        words, stdin=subprocess.PIPE, env=environment, text=True, errors="backslashreplace"
    ) as pager:
        assert pager.stdin is not None
        try:
            pager.stdin.write(text)
            pager.stdin.close()
        except BrokenPipeError:
            pass  # it was left before the end
    return True
