"""What each event loop has of its own: made once, ended with its loop, left alone by a fork."""

import asyncio
import os
import threading
from itertools import count

import pytest

from holdfast.stores.shared.per_loop import PerLoop


def test_a_loop_gets_the_same_each_time_and_another_loop_its_own() -> None:
    numbers = count()
    held = PerLoop(lambda: next(numbers))

    async def twice() -> tuple[int, int]:
        return held.get(), held.get()

    assert asyncio.run(twice()) == (0, 0)
    assert asyncio.run(twice()) == (1, 1)


def test_that_of_a_closed_loop_is_ended_when_another_loop_comes() -> None:
    numbers, ended = count(), list[int]()
    held = PerLoop(lambda: next(numbers), end=ended.append)

    async def get() -> int:
        return held.get()

    asyncio.run(get())
    assert ended == []
    asyncio.run(get())

    assert ended == [0]
    assert held.take_all() == [1]
    assert held.take_all() == []


def test_loops_of_two_threads_are_kept_apart_at_once() -> None:
    numbers, together = count(), threading.Barrier(2)
    held = PerLoop(lambda: next(numbers))
    got: list[int] = []

    async def get() -> None:
        got.append(held.get())
        together.wait(30)
        assert held.find() == got[got.index(held.get())]

    threads = [threading.Thread(target=lambda: asyncio.run(get())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(got) == [0, 1]


def test_where_it_is_too_late_for_one_nothing_is_kept() -> None:
    def refuse() -> int:
        raise ValueError("closed")

    held = PerLoop(refuse)

    async def get() -> None:
        with pytest.raises(ValueError, match="closed"):
            held.get()
        assert held.find() is None

    asyncio.run(get())


def test_a_forked_child_leaves_what_was_copied_and_begins_anew() -> None:
    left: list[str] = []
    held = PerLoop(lambda: "parent's", leave=left.append)

    async def get() -> None:
        held.get()
        child = os.fork()
        if child == 0:
            os._exit(0 if left == ["parent's"] and held.take_all() == [] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert held.find() == "parent's"

    asyncio.run(get())
    assert left == []
