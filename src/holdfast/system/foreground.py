"""Runs a program in our place: it has the terminal, the signals and the job control.

It shares our process group, so that what is typed (Ctrl-C, Ctrl-Z, Ctrl-\\) and a new size of the
window reach it from the terminal itself. What is sent to us alone is passed on, and when it stops
we stop, so that the shell has its job back. Signals are waited for: they interrupt nothing here, if
threads that go on meanwhile were started ``without_signals``.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

NOT_FOUND, NOT_RUNNABLE = 127, 126
"""How a shell ends where a program is not there, or may not be run."""

_TYPED = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP})
_HEARD = _TYPED | {
    *(signal.SIGCHLD, signal.SIGCONT, signal.SIGHUP, signal.SIGTERM),
    *(signal.SIGUSR1, signal.SIGUSR2),
}
_CHANGED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class ProgramError(Exception):
    """A program could not be started."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        super().__init__(reason)


@contextmanager
def without_signals() -> Iterator[None]:
    """Let threads be started that no signal is given to: they are for the main thread."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(command: Sequence[str]) -> int:
    """Run a program to its end; return its exit code, or 128 and the number of its signal.

    Files that we were given open are its files too.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else nobody would be told how it ended
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    try:
        code = _wait_for(_start(command, before))
        _forget_what_came()
        return code
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def name_of(code: int) -> str:
    """Return how a program ended, in words: ``exit 1``, ``SIGKILL``."""
    try:
        return signal.Signals(code - 128).name if code > 128 else f"exit {code}"
    except ValueError:
        return f"exit {code}"


def _start(command: Sequence[str], mask: Iterable[int]) -> int:
    given = [os.fspath(each) for each in command]
    if not given[0] or any("\0" in each for each in given):
        raise ProgramError(NOT_FOUND, "that is no name of a program")
    try:
        return _spawn(given, mask)
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # a script that does not say by whom it is run
            return _spawn(["/bin/sh", *given], mask)
        is_missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        code = NOT_FOUND if is_missing else NOT_RUNNABLE
        raise ProgramError(code, error.strerror or str(error)) from error


def _spawn(command: list[str], mask: Iterable[int]) -> int:
    return os.posix_spawnp(
        command[0], command, os.environ, setsigmask=mask, setsigdef=_CHANGED_BY_PYTHON
    )


def _wait_for(child: int) -> int:
    while True:
        number, is_typed = _next_signal()
        if number == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                _stop()
            elif pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        elif not is_typed:
            with suppress(PermissionError):  # it has become another user's
                os.kill(child, number)


def _next_signal() -> tuple[int, bool]:
    """Return the next signal, and whether the terminal sent it: then the program has it too."""
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(_HEARD)
        return info.si_signo, info.si_signo in _TYPED and info.si_code > 0  # from the kernel
    number = signal.sigwait(_HEARD)
    return number, number in _TYPED


def _stop() -> None:
    """Stop as the program did, until somebody lets us go on; nobody could in an orphaned group."""
    os.kill(os.getpid(), signal.SIGTSTP)  # one with what was typed, if that waits too
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})


def _forget_what_came() -> None:
    """Forget what was meant for the program, and came when it had ended."""
    while signal.sigpending() & _HEARD:
        signal.sigwait(_HEARD)
