"""What ``holdfast hook`` runs to record an event: as little as possible, as an agent waits for it.

It tells the helper of the project (``resident``), and records by itself where there is none.
Whatever happens, it says so in an ``Outcome`` and in the log, and never raises.
"""

from __future__ import annotations

import os

from holdfast._version import __version__
from holdfast.coding_agents.hook_options import HookOptions, read_options
from holdfast.coding_agents.hook_project import folder_of
from holdfast.coding_agents.resident.messages import DONE, LARGEST_EVENT, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SILENCE = 10.0
"""Seconds in which an agent has to begin, or go on, to tell its event."""
OFF = ("off", "0", "no", "false")


class Outcome:
    """What became of an event."""

    def __init__(self, recorded: str = "", problem: str = "") -> None:
        self.recorded = recorded
        """As JSON."""
        self.problem = problem
        """Why it was not recorded, if it was not."""


def record(words: Sequence[str]) -> Outcome:
    """Record the event on standard input."""
    options, folder = HookOptions(), "."
    try:
        options = read_options(words)
        event = _event()
        folder = folder_of(options, event)
        return _record(options, folder, words, event)
    except BaseException as error:
        return Outcome(problem=_noted(options.program, folder, error))


def _record(options: HookOptions, folder: str, words: Sequence[str], event: bytes) -> Outcome:
    event_id = os.urandom(16).hex()
    if os.environ.get("HOLDFAST_HOOK_HELPER", "").lower() not in OFF:
        from holdfast.coding_agents.resident.asking import tell
        from holdfast.coding_agents.resident.meeting import Meeting, NoHelperError

        try:
            request = Request(
                version=__version__,
                event_id=event_id,
                folder=folder,
                words=list(words),
                event=event,
            )
            answer = tell(Meeting.of(folder, options.store), folder, request.pack())
        except NoHelperError as error:
            _noted("helper", folder, error)
        else:
            # What it could not do it has noted itself.
            is_done = answer.kind == DONE
            return Outcome(answer.text) if is_done else Outcome(problem=answer.text)
    from holdfast.coding_agents.recording import record_here

    return Outcome(record_here(options, folder, event, event_id))


def _event() -> bytes:
    """Return what is on standard input; an agent that keeps it open is not waited for."""
    from select import select

    parts: list[bytes] = []
    size = 0
    while True:
        try:
            if not os.isatty(0) and not select([0], [], [], SILENCE)[0]:
                raise TimeoutError(f"the hook was told nothing for {SILENCE:g} s")
            part = os.read(0, 2**20)
        except TimeoutError:
            raise
        except OSError as error:
            raise OSError(f"the hook has no standard input ({error.strerror})") from error
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > LARGEST_EVENT:
            raise OSError(f"the hook was told more than {LARGEST_EVENT // 10**6} MB: no event")


def _noted(program: str, folder: str, error: BaseException) -> str:
    """Return what went wrong in words, written down."""
    from holdfast.coding_agents.hook_log import HookLog, is_fault, words_of

    if is_fault(error) and os.environ.get("HOLDFAST_DEBUG"):
        import traceback

        traceback.print_exception(error)
    text = words_of(error)
    HookLog.of(folder).problem(program, text)
    return text
