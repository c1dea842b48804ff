"""Ctrl-C at a chosen moment: the exception arises where Python looks for signals.

That is as a function of Python begins, and after a call of one that is written in C.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType
from typing import Any

Moments = Callable[[FrameType, str], bool]


def interrupted(work: Callable[[], Any], moments: Moments, at: int) -> bool:
    """Do the work, interrupted at one of the moments, counted from 0; whether that came.

    It returns where Python lost the exception, as in the end of a generator that is given up.
    """
    left = at

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if moments(frame, event):
            left -= 1
            if left == -1:
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:  # not by a context manager, of which each end would be a moment, too
        sys.setprofile(before)
    return left < 0


def anywhere(_: FrameType, event: str) -> bool:
    """Every moment at which an interrupt may strike."""
    return event in ("call", "c_return")


def entering(function: Callable[..., Any]) -> Moments:
    """The moments before the first line of this function."""
    return lambda frame, event: event == "call" and frame.f_code is function.__code__


def interruptions(begin: Callable[[], Callable[[], Any]]) -> Iterator[BaseException]:
    """Begin something, do it, and again, each time interrupted a moment later, until it is done.

    What each raised is given out, and kept, as debuggers and notebooks keep it.
    """
    kept: list[BaseException] = []
    for at in count():
        work = begin()
        try:
            if not interrupted(work, anywhere, at):
                break
        except BaseException as raised:
            kept.append(raised)
            yield raised
    kept.clear()
    gc.collect()  # what was left open is told of here, and not in the next test
