"""A terminal for programs that want one: what they show is read, and keys are pressed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_CONTROL = re.compile(
    rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    rb"|\x1b[()][A-Z0-9]|\x1b[=>78MDEHc]"
)
_ANSWERS = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;c",
    b"\x1b]10;?": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b[?u": b"\x1b[?0u",
}
"""What a program asks a terminal, and what one answers."""


class Terminal:
    """A program that runs in a terminal of its own, and is killed in the end."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._own)

    @property
    def text(self) -> str:
        """What was shown so far, without spaces: a program draws words in pieces."""
        return "".join(_CONTROL.sub(b"", self._shown).decode(errors="replace").split())

    def press(self, keys: str) -> None:
        """Type something."""
        os.write(self._own, keys.encode())

    def wait(self, is_there: Callable[[], bool], seconds: float = 60) -> None:
        """Read what is shown until something is the case."""
        deadline = time.monotonic() + seconds
        while not is_there():
            assert time.monotonic() < deadline, self.text[-2000:]
            if select.select([self._own], [], [], 0.1)[0]:
                part = os.read(self._own, 2**16)
                self._shown += part
                for asked, answer in _ANSWERS.items():
                    if asked in part:
                        os.write(self._own, answer)

    def shows(self, words: str) -> None:
        """Wait until words are shown."""
        self.wait(lambda: "".join(words.split()) in self.text)
