"""The lock between noting calls and making a checkpoint."""

from typing import Any

from holdfast.runtime.steps import Plan
from holdfast.session.shared_lock import SharedLock


def is_had(plan: Plan[None]) -> bool:
    """Return whether a plan to have the lock ends at once, without a rest."""
    return next(plan, None) is None


def test_many_share_it_and_one_has_it_alone() -> None:
    lock = SharedLock()
    assert is_had(lock.share())
    assert is_had(lock.share())
    alone: Any = lock.take()
    assert next(alone) is not None

    assert not is_had(lock.share())  # who waits to have it alone is not overtaken
    lock.unshare()
    assert next(alone) is not None
    lock.unshare()

    assert next(alone, None) is None
    assert not is_had(lock.take())
    lock.give_back()
    assert is_had(lock.share())


def test_one_who_is_interrupted_while_waiting_to_have_it_alone_keeps_nobody_out() -> None:
    lock = SharedLock()
    assert is_had(lock.share())
    alone: Any = lock.take()
    next(alone)

    alone.close()

    assert is_had(lock.share())
    lock.unshare()
    lock.unshare()
    assert is_had(lock.take())
