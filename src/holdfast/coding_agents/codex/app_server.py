"""Asks Codex itself: requests to ``codex app-server``, one JSON object a line each way."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast._version import __version__
from holdfast.core.short_repr import brief
from holdfast.errors import CodingAgentError

_SECONDS = 20.0
"""Codex answers in a tenth of a second; what takes that much longer will not come."""
_GRACE = 2.0
"""For so long it may take to end."""
_LONGEST = 64 * 2**20


class AppServer:
    """A Codex that answers requests."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._deadline = time.monotonic() + _SECONDS
        self._number = 0
        self._read = b""

    def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to a request; CodingAgentError if there is none, or it is refused."""
        self._number += 1
        self.tell(method, params, id=self._number)
        while True:
            line = self._line(method)
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                continue  # a word on standard output that is none of the protocol's
            if not isinstance(said, dict) or said.get("id") != self._number:
                continue  # a notification
            result = said.get("result")
            if not isinstance(result, dict):
                error = said.get("error")
                why = error.get("message") if isinstance(error, dict) else error
                raise CodingAgentError(f"Codex refused {method}: {brief(why, 200)}")
            return result

    def tell(self, method: str, params: Mapping[str, Any], **more: Any) -> None:
        """Send a message that is not answered."""
        assert self._process.stdin is not None
        text = json.dumps({"method": method, "params": params, **more})
        try:
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._gone(method) from None

    def _line(self, method: str) -> bytes:
        assert self._process.stdout is not None
        out = self._process.stdout.fileno()
        while b"\n" not in self._read:
            left = self._deadline - time.monotonic()
            if left <= 0 or len(self._read) > _LONGEST:
                raise CodingAgentError(f"Codex did not answer {method} within {_SECONDS:.0f} s")
            if select.select([out], [], [], left)[0]:
                part = os.read(out, 2**16)
                if not part:
                    raise self._gone(method)
                self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _gone(self, method: str) -> CodingAgentError:
        return CodingAgentError(
            f"`codex app-server` ended before it answered {method}: run it to see why"
        )


@contextmanager
def app_server(folder: Path) -> Iterator[AppServer]:
    """Start a Codex in a directory that answers requests; it ends with the block."""
    command = shutil.which("codex")
    if command is None:
        raise CodingAgentError("`codex` is not on the PATH")
    process = subprocess.Popen(  # noqa: S603  (the user's own Codex)
        [command, "app-server"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what it starts ends with it
    )
    try:
        server = AppServer(process)
        info = {"name": "holdfast", "title": "Holdfast", "version": __version__}
        server.ask("initialize", {"clientInfo": info})
        server.tell("initialized", {})
        yield server
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it has ended already
        process.stdin.close()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process.stdout.close()
