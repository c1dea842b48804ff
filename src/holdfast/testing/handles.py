"""The contract of handles: opened again, opened twice, closed, and used by many threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.errors import (
    CheckpointConflictError,
    MissingBaseError,
    MissingParentError,
    StoreClosedError,
)
from holdfast.stores.base import Query, Store
from holdfast.stores.capabilities import removals_of, tick_of
from holdfast.testing.samples import (
    NEVER_SAVED,
    ids,
    keep,
    large_state,
    make_commit,
    state_of,
)
from holdfast.testing.suite import OpenStore, Suite

THREADS = 8
USES: dict[str, Callable[[Store], Any]] = {
    "commit": lambda store: store.commit(make_commit()),
    "load": lambda store: store.load(NEVER_SAVED),
    "fetch": lambda store: store.fetch([b"\x00" * 20]),
    "notes": lambda store: store.notes(None),
    "match": lambda store: store.match("", 1),
    "query": lambda store: store.query(Query()),
    "heads": lambda store: store.heads(),
    "tick": lambda store: store.stats() if tick_of(store) is None else None,
    "removals": lambda store: store.stats() if removals_of(store) is None else None,
    "delete": lambda store: store.delete([NEVER_SAVED]),
    "sweep": lambda store: store.sweep(datetime.now(UTC)),
    "collect": lambda store: store.collect([], datetime.now(UTC), False),
    "stats": lambda store: store.stats(),
}


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Return what all threads return, or the error of the first that failed."""
    start = threading.Barrier(THREADS)

    def run(number: int) -> Any:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(run, range(THREADS)))


class HandleSuite(Suite):
    """Tests of opening, closing and sharing a store."""

    @pytest.mark.parametrize("use", USES)
    def test_a_closed_store_says_so(self, store: Store, use: str) -> None:
        store.close()

        with pytest.raises(StoreClosedError, match="closed"):
            USES[use](store)

    def test_closing_twice_does_nothing(self, store: Store) -> None:
        store.close()
        store.close()

    def test_leaving_a_with_block_closes(self, open_store: OpenStore) -> None:
        with open_store() as store:
            keep(store, make_commit())

        with pytest.raises(StoreClosedError):
            store.stats()

    def test_a_store_opened_again_holds_what_it_held(self, open_store: OpenStore) -> None:
        with open_store() as store:
            commits = keep(store, make_commit(large_state()), make_commit(session_id="other"))
            heads, stats = store.heads(), store.stats()

        with open_store() as again:
            if not self.persistent:
                assert again.query(Query()) == []
                return
            assert ids(again.query(Query())) == ids(reversed(commits))
            assert again.heads() == heads
            assert again.stats() == stats
            assert state_of(again.load(commits[0].info.checkpoint_id)) == large_state()

    def test_a_second_handle_sees_at_once_what_the_first_commits(
        self, open_store: OpenStore
    ) -> None:
        if not self.persistent:
            return
        with open_store() as store, open_store() as other:
            assert other.query(Query()) == []

            (commit,) = keep(store, make_commit(large_state()))

            assert other.query(Query()) == [commit.info]
            assert state_of(other.load(commit.info.checkpoint_id)) == large_state()
            with pytest.raises(CheckpointConflictError):
                other.commit(commit)

    def test_a_second_handle_may_go_on_from_what_the_first_committed(
        self, open_store: OpenStore
    ) -> None:
        if not self.persistent:
            return
        with open_store() as store, open_store() as other:
            (first,) = keep(store, make_commit(large_state()))
            base = first if store.shares_chunks else None
            (second,) = keep(
                other,
                make_commit(large_state(1), base=base, parent_id=first.info.checkpoint_id),
            )

            assert store.query(Query()) == [second.info, first.info]
            assert state_of(store.load(second.info.checkpoint_id)) == large_state(1)

    def test_what_another_handle_removed_is_neither_base_nor_parent(
        self, open_store: OpenStore
    ) -> None:
        if not self.persistent:
            return
        with open_store() as store, open_store() as other:
            (first,) = keep(store, make_commit(large_state()))
            assert other.delete(ids([first])) == 1

            with pytest.raises(MissingBaseError):
                store.commit(make_commit(large_state(1), base=first))
            with pytest.raises(MissingParentError):
                store.commit(make_commit(parent_id=first.info.checkpoint_id))
            assert store.query(Query()) == []

    def test_what_another_handle_removed_is_told(self, open_store: OpenStore) -> None:
        if not self.persistent:
            return
        with open_store() as store, open_store() as other:
            (first,) = keep(store, make_commit())
            before = removals_of(store)
            if before is None:
                return
            other.delete(ids([first]))

            assert removals_of(store) != before

    def test_closing_one_handle_leaves_the_other_open(self, open_store: OpenStore) -> None:
        with open_store() as store:
            with open_store() as other:
                other.stats()
            keep(store, make_commit())

            assert store.stats().checkpoints == 1

    def test_many_threads_commit_at_once_and_nothing_is_lost(self, store: Store) -> None:
        def work(number: int) -> list[str]:
            parent = None
            done = []
            for step in range(12):
                commit = make_commit(
                    {"thread": number, "step": step}, session_id=str(number), parent_id=parent
                )
                store.commit(commit)
                parent = commit.info.checkpoint_id
                done.append(parent)
            return done

        chains = at_once(work)

        for number, chain in enumerate(chains):
            listed = store.query(Query(session_id=str(number)))
            assert ids(listed) == chain[::-1]
            assert [info.parent_id for info in listed] == [*chain[-2::-1], None]
            for step, checkpoint_id in enumerate(chain):
                assert state_of(store.load(checkpoint_id)) == {"thread": number, "step": step}

    def test_one_id_committed_by_many_threads_is_kept_once(self, store: Store) -> None:
        def work(number: int) -> int | None:
            commit = make_commit(
                {"thread": number}, checkpoint_id=NEVER_SAVED, session_id=f"of {number}"
            )
            try:
                store.commit(commit)
            except CheckpointConflictError:
                return None
            return number

        winners = [number for number in at_once(work) if number is not None]

        assert len(winners) == 1
        assert state_of(store.load(NEVER_SAVED)) == {"thread": winners[0]}
        assert len(store.query(Query())) == 1

    def test_threads_read_whole_records_while_others_write_and_remove(self, store: Store) -> None:
        def write(number: int) -> None:
            for step in range(6):
                (commit,) = keep(store, make_commit(large_state(step), session_id=str(number)))
                if step % 2:
                    store.delete(ids([commit]))

        def read(number: int) -> None:
            for _ in range(6):
                for info in store.query(Query(limit=3)):
                    record = store.load(info.checkpoint_id)
                    assert record is None or "messages" in state_of(record)
                store.heads()
                store.stats()

        at_once(lambda number: write(number) if number % 2 else read(number))

        assert len(store.query(Query())) == 3 * THREADS // 2
