"""The contract of ``query``: what is asked for, newest first, page by page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any

import pytest

from holdfast.stores.base import Query, Store
from holdfast.stores.capabilities import ListsTargets
from holdfast.testing.samples import NEVER_SAVED, expired, ids, keep, make_commit
from holdfast.testing.suite import Suite

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)

INJECTIONS = [
    "' OR '1'='1",
    "'; DROP TABLE checkpoints; --",
    '" OR ""="',
    "x' UNION SELECT 1 --",
    "%",
    "_______",
    "*",
    "agent*",
    "$",
    '$."a"',
    "../agent",
    "agent/session",
    "agent\x01",
    "{agent}",
    ":agent",
    "?",
    "@agent",
    "agent\r\nDEL agent",
]
BEGINNINGS = [
    *("run", "run/1", "run/10", "run/2", "run_1", "run%1", "runs", "RUN", "r"),
    *("run\U0010ffff", "run\U0010ffff\U0010ffffx", "\U0010ffff", "\U0010ffff" * 3),
    *("run\ud7ff", "run\ud7ff!", "run\ue000", "run\uffff", "run\U00010000", "ru\u00f1", "run\x7f"),
]
"""Names of sessions of which some begin as others do."""
FIELDS: dict[str, Callable[[str], Query]] = {
    "ids": lambda text: Query(ids=[text]),
    "agent_id": lambda text: Query(agent_id=text),
    "session_id": lambda text: Query(session_id=text),
    "session_prefix": lambda text: Query(session_prefix=text),
    "parent_id": lambda text: Query(parent_id=text),
    "parent_ids": lambda text: Query(parent_ids=[text]),
    "handoff_target": lambda text: Query(handoff_target=text),
    "before": lambda text: Query(before=text),
    "the name of a tag": lambda text: Query(tags={text: 1}),
    "the value of a tag": lambda text: Query(tags={"tag": text}),
}


class Colour(Enum):
    """A tag that is no plain value."""

    RED = "red"


class QuerySuite(Suite):
    """Tests of ``query``."""

    def test_without_conditions_everything_is_listed_newest_first(self, store: Store) -> None:
        commits = keep(store, *(make_commit(session_id=str(i % 2)) for i in range(5)))

        assert ids(store.query(Query())) == ids(reversed(commits))

    def test_between_sessions_newest_means_by_time(self, store: Store) -> None:
        times = [NOON, NOON + 2 * SECOND, NOON - SECOND, NOON + SECOND]
        commits = keep(
            store, *(make_commit(created_at=t, session_id=str(n)) for n, t in enumerate(times))
        )

        newest_first = sorted(commits, key=lambda commit: commit.info.created_at, reverse=True)
        assert ids(store.query(Query())) == ids(newest_first)

    def test_an_empty_store_lists_nothing(self, store: Store) -> None:
        assert store.query(Query()) == []

    def test_records_are_found_by_id(self, store: Store) -> None:
        first, _, third = keep(store, make_commit(), make_commit(), make_commit())

        found = store.query(Query(ids=[*ids([first, third, first]), NEVER_SAVED, "no id"]))

        assert found == [third.info, first.info]

    def test_no_ids_find_nothing(self, store: Store) -> None:
        keep(store, make_commit())

        assert store.query(Query(ids=[])) == []

    def test_very_many_ids_may_be_asked_for_at_once(self, store: Store) -> None:
        first, second = keep(store, make_commit(), make_commit())
        many = [f"{NEVER_SAVED[:-5]}{i:05d}" for i in range(40_000)]

        found = store.query(Query(ids=[*ids([first]), *many, *ids([second])]))

        assert found == [second.info, first.info]

    def test_records_are_found_by_agent(self, store: Store) -> None:
        wanted, _, _ = keep(
            store,
            make_commit(agent_id="a"),
            make_commit(agent_id="ab"),
            make_commit(agent_id="A"),
        )

        assert store.query(Query(agent_id="a")) == [wanted.info]
        assert store.query(Query(agent_id="b")) == []

    def test_records_are_found_by_session(self, store: Store) -> None:
        wanted, _ = keep(store, make_commit(session_id="s"), make_commit(session_id="ss"))

        assert store.query(Query(session_id="s")) == [wanted.info]

    def test_records_are_found_by_the_beginning_of_a_session_name(self, store: Store) -> None:
        commits = keep(store, *(make_commit(session_id=name) for name in BEGINNINGS))

        for prefix in ("", *BEGINNINGS, "b", "\u00e9", "\U0010ffff" * 4, "%", "run\x00", "Run"):
            wanted = [c for c in reversed(commits) if c.info.session_id.startswith(prefix)]
            assert ids(store.query(Query(session_prefix=prefix))) == ids(wanted)

    def test_the_beginning_of_a_session_name_is_one_condition_of_many(self, store: Store) -> None:
        wanted, _, _ = keep(
            store,
            make_commit(session_id="run/1", agent_id="a"),
            make_commit(session_id="run/1", agent_id="b"),
            make_commit(session_id="other", agent_id="a"),
        )

        assert store.query(Query(session_prefix="run/", agent_id="a")) == [wanted.info]
        assert store.query(Query(session_prefix="run/", session_id="run/1", agent_id="a")) == [
            wanted.info
        ]
        assert store.query(Query(session_prefix="run/", session_id="other")) == []

    def test_records_are_found_by_parent(self, store: Store) -> None:
        (root,) = keep(store, make_commit())
        (child,) = keep(store, make_commit(parent_id=root.info.checkpoint_id))
        keep(store, make_commit(parent_id=child.info.checkpoint_id))

        assert store.query(Query(parent_id=root.info.checkpoint_id)) == [child.info]
        assert store.query(Query(parent_id=NEVER_SAVED)) == []

    def test_children_of_several_records_are_found_at_once(self, store: Store) -> None:
        roots = keep(store, *(make_commit() for _ in range(3)))
        parents = [root.info.checkpoint_id for root in roots]
        children = keep(store, *(make_commit(parent_id=each) for each in (*parents, *parents)))
        wanted = [*parents[:2], NEVER_SAVED, *(f"{NEVER_SAVED} {i}" for i in range(600))]

        found = store.query(Query(parent_ids=wanted))

        assert ids(found) == ids(children[i] for i in (4, 3, 1, 0))
        assert ids(store.query(Query(parent_ids=wanted, limit=3))) == ids(
            children[i] for i in (4, 3, 1)
        )
        assert store.query(Query(parent_ids=[])) == []

    def test_records_are_found_by_whom_they_are_handed_to(self, store: Store) -> None:
        wanted, _, _ = keep(
            store,
            make_commit(handoff_target="reviewer"),
            make_commit(handoff_target="tester"),
            make_commit(),
        )

        assert store.query(Query(handoff_target="reviewer")) == [wanted.info]

    def test_records_that_were_handed_to_anybody_are_found(self, store: Store) -> None:
        first, _, last = keep(
            store,
            make_commit(handoff_target="tester"),
            make_commit(),
            make_commit(handoff_target="reviewer"),
        )

        assert store.query(Query(is_offered=True)) == [last.info, first.info]
        assert store.query(Query(is_offered=True, limit=1)) == [last.info]

    def test_to_whom_records_were_handed_is_listed_once(self, store: Store) -> None:
        able = store.capability(ListsTargets)
        if able is None:
            return
        long = "t" * 128
        names = {"a", "a b", "tester", "é", "\U0001f9ea", long, f"{long}1", f"{long}2", long[:127]}
        assert able.targets() == []
        keep(store, make_commit(), *(make_commit(handoff_target=name) for name in (*names, "a")))

        found = able.targets()

        assert len(found) == len(names)
        assert set(found) == names

    def test_records_are_found_by_time_from_since_and_up_to_until(self, store: Store) -> None:
        _, first, second, _ = keep(
            store, *(make_commit(created_at=NOON + i * SECOND) for i in range(4))
        )

        found = store.query(Query(since=NOON + SECOND, until=NOON + 3 * SECOND))

        assert found == [second.info, first.info]

    def test_times_are_compared_to_the_microsecond(self, store: Store) -> None:
        before, at = keep(
            store,
            make_commit(created_at=NOON - timedelta(microseconds=1)),
            make_commit(created_at=NOON),
        )

        assert store.query(Query(since=NOON)) == [at.info]
        assert store.query(Query(until=NOON)) == [before.info]

    def test_any_time_may_be_asked_for(self, store: Store) -> None:
        (commit,) = keep(store, make_commit())
        first, last = (moment.replace(tzinfo=UTC) for moment in (datetime.min, datetime.max))

        assert store.query(Query(since=first, until=last)) == [commit.info]
        assert store.query(Query(since=last)) == []
        assert store.query(Query(until=first)) == []

    def test_times_in_other_zones_are_the_same_moments(self, store: Store) -> None:
        (commit,) = keep(store, make_commit(created_at=NOON))
        elsewhere = NOON.astimezone(timezone(timedelta(hours=9)))

        assert store.query(Query(since=elsewhere)) == [commit.info]
        assert store.query(Query(until=elsewhere)) == []

    @pytest.mark.parametrize(
        ("value", "others"),
        [
            (1, [True, 1.0, "1", 2]),
            (True, [1, False, "true"]),
            (None, ["None", 0, ""]),
            ("a", ["A", "a ", b"a"]),
            (b"a", ["a", bytearray(b"a")]),
            (1.5, ["1.5", 1]),
            ([1, 2], [(1, 2), [2, 1], [1]]),
            ((1, 2), [[1, 2]]),
            ({"a": {"b": 1}}, [{"a": {"b": 2}}, {"a": {}}]),
            (sys.maxsize * 10, [sys.maxsize]),
            (Colour.RED, ["red"]),
            ("\ud800", ["?"]),
        ],
        ids=repr,
    )
    def test_tags_are_found_by_value_of_exactly_that_type(
        self, store: Store, value: Any, others: list[Any]
    ) -> None:
        wanted, *_ = keep(store, *(make_commit(metadata={"tag": v}) for v in (value, *others)))

        assert store.query(Query(tags={"tag": value})) == [wanted.info]

    def test_all_tags_that_are_asked_for_have_to_fit(self, store: Store) -> None:
        both, _, _, _ = keep(
            store,
            make_commit(metadata={"a": 1, "b": 2, "c": 3}),
            make_commit(metadata={"a": 1}),
            make_commit(metadata={"a": 1, "b": 3}),
            make_commit(),
        )

        assert store.query(Query(tags={"a": 1, "b": 2})) == [both.info]

    def test_the_limit_counts_what_fits_the_tags(self, store: Store) -> None:
        commits = keep(store, *(make_commit(metadata={"even": i % 2 == 0}) for i in range(8)))

        found = store.query(Query(tags={"even": True}, limit=3))

        assert ids(found) == ids(commits[i] for i in (6, 4, 2))

    def test_all_conditions_have_to_fit(self, store: Store) -> None:
        (root,) = keep(store, make_commit())
        fields: dict[str, Any] = {
            "agent_id": "a",
            "session_id": "s",
            "parent_id": root.info.checkpoint_id,
            "handoff_target": "t",
            "metadata": {"tag": 1},
            "created_at": NOON,
        }
        (wanted,) = keep(store, make_commit(**fields))
        others: dict[str, Any] = {
            "agent_id": "x",
            "session_id": "x",
            "parent_id": None,
            "handoff_target": None,
            "metadata": {},
            "created_at": NOON - SECOND,
        }
        for name, other in others.items():
            keep(store, make_commit(**{**fields, name: other}))

        found = store.query(
            Query(
                agent_id="a",
                session_id="s",
                parent_id=root.info.checkpoint_id,
                handoff_target="t",
                tags={"tag": 1},
                since=NOON,
                until=NOON + SECOND,
            )
        )

        assert found == [wanted.info]

    def test_not_more_than_the_limit_is_listed(self, store: Store) -> None:
        commits = keep(store, *(make_commit() for _ in range(4)))

        assert ids(store.query(Query(limit=3))) == ids(reversed(commits[1:]))
        assert store.query(Query(limit=0)) == []

    def test_the_oldest_come_first_where_that_is_asked_for(self, store: Store) -> None:
        (root,) = keep(store, make_commit(session_id="root"))
        parent = root.info.checkpoint_id
        times = [NOON, NOON + SECOND, NOON - SECOND, NOON, NOON + 3 * SECOND, NOON]
        commits = keep(
            store,
            *(
                make_commit(
                    agent_id="a",
                    session_id=f"s{number % 2}",
                    created_at=time,
                    parent_id=parent,
                    handoff_target="t",
                    metadata={"tag": 1},
                )
                for number, time in enumerate(times)
            ),
        )
        queries = [
            Query(),
            Query(agent_id="a"),
            Query(agent_id="a", session_id="s1"),
            Query(session_prefix="s"),
            Query(ids=ids(commits)),
            Query(parent_id=parent),
            Query(parent_ids=[parent, NEVER_SAVED]),
            Query(handoff_target="t"),
            Query(is_offered=True),
            Query(tags={"tag": 1}),
            Query(agent_id="a", session_id="s0", tags={"tag": 1}),
            Query(since=NOON),
            Query(until=NOON + 2 * SECOND),
            Query(agent_id="a", before=commits[3].info.checkpoint_id),
        ]

        for query in queries:
            whole = store.query(query)[::-1]
            assert len(whole) > 1
            for limit in (None, 1, 2, 4, 100):
                asked = replace(query, oldest_first=True, limit=limit)
                assert store.query(asked) == whole[:limit], asked

    @pytest.mark.parametrize("page", [1, 2, 3, 5, 100])
    def test_paging_shows_every_record_once_also_those_of_equal_time(
        self, store: Store, page: int
    ) -> None:
        times = [NOON, NOON, NOON, NOON + SECOND, NOON, NOON - SECOND, NOON - SECOND]
        commits = keep(store, *(make_commit(created_at=time) for time in times))

        seen = store.query(Query(limit=page))
        while found := store.query(Query(limit=page, before=seen[-1].checkpoint_id)):
            assert len(found) <= page
            seen += found

        assert ids(seen) == ids(reversed(commits))
        assert [info.created_at for info in seen] == times[::-1]

    def test_a_page_begins_after_a_record_of_another_session_too(self, store: Store) -> None:
        first, second, _ = keep(
            store,
            make_commit(session_id="one"),
            make_commit(session_id="two"),
            make_commit(session_id="one"),
        )

        found = store.query(Query(session_id="one", before=second.info.checkpoint_id))

        assert found == [first.info]

    def test_a_page_begins_after_an_expired_record_too(self, store: Store) -> None:
        past = expired()
        (older,) = keep(store, make_commit(created_at=past["created_at"] - SECOND))
        (last,) = keep(store, make_commit(**past))
        keep(store, make_commit())

        assert store.query(Query(before=last.info.checkpoint_id)) == [older.info]

    def test_a_page_after_a_record_that_is_gone_is_empty(self, store: Store) -> None:
        keep(store, make_commit())

        assert store.query(Query(before=NEVER_SAVED)) == []

    def test_expired_records_are_never_shown(self, store: Store) -> None:
        (shown,) = keep(store, make_commit())
        (gone,) = keep(store, make_commit(metadata={"tag": 1}, handoff_target="t", **expired()))

        assert store.query(Query()) == [shown.info]
        for query in (
            Query(ids=[gone.info.checkpoint_id]),
            Query(tags={"tag": 1}),
            Query(handoff_target="t"),
            Query(until=gone.info.created_at + SECOND),
        ):
            assert store.query(query) == []

    def test_expired_records_are_shown_where_they_are_asked_for(self, store: Store) -> None:
        (gone,) = keep(store, make_commit(**expired()))

        assert store.query(Query(include_expired=True)) == [gone.info]

    @pytest.mark.parametrize("field", FIELDS)
    def test_no_text_is_taken_for_anything_but_a_value(self, store: Store, field: str) -> None:
        (commit,) = keep(store, make_commit(metadata={"tag": 1}, handoff_target="t"))

        assert {text: store.query(FIELDS[field](text)) for text in INJECTIONS} == {
            text: [] for text in INJECTIONS
        }

        assert store.query(Query()) == [commit.info]

    def test_such_text_is_found_where_it_was_saved(self, store: Store) -> None:
        for text in INJECTIONS:
            parent = make_commit(checkpoint_id="parent " + text)
            child = make_commit(
                checkpoint_id=text,
                agent_id=text,
                session_id=text,
                parent_id=parent.info.checkpoint_id,
                handoff_target=text,
                metadata={text: text},
            )
            keep(store, parent, child)

            for query in (
                Query(ids=[text]),
                Query(agent_id=text),
                Query(session_id=text),
                Query(parent_id="parent " + text),
                Query(handoff_target=text),
                Query(tags={text: text}),
            ):
                assert store.query(query) == [child.info]
