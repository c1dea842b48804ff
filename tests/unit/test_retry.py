"""Trying again: as often and as long as the rules say, in threads and on event loops alike."""

import asyncio
from collections.abc import Callable

import pytest

from holdfast.stores.shared.retry import Attempts, Rule, retry, retry_async


class Failing:
    """Work that fails with these errors, one after the other, and then returns how often it ran."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.runs = 0

    def __call__(self) -> int:
        self.runs += 1
        if self._errors:
            raise self._errors.pop(0)
        return self.runs


def of(kind: type[Exception]) -> Callable[[Exception], bool]:
    return lambda error: isinstance(error, kind)


def run(face: str, attempts: Attempts, work: Failing) -> int:
    if face == "sync":
        return retry(attempts, work)

    async def awaited() -> int:
        return work()

    return asyncio.run(retry_async(attempts, awaited))


@pytest.fixture(params=["sync", "async"])
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_passes_is_tried_until_it_goes_well(face: str) -> None:
    rule = Rule(of(ConnectionError), attempts=5)

    assert run(face, Attempts([rule]), Failing(ConnectionError(), ConnectionError())) == 3


def test_no_more_attempts_are_made_than_the_rule_allows(face: str) -> None:
    rule, work = Rule(of(ConnectionError), attempts=2), Failing(*[ConnectionError()] * 9)

    with pytest.raises(ConnectionError):
        run(face, Attempts([rule]), work)

    assert work.runs == 2


def test_another_error_is_raised_at_once(face: str) -> None:
    work = Failing(ValueError("wrong"))

    with pytest.raises(ValueError, match="wrong"):
        run(face, Attempts([Rule(of(ConnectionError), attempts=9)]), work)

    assert work.runs == 1


def test_each_rule_counts_its_own_failures(face: str) -> None:
    missing, other = Rule(of(KeyError), attempts=3), Rule(of(LookupError), attempts=2)
    attempts = Attempts([missing, other])

    assert run(face, attempts, Failing(KeyError(), LookupError(), KeyError())) == 4
    assert attempts.has_met(missing)
    assert attempts.has_met(other)


def test_at_least_so_many_attempts_are_made_although_the_time_is_over(face: str) -> None:
    rule = Rule(of(ConnectionError), seconds=-1, at_least=2)
    work = Failing(*[ConnectionError()] * 9)

    with pytest.raises(ConnectionError):
        run(face, Attempts([rule]), work)

    assert work.runs == 2


def test_the_last_error_is_told_in_the_stores_own_words(face: str) -> None:
    lost = ConnectionError("cut")

    with pytest.raises(RuntimeError, match="the store is gone") as told:
        run(face, Attempts([], lambda error: RuntimeError("the store is gone")), Failing(lost))

    assert told.value.__cause__ is lost


def test_waits_double_up_to_the_longest_and_are_partly_left_to_chance() -> None:
    rule = Rule(of(ConnectionError), shortest=1, longest=4, steady=0.5)
    attempts = Attempts([rule])

    waits = [attempts.failed(ConnectionError()) for _ in range(5)]

    for wait, most in zip(waits, [1, 2, 4, 4, 4], strict=True):
        assert most / 2 <= wait <= most
