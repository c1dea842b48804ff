"""The contract of ``commit`` and ``load``: all or nothing, given back exactly."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    MissingBaseError,
    MissingParentError,
)
from holdfast.model import CheckpointInfo, Framework
from holdfast.stores.base import Commit, Query, Store, gather
from holdfast.testing import crash_points
from holdfast.testing.samples import (
    NEVER_SAVED,
    expired,
    keep,
    large_state,
    make_commit,
    state_of,
)
from holdfast.testing.suite import Suite

ODD_NAMES = [
    "plain",
    "with space",
    " leading and trailing ",
    "a/b\\c",
    "../../etc/passwd",
    ".",
    "..",
    ".hidden",
    "-rf",
    "CON",
    "~",
    "%2e%2e",
    "%",
    "a%00b",
    "*?[a-z]{x}",
    "quote'quote\"`",
    "'; DROP TABLE checkpoints; --",
    "$.a[0]",
    "new\nline\ttab\r",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f600\U0001f680",
    "\u202eright to left",
    "\ufeff",
    "\uffff",
    "UPPER",
    "upper",
    "x" * 1024,
    "\u4e2d" * 1024,
    "json",
    "a.json",
    ".tmp-1",
]


def is_absent(store: Store, info: CheckpointInfo) -> bool:
    """Return whether nothing at all is to be seen of a record."""
    found = store.query(Query(ids=[info.checkpoint_id], include_expired=True))
    matched = store.match(info.checkpoint_id, 1)
    return not found and not matched and store.load(info.checkpoint_id) is None


class CommitSuite(Suite):
    """Tests of ``commit`` and ``load``."""

    def test_what_was_committed_is_loaded_again(self, store: Store) -> None:
        commit = make_commit({"step": 1, "kept": (b"bytes", None, 1.5)})

        store.commit(commit)

        record = store.load(commit.info.checkpoint_id)
        assert record is not None
        assert record.info == commit.info
        assert state_of(record) == {"step": 1, "kept": (b"bytes", None, 1.5)}

    def test_every_field_of_a_record_is_kept(self, store: Store) -> None:
        parent = make_commit()
        commit = make_commit(
            agent_id="other agent",
            session_id="other session",
            parent_id=parent.info.checkpoint_id,
            framework=Framework.LANGGRAPH,
            step_index=2**40,
            step_name="after_tests",
            metadata={"text": "a", "number": 1, "deep": {"list": [1, (2, 3)]}, "none": None},
            created_at=datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
            ttl_seconds=10.0**10,
            handoff_target="reviewer",
            handoff_schema="review/2",
        )

        keep(store, parent, commit)

        record = store.load(commit.info.checkpoint_id)
        assert record is not None
        assert record.info == commit.info
        assert store.query(Query(ids=[commit.info.checkpoint_id])) == [commit.info]

    def test_a_state_of_many_chunks_is_loaded_whole(self, store: Store) -> None:
        commit = make_commit(large_state())
        assert len(commit.chunks) > 5

        store.commit(commit)

        record = store.load(commit.info.checkpoint_id)
        assert state_of(record) == large_state()
        assert record is not None
        assert record.chunks.keys() >= commit.chunks.keys()

    def test_loaded_chunks_are_those_that_gathering_them_gives(self, store: Store) -> None:
        commit = make_commit(large_state())
        store.commit(commit)

        record = store.load(commit.info.checkpoint_id)

        root = bytes.fromhex(commit.info.content_id)
        assert record is not None
        assert record.chunks == gather(root, lambda _: commit.chunks)

    def test_a_record_may_be_loaded_without_verifying(self, store: Store) -> None:
        commit = make_commit(large_state())
        store.commit(commit)

        assert state_of(store.load(commit.info.checkpoint_id, False)) == large_state()

    @pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
    def test_any_name_is_kept_as_it_is(self, store: Store, name: str) -> None:
        plain = make_commit()
        odd = make_commit(
            agent_id=name,
            session_id=name,
            step_name=name,
            metadata={name: name},
            handoff_target=name,
            handoff_schema=name,
        )

        keep(store, plain, odd)

        assert store.query(Query(agent_id=name)) == [odd.info]
        assert store.query(Query(session_id=name)) == [odd.info]
        assert store.query(Query(handoff_target=name)) == [odd.info]
        assert store.query(Query(tags={name: name})) == [odd.info]
        record = store.load(odd.info.checkpoint_id)
        assert record is not None
        assert record.info == odd.info

    def test_names_that_look_alike_are_told_apart(self, store: Store) -> None:
        commits = keep(store, *(make_commit(agent_id=n, session_id=n) for n in ODD_NAMES))

        for commit, name in zip(commits, ODD_NAMES, strict=True):
            assert store.query(Query(agent_id=name, session_id=name)) == [commit.info]
        assert len(store.heads()) == len(ODD_NAMES)

    def test_an_id_that_exists_is_a_conflict_and_the_first_one_stays(self, store: Store) -> None:
        first = make_commit({"which": "first"}, metadata={"which": "first"})
        again = make_commit({"which": "second"}, checkpoint_id=first.info.checkpoint_id)
        store.commit(first)

        with pytest.raises(CheckpointConflictError) as caught:
            store.commit(again)

        assert caught.value.checkpoint_id == first.info.checkpoint_id
        record = store.load(first.info.checkpoint_id)
        assert record is not None
        assert record.info == first.info
        assert state_of(record) == {"which": "first"}

    def test_an_id_that_exists_in_another_session_is_a_conflict(self, store: Store) -> None:
        first = make_commit({"which": "first"})
        again = make_commit(
            {"which": "second"}, checkpoint_id=first.info.checkpoint_id, session_id="another"
        )
        store.commit(first)

        with pytest.raises(CheckpointConflictError):
            store.commit(again)

        assert store.query(Query()) == [first.info]

    def test_the_very_same_commit_twice_is_a_conflict(self, store: Store) -> None:
        commit = make_commit()
        store.commit(commit)

        with pytest.raises(CheckpointConflictError):
            store.commit(commit)

        assert store.query(Query()) == [commit.info]

    def test_a_parent_that_is_not_there_is_refused_and_nothing_is_kept(self, store: Store) -> None:
        commit = make_commit(parent_id=NEVER_SAVED)

        with pytest.raises(MissingParentError):
            store.commit(commit)

        assert is_absent(store, commit.info)
        assert not store.fetch(commit.chunks)

    def test_a_parent_that_is_not_there_is_accepted_where_it_is_not_needed(
        self, store: Store
    ) -> None:
        commit = make_commit(parent_id=NEVER_SAVED, needs_parent=False)

        store.commit(commit)

        assert store.query(Query(parent_id=NEVER_SAVED)) == [commit.info]

    def test_a_parent_may_be_in_another_session(self, store: Store) -> None:
        parent = make_commit(session_id="one")
        child = make_commit(session_id="two", parent_id=parent.info.checkpoint_id)

        keep(store, parent, child)

        assert store.query(Query(parent_id=parent.info.checkpoint_id)) == [child.info]

    def test_a_base_that_is_not_there_is_refused_and_nothing_is_kept(self, store: Store) -> None:
        never_committed = make_commit(large_state())
        commit = make_commit(large_state(1), base=never_committed)

        with pytest.raises(MissingBaseError):
            store.commit(commit)

        assert is_absent(store, commit.info)
        assert not store.fetch(commit.chunks)

    def test_chunks_of_a_base_need_not_be_sent_again(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        base = make_commit(large_state())
        commit = make_commit(large_state(1), base=base)
        assert len(commit.chunks) < len(base.chunks)

        keep(store, base, commit)

        assert state_of(store.load(commit.info.checkpoint_id)) == large_state(1)

    def test_a_state_of_which_nothing_is_new_needs_no_chunks_at_all(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        base = make_commit(large_state())
        fork = make_commit(large_state(), base=base, session_id="fork")
        assert not fork.chunks

        keep(store, base, fork)

        assert state_of(store.load(fork.info.checkpoint_id)) == large_state()

    def test_a_chunk_that_is_missing_is_noticed(self, store: Store) -> None:
        whole = make_commit(large_state())
        missing = bytes.fromhex(whole.info.content_id)
        chunks = {name: data for name, data in whole.chunks.items() if name != missing}

        with pytest.raises(CheckpointIntegrityError) as caught:
            load_what_was_committed(store, replace(whole, chunks=chunks))

        assert caught.value.checkpoint_id == whole.info.checkpoint_id

    def test_a_chunk_of_other_content_than_its_name_says_is_noticed(self, store: Store) -> None:
        whole = make_commit(large_state())
        name = bytes.fromhex(whole.info.content_id)
        other = next(data for other, data in whole.chunks.items() if other != name)

        with pytest.raises(CheckpointIntegrityError) as caught:
            load_what_was_committed(store, replace(whole, chunks={**whole.chunks, name: other}))

        assert caught.value.checkpoint_id == whole.info.checkpoint_id

    def test_a_record_that_was_never_committed_is_not_there(self, store: Store) -> None:
        assert store.load(NEVER_SAVED) is None
        assert store.load("no such id") is None

    def test_an_expired_record_is_not_loaded(self, store: Store) -> None:
        commit = make_commit(**expired())
        store.commit(commit)

        assert store.load(commit.info.checkpoint_id) is None

    def test_a_record_is_loaded_until_it_expires(self, store: Store) -> None:
        commit = make_commit(ttl_seconds=3600)
        store.commit(commit)

        assert store.load(commit.info.checkpoint_id) is not None

    @pytest.mark.parametrize(
        "state",
        [{}, [], None, "", 0, b"\x00\xff" * 40, "\ud800", {"": {"": {}}}, {1: 2, None: 3}],
        ids=repr,
    )
    def test_any_state_is_kept_as_it_is(self, store: Store, state: Any) -> None:
        commit = make_commit(state)

        store.commit(commit)

        assert state_of(store.load(commit.info.checkpoint_id)) == state

    def test_changing_metadata_after_a_commit_changes_nothing_that_is_stored(
        self, store: Store
    ) -> None:
        metadata: dict[str, Any] = {"tag": "a", "list": [1]}
        commit = make_commit(metadata=metadata)
        store.commit(commit)

        metadata["tag"] = "changed"
        metadata["list"].append(2)

        assert store.query(Query())[0].metadata == {"tag": "a", "list": [1]}

    def test_changing_what_was_loaded_changes_nothing_that_is_stored(self, store: Store) -> None:
        commit = make_commit(metadata={"list": [1]})
        store.commit(commit)

        record = store.load(commit.info.checkpoint_id)
        assert record is not None
        listed, head = store.query(Query())[0], store.heads()[0].head
        for info in (record.info, listed, head):
            info.metadata["list"].append(2)
            info.metadata["new"] = True
        if isinstance(record.chunks, dict):  # those of a large state are unpacked as they are read
            record.chunks.clear()

        assert store.query(Query())[0].metadata == {"list": [1]}
        assert state_of(store.load(commit.info.checkpoint_id)) == {"step": 1}

    def test_a_commit_that_fails_anywhere_leaves_all_or_nothing(self, store: Store) -> None:
        before = make_commit(large_state())
        points: list[str] = []
        with crash_points.listening(points.append):
            store.commit(before)

        for point in points:
            failing = make_commit(large_state(1), parent_id=before.info.checkpoint_id)
            with crash_points.listening(failing_at(point)), pytest.raises(Exception):  # noqa: B017, PT011
                store.commit(failing)
            if not is_absent(store, failing.info):
                assert state_of(store.load(failing.info.checkpoint_id)) == large_state(1)

        after = make_commit(large_state(2), parent_id=before.info.checkpoint_id)
        store.commit(after)
        assert state_of(store.load(before.info.checkpoint_id)) == large_state()
        assert state_of(store.load(after.info.checkpoint_id)) == large_state(2)


def load_what_was_committed(store: Store, commit: Commit) -> None:
    """A store may refuse damaged chunks at once, or when they are loaded."""
    store.commit(commit)
    store.load(commit.info.checkpoint_id)


def failing_at(point: str) -> Any:
    """Return a listener that fails at one point."""

    def on_reached(name: str) -> None:
        if name == point:
            raise RuntimeError(f"failed at {name}")

    return on_reached
