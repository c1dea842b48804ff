"""Ctrl-C, noted as well as raised.

Where Python runs hooks, as at the end of an import, it only prints what is raised; and what strikes
as a class is made, or within a module written in C, may come out as another exception.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_came = False


def note() -> None:
    """Note interrupts from now on, if they are for this thread and nobody ignores them."""
    global _came
    _came = False
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _print_others


def leave() -> None:
    """Leave them to Python again."""
    if sys.unraisablehook is _print_others:
        sys.unraisablehook = sys.__unraisablehook__
        signal.signal(signal.SIGINT, signal.default_int_handler)


def came() -> bool:
    """Return whether there was one."""
    return _came


def check() -> None:
    """Raise one that was lost."""
    if _came:
        raise KeyboardInterrupt


def _interrupt(_: int, frame: FrameType | None) -> None:
    global _came
    _came = True
    raise KeyboardInterrupt


def _print_others(raised: UnraisableHookArgs) -> None:
    if not issubclass(raised.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(raised)
