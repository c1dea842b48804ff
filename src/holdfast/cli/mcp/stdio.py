"""The server on standard input and output: one reads and answers, another thread does the work.

While it serves, whatever prints goes to standard error: standard output is for messages alone.
"""

from __future__ import annotations

import json
import os
import queue
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from holdfast.cli.mcp.json_rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Id,
    RpcError,
    failure,
    id_of,
    message_of,
    parse,
    result,
)
from holdfast.cli.mcp.protocol import Call, Protocol, complete, refused_batch

LARGEST = 16 * 2**20
"""Bytes of a message: a note may be long, but not endless."""
_MOST_WAITING = 64
"""Calls; behind them the client has to wait with what it writes."""
_PART = 2**16

Worker = Callable[[Call | None], dict[str, Any]]
"""Does a call; None is for getting ready."""


@dataclass
class _Job:
    """A call under way, which the client may cancel, or a batch as it came."""

    call: Call | None = None
    batch: list[Any] | None = None
    is_cancelled: bool = False


class Server:
    """Serves one client until it goes."""

    def __init__(self, protocol: Protocol, worker: Worker, reads: int, writes: int) -> None:
        self._protocol = protocol
        self._worker = worker
        self._reads = reads
        self._writes = writes
        self._writing = threading.Lock()
        self._jobs: queue.Queue[_Job | None] = queue.Queue(_MOST_WAITING)
        self._open: dict[str, _Job] = {}
        self._is_warm = False
        self._has_gone = False
        self._gone, self._tells_gone = os.pipe()

    def run(self) -> None:
        """Answer everything that comes, and what is under way when nothing comes any more."""
        thread = threading.Thread(target=self._work, name="holdfast-mcp", daemon=True)
        thread.start()
        try:
            for line in self._lines():
                self._receive(line)
        finally:
            self._jobs.put(None)
            thread.join()
            os.close(self._gone)
            os.close(self._tells_gone)

    def _lines(self) -> Iterator[bytes | None]:
        """Yield what comes line by line; None for one that is too long, which is not kept."""
        kept, is_too_long = bytearray(), False
        while self._is_heard() and (part := self._read()):
            *ended, rest = part.split(b"\n")
            for end in ended:
                whole = bytes(kept) + end
                yield None if is_too_long or len(whole) > LARGEST else whole
                kept, is_too_long = bytearray(), False
            kept += rest
            if len(kept) > LARGEST:
                kept, is_too_long = bytearray(), True
        if kept or is_too_long:
            yield None if is_too_long else bytes(kept)

    def _read(self) -> bytes:
        try:
            return os.read(self._reads, _PART)
        except BlockingIOError:  # it was taken back before it was read
            return self._read() if self._is_heard() else b""
        except OSError:  # a client that was killed resets a socket
            return b""

    def _is_heard(self) -> bool:
        """Wait for what comes; return whether there is still somebody to be answered."""
        return self._gone not in select.select([self._reads, self._gone], [], [])[0]

    def _receive(self, line: bytes | None) -> None:
        if line is None:
            self._send(failure(None, RpcError(PARSE_ERROR, f"a message has {LARGEST} bytes")))
        elif line.strip():
            try:
                value = parse(line)
            except RpcError as error:
                self._send(failure(None, error))
            else:
                self._take(value)

    def _take(self, value: Any) -> None:
        if isinstance(value, list) and self._protocol.takes_batches and value:
            self._jobs.put(_Job(batch=value))
            return
        answer = self._answer(value)
        if isinstance(answer, Call):
            job = _Job(answer)
            self._open[_key(answer.id)] = job
            self._jobs.put(job)
        elif answer is not None:
            self._send(answer)
            self._warm_up(value)

    def _answer(self, value: Any) -> bytes | Call | None:
        """Return the answer to a message, or the call that gives it; None if there is none."""
        try:
            if isinstance(value, list):
                raise refused_batch()
            message = message_of(value)
            if message is None:
                return None
            if message.id is None:
                if message.method == "notifications/cancelled":
                    self._cancel(message.params.get("requestId"))
                return None
            answer = self._protocol.answer(message)
        except RpcError as error:
            is_request = error.code == INVALID_REQUEST or id_of(value) is not None
            return failure(id_of(value), error) if is_request else None
        return answer if isinstance(answer, Call) else result(message.id, answer)

    def _cancel(self, request_id: Any) -> None:
        if isinstance(request_id, (str, int, float)):
            job = self._open.pop(_key(request_id), None)
            if job is not None:
                job.is_cancelled = True

    def _warm_up(self, value: Any) -> None:
        """Get ready behind the list of tools: a call may follow, and nothing waits meanwhile."""
        if not self._is_warm and isinstance(value, dict) and value.get("method") == "tools/list":
            self._is_warm = True
            with suppress(queue.Full):
                self._jobs.put_nowait(_Job())

    def _work(self) -> None:
        """Do one job after the other; nothing more for a client that has gone."""
        while (job := self._jobs.get()) is not None:
            if self._has_gone:
                continue
            if job.batch is not None:
                answers = [each for each in map(self._answered, job.batch) if each is not None]
                if answers:
                    self._send(b"[" + b",".join(answers) + b"]")
            elif job.call is None:
                self._worker(None)
            elif not job.is_cancelled:
                self._carry_out(job, job.call)

    def _carry_out(self, job: _Job, call: Call) -> None:
        """Do a call; what was cancelled meanwhile is done, and not answered."""
        answer = self._called(call)
        self._open.pop(_key(call.id), None)
        if not job.is_cancelled:
            self._send(answer)

    def _answered(self, value: Any) -> bytes | None:
        answer = self._answer(value)
        return self._called(answer) if isinstance(answer, Call) else answer

    def _called(self, call: Call) -> bytes:
        try:
            done = self._worker(call)
            return result(call.id, complete(done) if call.is_stateless else done)
        except Exception as error:  # every request is answered, and the next ones too
            return failure(call.id, RpcError(INTERNAL_ERROR, type(error).__name__))

    def _send(self, message: bytes) -> None:
        """Write a message whole; if nobody reads any more, the server ends."""
        rest = memoryview(message + b"\n")
        with self._writing:
            if self._has_gone:
                return
            try:
                while rest:
                    rest = rest[self._write(rest) :]
            except OSError:
                self._has_gone = True
                os.write(self._tells_gone, b"x")

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._writes, data)
        except BlockingIOError:  # whoever made the pipe wants it so
            select.select([], [self._writes], [])
            return 0


def _key(request_id: Id | None) -> str:
    return json.dumps(request_id)  # 1 and "1" are two


@contextmanager
def own_streams() -> Iterator[tuple[int, int]]:
    """Give what is read and written, and nothing else may read or write meanwhile."""
    reads, writes = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        os.dup2(2 if sys.stderr is not None else nothing, 1)
        yield reads, writes
    finally:
        os.dup2(reads, 0)
        os.dup2(writes, 1)
        for file in (reads, writes, nothing):
            os.close(file)
