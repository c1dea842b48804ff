"""The contract of ``match``, ``fetch``, ``heads`` and ``stats``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.ids import new_id
from holdfast.stores.base import Commit, Store
from holdfast.testing.samples import NEVER_SAVED, expired, ids, keep, large_state, make_commit
from holdfast.testing.suite import Suite

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
SPREAD = timedelta(milliseconds=400)
"""Between records of which some are filed as touched at one time, and some are not."""
TEXT_IDS = ["step-1", "step-10", "step-2", "Step-1", "step_1", "step%1", "stép-1", "0", "~"]


class ListingSuite(Suite):
    """Tests of what a store lists besides records."""

    def test_an_id_is_matched_by_any_beginning_of_it(self, store: Store) -> None:
        (commit,) = keep(store, make_commit())
        whole = commit.info.checkpoint_id

        for length in range(len(whole) + 1):
            assert store.match(whole[:length], 10) == [whole]

    def test_what_is_no_beginning_matches_nothing(self, store: Store) -> None:
        (commit,) = keep(store, make_commit())
        whole = commit.info.checkpoint_id

        for other in (whole[1:], whole + "0", whole.upper(), whole.replace("-", ""), "zzz", "-"):
            assert store.match(other, 10) == []

    @pytest.mark.parametrize("pattern", ["%", "_", "*", "?", ".*", "[0-9a-f]", "' OR 1=1 --", "\\"])
    def test_a_pattern_is_taken_literally(self, store: Store, pattern: str) -> None:
        keep(store, make_commit())

        assert store.match(pattern, 10) == []

    def test_ids_are_matched_in_order_and_not_more_than_the_limit(self, store: Store) -> None:
        commits = keep(store, *(make_commit() for _ in range(5)))

        assert store.match("", 10) == sorted(ids(commits))
        assert store.match("", 3) == sorted(ids(commits))[:3]

    def test_ids_need_not_be_uuids(self, store: Store) -> None:
        keep(store, *(make_commit(checkpoint_id=name) for name in TEXT_IDS))

        assert store.match("step-1", 10) == ["step-1", "step-10"]
        assert store.match("", 20) == sorted(TEXT_IDS)
        for name in TEXT_IDS:
            record = store.load(name)
            assert record is not None
            assert record.info.checkpoint_id == name

    @pytest.mark.parametrize("page", [1, 2, 3, 100])
    def test_paging_through_all_ids_shows_each_once(self, store: Store, page: int) -> None:
        like_a_uuid = new_id()[:-1]
        names = [*(new_id() for _ in range(4)), *TEXT_IDS, like_a_uuid]
        keep(store, *(make_commit(checkpoint_id=name) for name in names))

        seen: list[str] = []
        while found := store.match("", page, seen[-1] if seen else ""):
            assert len(found) <= page
            seen += found

        assert sorted(seen) == sorted(names)

    def test_expired_ids_are_matched_too(self, store: Store) -> None:
        (commit,) = keep(store, make_commit(**expired()))

        assert store.match("", 10) == [commit.info.checkpoint_id]

    def test_chunks_are_fetched_as_they_were_committed(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        (commit,) = keep(store, make_commit(large_state()))

        assert store.fetch(list(commit.chunks)) == dict(commit.chunks)

    def test_chunks_that_are_not_there_are_left_out(self, store: Store) -> None:
        (commit,) = keep(store, make_commit(large_state()))
        wanted = [*commit.chunks, b"\x00" * 20, b"", b"'"]

        assert store.fetch(wanted).keys() <= commit.chunks.keys()
        assert store.fetch([]) == {}

    def test_very_many_chunks_are_fetched_at_once(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        many = {i.to_bytes(20, "big"): b"\x00%d" % i for i in range(3000)}
        info = make_commit().info
        store.commit(Commit(info, many))

        assert store.fetch(list(many)) == many

    def test_an_empty_store_has_no_sessions(self, store: Store) -> None:
        assert store.heads() == []
        assert store.heads("agent") == []

    def test_every_session_is_shown_with_its_newest_checkpoint(self, store: Store) -> None:
        first, second, other = keep(
            store,
            make_commit(session_id="one"),
            make_commit(session_id="one"),
            make_commit(session_id="two"),
        )

        one, two = sorted(store.heads(), key=lambda head: head.session_id)

        assert (one.agent_id, one.session_id, one.checkpoints) == ("agent", "one", 2)
        assert one.head == second.info
        assert (two.head, two.checkpoints) == (other.info, 1)
        assert first.info != one.head

    def test_the_session_touched_last_comes_first(self, store: Store) -> None:
        keep(store, *(make_commit(session_id=name) for name in ("a", "b", "c", "a")))

        assert [head.session_id for head in store.heads()] == ["a", "c", "b"]

    def test_sessions_of_one_agent_are_shown_alone(self, store: Store) -> None:
        keep(store, make_commit(agent_id="a"), make_commit(agent_id="b"), make_commit(agent_id="A"))

        assert [head.agent_id for head in store.heads("a")] == ["a"]
        assert store.heads("' OR 1=1 --") == []

    def test_a_session_name_used_by_two_agents_is_two_sessions(self, store: Store) -> None:
        keep(store, make_commit(agent_id="a"), make_commit(agent_id="b"))

        assert {head.agent_id for head in store.heads()} == {"a", "b"}

    def test_expired_checkpoints_are_neither_heads_nor_counted(self, store: Store) -> None:
        old = datetime.now(UTC) - timedelta(days=1)
        kept, _, _ = keep(
            store,
            make_commit(session_id="one", created_at=old),
            make_commit(session_id="one", **expired()),
            make_commit(session_id="gone", **expired()),
        )

        (head,) = store.heads()

        assert (head.head, head.checkpoints) == (kept.info, 1)

    def test_sessions_of_one_name_are_shown_alone(self, store: Store) -> None:
        keep(store, *(make_commit(agent_id=a, session_id=s) for a in "ab" for s in ("s", "ss")))

        shown = [(each.agent_id, each.session_id) for each in store.heads(session_id="s")]

        assert shown == [("b", "s"), ("a", "s")]
        assert [each.agent_id for each in store.heads("a", session_id="s")] == ["a"]
        assert store.heads(session_id="none") == []
        assert store.heads("a", session_id="' OR 1=1 --") == []

    @pytest.mark.parametrize("page", [1, 2, 3, 100])
    @pytest.mark.parametrize("agent_id", [None, "a"])
    def test_sessions_are_shown_once_page_by_page(
        self, store: Store, page: int, agent_id: str | None
    ) -> None:
        spread = [NOON + n * SPREAD for n in (5, 1, 1, 3, 0, 4, 2, 1)]
        keep(
            store,
            *(
                make_commit(agent_id="ab"[n % 2], session_id=f"s{n % 5}", created_at=time)
                for n, time in enumerate([*spread, *spread[::-1]])
            ),
        )
        every = store.heads(agent_id)

        seen = store.heads(agent_id, limit=page)
        while found := store.heads(agent_id, limit=page, before=seen[-1].head.checkpoint_id):
            assert len(found) <= page
            seen += found

        assert seen == every
        assert len(every) == (10 if agent_id is None else 5)

    def test_a_session_that_was_touched_since_is_not_on_the_next_page(self, store: Store) -> None:
        keep(store, *(make_commit(session_id=name) for name in "abc"))
        first, second = store.heads(limit=2)
        keep(store, make_commit(session_id="a"), make_commit(session_id="b"))

        found = store.heads(before=second.head.checkpoint_id)

        assert (first.session_id, second.session_id, found) == ("c", "b", [])

    def test_pages_are_in_order_also_where_newer_records_were_removed_or_have_expired(
        self, store: Store
    ) -> None:
        past = expired()
        times = [past["created_at"] - n * SPREAD for n in range(1, 5)]
        commits = [make_commit(session_id=f"s{n}", created_at=time) for n, time in enumerate(times)]
        (removed,) = keep(store, *commits, make_commit(session_id="s3"))[4:]
        keep(store, make_commit(session_id="s2", **past))
        store.delete([removed.info.checkpoint_id])

        seen = [store.heads(limit=1)[0]]
        while found := store.heads(limit=1, before=seen[-1].head.checkpoint_id):
            seen += found

        assert [each.head for each in seen] == [commit.info for commit in commits]

    def test_a_page_of_sessions_after_a_record_that_is_gone_is_empty(self, store: Store) -> None:
        keep(store, make_commit())

        assert store.heads(before=NEVER_SAVED) == []

    def test_an_empty_store_holds_nothing(self, store: Store) -> None:
        stats = store.stats()

        assert (stats.checkpoints, stats.sessions, stats.chunks) == (0, 0, 0)
        assert (stats.logical_bytes, stats.stored_bytes) == (0, 0)
        assert stats.sharing == 1.0

    def test_stats_count_what_is_held(self, store: Store) -> None:
        commits = keep(
            store,
            make_commit(large_state(), session_id="one"),
            make_commit(large_state(1), session_id="one"),
            make_commit({"small": 1}, session_id="two"),
        )

        stats = store.stats()

        assert (stats.checkpoints, stats.sessions) == (3, 2)
        assert stats.logical_bytes == sum(commit.info.size for commit in commits)
        assert stats.stored_bytes > 0
        if store.shares_chunks:
            chunks = {name: data for commit in commits for name, data in commit.chunks.items()}
            assert stats.chunks == len(chunks)
            assert stats.stored_bytes == sum(map(len, chunks.values()))

    def test_expired_checkpoints_do_not_count(self, store: Store) -> None:
        keep(store, make_commit(**expired()))

        stats = store.stats()

        assert (stats.checkpoints, stats.sessions, stats.logical_bytes) == (0, 0, 0)

    def test_a_store_has_a_name_for_messages(self, store: Store) -> None:
        assert store.name
        assert "\n" not in store.name
