"""The hook's side: it tells the helper of its project, and waits for what becomes of the event."""

from __future__ import annotations

import os
import time
from _socket import AF_UNIX, SOCK_STREAM, socket  # `socket` takes as long to import as Python

from holdfast.coding_agents.resident.meeting import Meeting, NoHelperError
from holdfast.coding_agents.resident.messages import AGAIN, Answer

SILENCE = 2.0
"""Seconds without a sign of life."""
LONGEST = 30.0
"""Seconds that a hook waits at most; the helper goes on."""
_ATTEMPTS = 4


class NobodyThereError(Exception):
    """No helper listens."""


class SilentError(OSError):
    """The helper does not answer, or has not come to an end."""


def tell(meeting: Meeting, folder: str, message: bytes) -> Answer:
    """Tell the helper of a project an event, once more where one ended meanwhile."""
    try:
        for _ in range(_ATTEMPTS):
            answer = _ask_or_start(meeting, folder, message)
            if answer.kind != AGAIN:
                return answer
    except (NoHelperError, SilentError):
        raise
    except OSError as error:  # a sandbox may forbid sockets
        raise NoHelperError(f"its helper cannot be reached: {error}") from error
    raise NoHelperError(f"its helper ended {_ATTEMPTS} times before it had recorded the event")


def _ask_or_start(meeting: Meeting, folder: str, message: bytes) -> Answer:
    try:
        return _ask(meeting, message)
    except NobodyThereError:
        from holdfast.coding_agents.resident.starting import start

        start(meeting, folder)
        return Answer(AGAIN)


def _ask(meeting: Meeting, message: bytes) -> Answer:
    try:
        place = os.stat(meeting.socket)
    except FileNotFoundError:
        raise NobodyThereError from None
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(SILENCE)
        try:
            connection.connect(meeting.socket)
        except (FileNotFoundError, ConnectionRefusedError):
            raise NobodyThereError from None
        try:
            connection.sendall(message)
            return _answer(connection)
        except ConnectionError:  # it was killed
            return Answer(AGAIN)
    except (TimeoutError, BlockingIOError):
        _give_up(meeting, place, connection)
        raise SilentError(
            f"the helper of {meeting.socket} has been silent for {SILENCE:g} s: the event was "
            "not recorded, the next one gets another helper"
        ) from None
    finally:
        connection.close()


def _answer(connection: socket) -> Answer:
    end = time.monotonic() + LONGEST
    said = b""
    while time.monotonic() < end:
        part = connection.recv(2**16)
        if not part:
            return Answer(AGAIN)
        said += part
        answer = Answer.unpack(said)
        if answer is not None:
            return answer
    raise SilentError(
        f"recording has taken more than {LONGEST:g} s: it goes on, but the agent waits no longer"
    )


def _give_up(meeting: Meeting, place: os.stat_result, connection: socket) -> None:
    """Let the next hook start another helper; this one ends when it can."""
    import signal

    try:
        if not os.path.samestat(os.stat(meeting.socket), place):
            return  # another hook has done so
        os.unlink(meeting.socket)
    except FileNotFoundError:
        return
    from holdfast.coding_agents.resident.agents import peer_of

    peer = peer_of(connection)
    if peer is not None:
        os.kill(peer, signal.SIGTERM)
        os.kill(peer, signal.SIGCONT)
