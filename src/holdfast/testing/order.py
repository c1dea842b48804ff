"""The contract of the order of a session: what was written last comes last, whatever clocks say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.errors import NotTheHeadError
from holdfast.stores.base import Commit, Query, Store
from holdfast.testing.handles import at_once
from holdfast.testing.samples import expired, ids, keep, make_commit, make_note
from holdfast.testing.suite import OpenStore, Suite

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CLOCKS = [NOON, NOON - 3600 * SECOND, NOON + SECOND, NOON - SECOND, NOON + SECOND, NOON - SECOND]
"""Times that clocks said which were set forward and back."""


def _with(commit: Commit, **changes: Any) -> Commit:
    return replace(commit, **changes)


class OrderSuite(Suite):
    """Tests of the order of records, and of what is written only behind a certain one."""

    def test_the_newest_of_a_session_is_what_was_written_last(self, store: Store) -> None:
        commits = keep(store, *(make_commit(created_at=time) for time in CLOCKS))

        assert ids(store.query(Query())) == ids(reversed(commits))
        assert ids(store.query(Query(session_id="session", limit=1))) == ids(commits[-1:])
        assert ids(store.query(Query(agent_id="agent", limit=2))) == ids(reversed(commits[-2:]))
        assert store.heads()[0].head == commits[-1].info

    def test_a_record_keeps_its_own_time_wherever_it_is_placed(self, store: Store) -> None:
        commits = keep(store, *(make_commit(created_at=time) for time in CLOCKS))

        assert [info.created_at for info in store.query(Query())] == CLOCKS[::-1]
        for commit in commits:
            record = store.load(commit.info.checkpoint_id)
            assert record is not None
            assert record.info == commit.info

    def test_pages_follow_the_order_of_writing(self, store: Store) -> None:
        commits = keep(store, *(make_commit(created_at=time) for time in CLOCKS))

        for at, commit in enumerate(commits):
            before = commit.info.checkpoint_id
            found = store.query(Query(agent_id="agent", session_id="session", before=before))
            assert ids(found) == ids(reversed(commits[:at]))
            assert ids(store.query(Query(before=before, limit=2))) == ids(
                reversed(commits[max(0, at - 2) : at])
            )

    @pytest.mark.parametrize("limit", [None, 1, 2, 100])
    def test_times_are_compared_as_they_were_whatever_the_place(
        self, store: Store, limit: int | None
    ) -> None:
        commits = keep(store, *(make_commit(created_at=time) for time in CLOCKS))

        for edge in (*CLOCKS, NOON + 2 * SECOND):
            later = [c for c in reversed(commits) if c.info.created_at >= edge]
            earlier = [c for c in reversed(commits) if c.info.created_at < edge]
            assert ids(store.query(Query(since=edge, limit=limit))) == ids(later[:limit])
            assert ids(store.query(Query(until=edge, limit=limit))) == ids(earlier[:limit])
            asked = Query(session_id="session", agent_id="agent", until=edge, limit=limit)
            assert ids(store.query(asked)) == ids(earlier[:limit])

    def test_each_session_has_an_order_of_its_own(self, store: Store) -> None:
        clocks = [(session, time) for time in CLOCKS for session in ("one", "two")]
        commits = keep(store, *(make_commit(session_id=s, created_at=t) for s, t in clocks))

        for number, session in enumerate(("one", "two")):
            found = store.query(Query(session_id=session))
            assert ids(found) == ids(reversed(commits[number::2]))

    def test_children_and_offers_follow_the_order_of_writing(self, store: Store) -> None:
        (parent,) = keep(store, make_commit(created_at=NOON))
        how: dict[str, Any] = {"parent_id": parent.info.checkpoint_id, "handoff_target": "other"}
        commits = keep(store, *(make_commit(created_at=time, **how) for time in CLOCKS))

        for query in (Query(parent_id=parent.info.checkpoint_id), Query(handoff_target="other")):
            assert ids(store.query(query)) == ids(reversed(commits))

    def test_a_record_that_was_moved_is_removed_wholly(self, store: Store) -> None:
        first, second = keep(store, *(make_commit(created_at=t) for t in (NOON, NOON - SECOND)))

        assert store.delete(ids([second])) == 1
        assert ids(store.query(Query())) == ids([first])
        assert store.heads()[0].checkpoints == 1
        (third,) = keep(store, make_commit(created_at=NOON - 2 * SECOND))
        assert ids(store.query(Query())) == ids([third, first])

    def test_what_expires_and_was_moved_is_swept(self, store: Store) -> None:
        now = datetime.now(UTC)
        keep(store, make_commit(created_at=now), make_commit(**expired()))

        assert store.sweep(now) == 1
        assert len(store.query(Query(include_expired=True))) == 1
        assert store.heads()[0].checkpoints == 1

    def test_many_of_one_microsecond_are_all_kept_in_order(self, store: Store) -> None:
        commits = keep(
            store, *(make_commit(created_at=NOON, session_id=str(n % 3)) for n in range(60))
        )

        for number in range(3):
            found = store.query(Query(session_id=str(number)))
            assert ids(found) == ids(reversed(commits[number::3]))
        assert {info.created_at for info in store.query(Query())} == {NOON}

    def test_an_order_outlives_the_store_that_made_it(self, open_store: OpenStore) -> None:
        if not self.persistent:
            return
        with open_store() as store:
            commits = keep(store, *(make_commit(created_at=time) for time in CLOCKS))
        with open_store() as again:
            commits += keep(again, make_commit(created_at=NOON - 7200 * SECOND))

            assert ids(again.query(Query())) == ids(reversed(commits))

    def test_threads_that_write_on_one_session_each_come_behind_what_they_saw(
        self, store: Store
    ) -> None:
        def work(number: int) -> list[tuple[str, str]]:
            seen = []
            for step in range(8):
                commit = make_commit(created_at=NOON + SECOND * (number - step))
                before = store.query(Query(session_id="session", limit=1))
                store.commit(commit)
                seen += [(each, commit.info.checkpoint_id) for each in ids(before)]
            return seen

        pairs = [pair for each in at_once(work) for pair in each]

        places = {each: at for at, each in enumerate(ids(store.query(Query())))}
        assert all(places[before] > places[after] for before, after in pairs)

    def test_a_record_brought_from_elsewhere_stands_where_its_time_is(self, store: Store) -> None:
        keep(store, make_commit(created_at=NOON), make_commit(created_at=NOON + 2 * SECOND))
        brought = make_commit(created_at=NOON + SECOND)

        store.commit(_with(brought, behind=()))

        assert ids(store.query(Query()))[1] == brought.info.checkpoint_id

    def test_a_record_brought_from_elsewhere_stands_behind_those_it_came_behind(
        self, store: Store
    ) -> None:
        first, second = keep(store, *(make_commit(created_at=NOON + n * SECOND) for n in (0, 5)))
        brought = make_commit(created_at=NOON - SECOND)
        names = (first.info.checkpoint_id, "one that is not there")

        store.commit(_with(brought, behind=names))

        assert ids(store.query(Query())) == ids([second, brought, first])
        assert store.query(Query(ids=ids([brought]))) == [brought.info]

    def test_a_record_follows_the_last_of_its_session_or_is_not_kept(self, store: Store) -> None:
        first = make_commit()
        with pytest.raises(NotTheHeadError):
            store.commit(_with(first, follows="something"))
        store.commit(_with(first, follows=""))
        second, late = make_commit(), make_commit()
        with pytest.raises(NotTheHeadError):
            store.commit(_with(second, follows=""))
        store.commit(_with(second, follows=first.info.checkpoint_id))

        note = make_note("/log", "beside it")
        with pytest.raises(NotTheHeadError):
            store.commit(_with(late, follows=first.info.checkpoint_id, notes=(note,)))

        assert ids(store.query(Query())) == ids([second, first])
        assert store.notes(None) == []
        keep(store, make_commit(session_id="another"))
        store.commit(_with(late, follows=second.info.checkpoint_id))

    def test_of_threads_that_follow_the_same_record_one_is_kept(self, store: Store) -> None:
        (first,) = keep(store, make_commit())

        def work(number: int) -> bool:
            try:
                store.commit(_with(make_commit(), follows=first.info.checkpoint_id))
            except NotTheHeadError:
                return False
            return True

        assert sum(at_once(work)) == 1
        assert len(store.query(Query())) == 2
