"""One way to carry out a plan: a generator that yields what it wants done and is sent the answer.

The plan does no I/O of its own. Whoever drives it answers, at once or by awaiting; an error of the
answer is the plan's to handle, at the line that asked.

>>> from holdfast.system.drive import drive
>>> def doubled_sum():
...     one = yield "one"
...     two = yield "two"
...     return 2 * (one + two)
>>> drive(doubled_sum(), {"one": 1, "two": 2}.get)
6
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def drive(steps: Generator[S, Any, T], answer: Callable[[S], Any]) -> T:
    """Return what a plan returns, each of its steps answered by a call."""
    try:
        step = next(steps)
        while True:
            try:
                found = answer(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(found)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()


async def drive_async(steps: Generator[S, Any, T], answer: Callable[[S], Awaitable[Any]]) -> T:
    """Return what a plan returns, each of its steps answered by an await."""
    try:
        step = next(steps)
        while True:
            try:
                found = await answer(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(found)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()
