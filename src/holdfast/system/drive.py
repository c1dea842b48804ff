"""Carrying out a generator that yields what it wants done and is sent the answer.

Whatever goes wrong with an answer is raised inside the generator, which may know what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def drive(steps: Generator[S, Any, T], answer: Callable[[S], Any]) -> T:
    """Carry out all steps with a function that answers each, and return the result."""
    try:
        step = next(steps)
        while True:
            try:
                answered = answer(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(answered)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()


async def drive_async(steps: Generator[S, Any, T], answer: Callable[[S], Awaitable[Any]]) -> T:
    """Do what ``drive`` does, awaiting each answer."""
    try:
        step = next(steps)
        while True:
            try:
                answered = await answer(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(answered)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()
