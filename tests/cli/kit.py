"""The real command, on pipes and on a real terminal."""

import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).with_name("golden")
SECONDS = 50
_LEFT_OUT = ("HOLDFAST_URL", "NO_COLOR", "PAGER", "HOLDFAST_PAGER", "COLUMNS", "LINES", "LESS")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def environment(**variables: str) -> dict[str, str]:
    """That of the tests, without what changes how the command prints."""
    kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    return {**kept, "PYTHONUTF8": "1", "TERM": "xterm", **variables}


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Holdfast:
    """The command in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *arguments: str, given: str = "", **variables: str) -> Done:
        """Run it on pipes."""
        done = self._python("-m", "holdfast", *arguments, given=given, **variables)
        assert "Traceback" not in done.err, done.err
        return done

    def within(self, script: str) -> Done:
        """Run a script that calls it."""
        return self._python("-c", script)

    def _python(self, *arguments: str, given: str = "", **variables: str) -> Done:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.directory,
            env=environment(**variables),
            input=given,
            capture_output=True,
            text=True,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str, **variables: str) -> str:
        """Run it, see that it went well, and return what it printed."""
        done = self(*arguments, **variables)
        assert done.code == 0, done.err
        return done.out

    def json(self, *arguments: str) -> Any:
        """What it answers in JSON."""
        return json.loads(self.ok(*arguments, "--json"))

    def on_terminal(
        self,
        *arguments: str,
        answer: str = "",
        columns: int = 100,
        lines: int = 50,
        **variables: str,
    ) -> Done:
        """Run it in a terminal; the answer is typed when it asks."""
        ours, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        with subprocess.Popen(
            [sys.executable, "-m", "holdfast", *arguments],
            cwd=self.directory,
            env=environment(**variables),
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
        ) as process:
            os.close(its)
            said = _conversation(ours, answer, process)
            code = process.wait()
        os.close(ours)
        return Done(code, said.replace("\r\n", "\n"))


def _conversation(terminal: int, answer: str, process: subprocess.Popen[bytes]) -> str:
    said = b""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 1)
        if not ready:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other side was closed
            break
        said += part
        if answer and b"[y/N]" in said:
            os.write(terminal, f"{answer}\n".encode())
            answer = ""
    else:
        process.send_signal(signal.SIGKILL)
    return said.decode()


def normal(text: str, directory: Path | None = None) -> str:
    """Output in which what differs from run to run is named by what it is."""
    known: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return known.setdefault(match[0], f"<id {len(known) + 1}>")

    text = _ID.sub(number, text)
    text = re.sub(r"\b[0-9a-f]{12,32}\b", "<end>", text)
    text = re.sub(r"\b[0-9a-f]{8}\b", "<end>", text)
    # Columns of listings are as wide as ids are long.
    text = re.sub(r"(?m)^.*<end>  .*$", lambda line: re.sub(r"(?<=\S) {2,}", "  ", line[0]), text)
    text = re.sub(
        r"( {2,})?\d+[smhd] ago *", lambda found: f"{'  ' if found[1] else ''}<age> ", text
    )
    text = re.sub(r" +\d+(\.\d)? k?B\b", " <size>", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>", text)
    text = re.sub(r"(?m) +$", "", text)
    return text.replace(str(directory), "<here>") if directory is not None else text


def golden(name: str, text: str) -> None:
    """Compare with what is kept; HOLDFAST_GOLDEN=write keeps it anew."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("HOLDFAST_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
