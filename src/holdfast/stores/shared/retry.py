"""Trying again: which errors, how often, how long, and what is waited in between.

A store has rules; an operation has attempts, which count against them. Threads sleep and tasks
await, and nothing else differs between the two.

>>> from holdfast.stores.shared.retry import Attempts, Rule, retry
>>> answers = iter([ConnectionError("cut"), "here"])
>>> def ask():
...     answer = next(answers)
...     if isinstance(answer, Exception):
...         raise answer
...     return answer
>>> lost = Rule(lambda error: isinstance(error, ConnectionError), attempts=3)
>>> retry(Attempts([lost]), ask)
'here'
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Errors after which the same may go well, and for how long it is tried."""

    is_passing: Callable[[Exception], bool]
    attempts: int | None = None
    """How many are made at most."""
    seconds: float | None = None
    """How long after the first one another is begun."""
    at_least: int = 1
    """How many are made although the seconds have passed."""
    shortest: float = 0.0
    """Seconds that are waited after the first failure, at most; each time twice as many."""
    longest: float = 0.0
    """And never more than these."""
    steady: float = 0.0
    """Which part of a wait is not left to chance, from 0 to 1."""


class Attempts:
    """How often an operation was tried, and whether it may be once more."""

    __slots__ = ("_begun", "_explain", "_failures", "_rules")

    def __init__(
        self,
        rules: Sequence[Rule],
        explain: Callable[[Exception], Exception] = lambda error: error,
    ) -> None:
        self._rules = rules
        self._explain = explain
        self._failures: dict[Rule, int] = {}
        self._begun = time.monotonic()

    def has_met(self, rule: Rule) -> bool:
        """Return whether an attempt failed and was begun anew by this rule."""
        return rule in self._failures

    def failed(self, error: Exception) -> float:
        """Return how many seconds to wait before the next attempt; if there is none, raise why."""
        for rule in self._rules:
            if rule.is_passing(error):
                failures = self._failures.get(rule, 0) + 1
                if self._may_try(rule, failures + 1):
                    self._failures[rule] = failures
                    return _wait(rule, failures)
        raised = self._explain(error)
        if raised is error:
            raise error
        raise raised from error

    def _may_try(self, rule: Rule, attempt: int) -> bool:
        if rule.attempts is not None and attempt > rule.attempts:
            return False
        late = rule.seconds is not None and time.monotonic() - self._begun > rule.seconds
        return not late or attempt <= rule.at_least


def _wait(rule: Rule, failures: int) -> float:
    wait = min(rule.shortest * 2.0 ** min(failures - 1, 64), rule.longest)
    return random.uniform(rule.steady * wait, wait)  # noqa: S311


def retry(attempts: Attempts, work: Callable[[], T]) -> T:
    """Return what the work returns, done again in this thread for as long as its rules say."""
    while True:
        try:
            return work()
        except Exception as error:
            wait = attempts.failed(error)
        time.sleep(wait)


async def retry_async(attempts: Attempts, work: Callable[[], Awaitable[T]]) -> T:
    """Return what the work returns, done again on the running loop for as long as its rules say."""
    import asyncio

    while True:
        try:
            return await work()
        except Exception as error:
            wait = attempts.failed(error)
        await asyncio.sleep(wait)
