"""The contract of ``delete``, ``sweep`` and ``collect``: nothing that is needed is ever removed."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from holdfast.stores.base import Collected, Commit, NotesOnly, Query, Store
from holdfast.stores.capabilities import ListsRoots, removals_of, tick_of
from holdfast.testing.commits import is_absent
from holdfast.testing.samples import (
    NEVER_SAVED,
    expired,
    ids,
    keep,
    large_state,
    make_commit,
    make_note,
    state_of,
)
from holdfast.testing.suite import Suite

LATER = timedelta(days=1)


def now() -> datetime:
    return datetime.now(UTC)


def size_of(commit: Commit) -> int:
    return sum(map(len, commit.chunks.values()))


def roots_of(commits: Collection[Commit]) -> set[bytes]:
    return {bytes.fromhex(commit.info.content_id) for commit in commits}


class _Said:
    """Says of a name whether it is needed, and nothing else."""

    def __init__(self, names: Collection[bytes]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return name in self._names


class UpkeepSuite(Suite):
    """Tests of what removes records and chunks."""

    def test_a_deleted_record_is_gone(self, store: Store) -> None:
        gone, stays = keep(store, make_commit(session_id="one"), make_commit(session_id="two"))

        assert store.delete(ids([gone])) == 1

        assert is_absent(store, gone.info)
        assert [head.session_id for head in store.heads()] == ["two"]
        assert store.query(Query()) == [stays.info]
        assert store.stats().checkpoints == 1

    def test_a_store_that_tells_of_changes_misses_none(self, store: Store) -> None:
        seen = [tick_of(store)]
        if seen == [None]:
            return
        assert tick_of(store) == seen[0]

        (made,) = keep(store, make_commit())
        seen.append(tick_of(store))
        store.commit(NotesOnly((make_note("/log"),), {}))
        seen.append(tick_of(store))
        store.delete(ids([made]))
        seen.append(tick_of(store))

        assert len(set(seen)) == 4

    def test_a_store_that_tells_of_removals_misses_none(self, store: Store) -> None:
        seen = [removals_of(store)]
        if seen == [None]:
            return
        gone, _ = keep(store, make_commit(), make_commit(**expired()))
        assert removals_of(store) == seen[0]

        store.delete(ids([gone]))
        seen.append(removals_of(store))
        store.sweep(now())
        seen.append(removals_of(store))
        store.collect([], now() + LATER, dry_run=False)
        seen.append(removals_of(store))

        assert len(set(seen)) == 4
        assert removals_of(store) == seen[-1]

    def test_only_records_that_were_there_are_counted(self, store: Store) -> None:
        first, second = keep(store, make_commit(), make_commit())

        assert store.delete([NEVER_SAVED, "no such id"]) == 0
        assert store.delete([]) == 0
        assert store.delete(ids([first, second, first])) == 2
        assert store.delete(ids([first])) == 0

    def test_expired_records_can_be_deleted(self, store: Store) -> None:
        commits = keep(store, make_commit(**expired()))

        assert store.delete(ids(commits)) == 1
        assert store.match("", 10) == []

    def test_records_that_share_chunks_with_a_deleted_one_stay_whole(self, store: Store) -> None:
        base = make_commit(large_state())
        shared = make_commit(large_state(1), base=base if store.shares_chunks else None)
        keep(store, base, shared)

        store.delete(ids([base]))

        assert state_of(store.load(shared.info.checkpoint_id)) == large_state(1)

    def test_an_id_that_was_deleted_may_be_committed_again(self, store: Store) -> None:
        (commit,) = keep(store, make_commit())
        store.delete(ids([commit]))

        store.commit(commit)

        assert state_of(store.load(commit.info.checkpoint_id)) == {"step": 1}

    def test_children_of_a_deleted_record_stay(self, store: Store) -> None:
        (parent,) = keep(store, make_commit())
        (child,) = keep(store, make_commit(parent_id=parent.info.checkpoint_id))

        store.delete(ids([parent]))

        assert store.query(Query()) == [child.info]
        assert state_of(store.load(child.info.checkpoint_id)) == {"step": 1}

    def test_sweeping_removes_what_has_expired(self, store: Store) -> None:
        stays, lives_long, _, _ = keep(
            store,
            make_commit(),
            make_commit(ttl_seconds=3600),
            make_commit(**expired()),
            make_commit(**expired()),
        )

        assert store.sweep(now()) == 2

        assert sorted(store.match("", 10)) == sorted(ids([stays, lives_long]))
        assert store.sweep(now()) == 0

    def test_sweeping_goes_by_the_time_it_is_given(self, store: Store) -> None:
        (commit,) = keep(store, make_commit(ttl_seconds=3600))
        end = commit.info.expires_at
        assert end is not None

        assert store.sweep(end - timedelta(microseconds=1)) == 0
        assert store.sweep(end) == 1

    def test_collecting_never_takes_a_chunk_that_is_live(self, store: Store) -> None:
        first, second = keep(store, make_commit(large_state()), make_commit(large_state(1)))
        live = {*first.chunks, *second.chunks}

        assert store.collect(live, now() + LATER, False) == Collected(0, 0)

        assert state_of(store.load(first.info.checkpoint_id)) == large_state()
        assert state_of(store.load(second.info.checkpoint_id)) == large_state(1)

    def test_collecting_takes_the_others(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        gone, stays = keep(store, make_commit(["gone"]), make_commit(large_state()))
        store.delete(ids([gone]))

        collected = store.collect(stays.chunks.keys(), now() + LATER, False)

        assert collected == Collected(len(gone.chunks), size_of(gone))
        assert store.fetch(list(gone.chunks)) == {}
        assert state_of(store.load(stays.info.checkpoint_id)) == large_state()
        assert store.stats().chunks == len(stays.chunks)

    def test_collecting_spares_what_was_written_since(self, store: Store) -> None:
        start = now()
        (commit,) = keep(store, make_commit())

        assert store.collect([], start, False) == Collected(0, 0)

        assert state_of(store.load(commit.info.checkpoint_id)) == {"step": 1}

    def test_a_chunk_that_is_committed_again_counts_as_written_then(self, store: Store) -> None:
        keep(store, make_commit(large_state()))
        between = now()
        (again,) = keep(store, make_commit(large_state()))

        store.collect([], between, False)

        assert state_of(store.load(again.info.checkpoint_id)) == large_state()

    def test_a_dry_run_tells_and_removes_nothing(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        (commit,) = keep(store, make_commit(large_state()))

        collected = store.collect([], now() + LATER, True)

        assert collected == Collected(len(commit.chunks), size_of(commit))
        assert store.fetch(list(commit.chunks)) == dict(commit.chunks)

    def test_what_is_live_is_whatever_says_so(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        gone, stays = keep(store, make_commit(["gone"]), make_commit(large_state()))
        store.delete(ids([gone]))

        collected = store.collect(_Said(stays.chunks), now() + LATER, False)

        assert collected == Collected(len(gone.chunks), size_of(gone))
        assert state_of(store.load(stays.info.checkpoint_id)) == large_state()

    def test_what_is_saved_while_others_are_removed_stays(self, store: Store) -> None:
        commits = keep(store, *(make_commit(["gone", step]) for step in range(300)))
        start = now()

        def remove() -> None:
            for _ in range(3):
                store.delete(ids(commits))
                store.collect([], start, False)

        with ThreadPoolExecutor(1) as threads:
            removing = threads.submit(remove)
            saved = keep(store, *(make_commit(["kept", step]) for step in range(30)))
            removing.result()

        assert sorted(store.match("", 1000)) == sorted(ids(saved))
        for step, commit in enumerate(saved):
            assert state_of(store.load(commit.info.checkpoint_id)) == ["kept", step]

    def test_a_store_that_lists_roots_misses_none(self, store: Store) -> None:
        lists = store.capability(ListsRoots)
        if lists is None:
            return
        lasting = keep(store, *(make_commit([step]) for step in range(20)))
        over = keep(store, make_commit(["over"], **expired()))
        everything, alive = list[bytes](), list[bytes]()

        lists.roots(True, everything.extend)
        lists.roots(False, alive.extend)

        assert set(alive) == roots_of(lasting)
        assert set(everything) == roots_of([*lasting, *over])

    def test_records_may_come_while_roots_are_listed(self, store: Store) -> None:
        lists = store.capability(ListsRoots)
        if lists is None:
            return
        commits = keep(store, *(make_commit([step]) for step in range(5)))
        found: list[bytes] = []
        with ThreadPoolExecutor(1) as threads:

            def take(roots: list[bytes]) -> None:
                found.extend(roots)
                threads.submit(keep, store, make_commit(["more"]))

            lists.roots(True, take)

        assert roots_of(commits) <= set(found)
        assert len(store.match("", 100)) > len(commits)

    def test_very_many_chunks_are_collected(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        many = {i.to_bytes(20, "big"): b"\x00%d" % i for i in range(3000)}
        store.commit(Commit(make_commit().info, many))
        spared = list(many)[::2]

        collected = store.collect(spared, now() + LATER, False)

        assert collected.chunks == 1500
        assert store.fetch(list(many)).keys() == set(spared)
