"""The contract of notes: kept with their commit or not at all, in the order they were written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import compress, decompress
from holdfast.errors import (
    CheckpointConflictError,
    FencedError,
    MissingBaseError,
    MissingParentError,
    NoteExistsError,
)
from holdfast.model import microseconds
from holdfast.stores.base import NOTE_TIES, Note, NotesOnly, Query, Store
from holdfast.stores.capabilities import FindsLastNotes
from holdfast.testing.commits import ODD_NAMES, is_absent
from holdfast.testing.handles import THREADS, at_once
from holdfast.testing.samples import (
    NEVER_SAVED,
    expired,
    ids,
    keep,
    keep_notes,
    large_state,
    make_commit,
    make_note,
    state_of,
    value_of,
)
from holdfast.testing.suite import OpenStore, Suite

HOUR = timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


def keys(notes: list[Note]) -> list[str]:
    return [note.key for note in notes]


def unplaced(notes: list[Note]) -> list[Note]:
    """Notes as they were before a store gave them their places."""
    return [replace(note, seq=0) for note in notes]


class NoteSuite(Suite):
    """Tests of notes."""

    def test_a_note_is_given_back_exactly(self, store: Store) -> None:
        until = (now() + HOUR).astimezone(timezone(timedelta(hours=5, minutes=45)))
        notes = [
            make_note("/log", "first", {"kept": (1, b"\x00\xff", None)}, until),
            make_note("/log", "second", "in words"),
            make_note("/log", "third", ["and", 1.5, float("inf"), 2**100, {1: 2}]),
        ]

        keep_notes(store, *notes)

        found = store.notes(["/log"])
        assert unplaced(found) == notes
        assert all(note.is_intact() for note in found)
        assert value_of(found[0]) == {"kept": (1, b"\x00\xff", None)}

    def test_the_last_notes_of_a_scope_are_those_of_all_that_have_not_expired(
        self, store: Store
    ) -> None:
        able = store.capability(FindsLastNotes)
        if able is None:
            return
        for n in range(150):
            until = now() - HOUR if n % 50 > 2 else None
            keep_notes(store, make_note("/log", str(n), n, until), make_note("/other", str(n), n))

        found = able.last_notes(["/log", "/other", "/none", "/log"], 4)

        own = [note for note in found if note.scope == "/log"]
        others = [note for note in found if note.scope == "/other"]
        assert own == store.notes(["/log"])[-4:]
        assert keys(own) == ["52", "100", "101", "102"]
        assert keys(others) == ["146", "147", "148", "149"]
        assert [note.seq for note in found] == sorted(note.seq for note in found)
        assert able.last_notes([], 4) == []

    def test_bytes_that_are_no_value_are_given_back_too(self, store: Store) -> None:
        notes = [
            Note.of("/log", str(n), body) for n, body in enumerate([b"", b"\x00", b"\x07\xff"])
        ]

        keep_notes(store, *notes)

        assert unplaced(store.notes(["/log"])) == notes

    def test_a_place_tells_when_a_note_was_written(self, store: Store) -> None:
        before = microseconds(now())
        keep_notes(store, make_note())
        after = microseconds(now())

        (note,) = store.notes(None)

        assert before <= note.seq // NOTE_TIES <= after

    def test_a_place_is_given_by_the_store_alone(self, store: Store) -> None:
        keep_notes(store, make_note(key="first"))
        (first,) = store.notes(None)

        keep_notes(store, replace(first, scope="/elsewhere"), replace(make_note(), seq=2**62))

        _, second, third = store.notes(None)
        assert first.seq < second.seq < third.seq < 2**62

    def test_notes_come_in_the_order_they_were_written(self, store: Store) -> None:
        written = [("/b", "z"), ("/a", "y"), ("/c", "x"), ("/a", "w"), ("/b", "v")]
        for scope, key in written[:3]:
            keep_notes(store, make_note(scope, key))
        store.commit(NotesOnly(tuple(make_note(*name) for name in written[3:]), {}))

        found = store.notes(None)

        assert [(note.scope, note.key) for note in found] == written
        places = [note.seq for note in found]
        assert places == sorted(set(places))
        assert store.notes(["/c", "/b"]) == [note for note in found if note.scope != "/a"]
        assert store.notes(["/a", "/a", "/b", "/c", "/d"]) == found

    def test_only_notes_past_a_place_are_given(self, store: Store) -> None:
        keep_notes(store, *(make_note(f"/{n % 2}", str(n)) for n in range(6)))
        found = store.notes(None)

        for at, note in enumerate(found):
            assert store.notes(None, note.seq) == found[at + 1 :]
            assert store.notes(["/0"], note.seq) == [
                later for later in found[at + 1 :] if later.scope == "/0"
            ]

    @pytest.mark.parametrize("page", [1, 2, 3, 100])
    def test_paging_through_notes_shows_each_once(self, store: Store, page: int) -> None:
        keep_notes(store, *(make_note(f"/{n % 3}", str(n)) for n in range(7)))

        for scopes in (None, ["/0", "/1", "/2"]):
            seen: list[Note] = []
            while found := store.notes(scopes, seen[-1].seq if seen else 0, page):
                assert len(found) <= page
                seen += found
            assert keys(seen) == [str(n) for n in range(7)]

    def test_a_scope_without_notes_has_none(self, store: Store) -> None:
        assert store.notes(None) == []
        keep_notes(store, make_note("/log"))

        assert store.notes(["/other", "", NEVER_SAVED, "/LOG", "log", "/log "]) == []
        assert store.notes([]) == []
        assert store.notes(["/log"], limit=0) == []

    def test_a_key_is_there_once_in_a_scope(self, store: Store) -> None:
        (first,) = keep_notes(store, make_note(value="first"))

        with pytest.raises(NoteExistsError) as raised:
            keep_notes(store, make_note(value="second"))

        assert raised.value.note.key == first.key
        assert unplaced(store.notes(None)) == [first]
        keep_notes(store, make_note("/elsewhere", value="second"))
        assert len(store.notes(None)) == 2

    def test_of_a_commit_with_a_key_that_is_taken_nothing_is_kept(self, store: Store) -> None:
        keep_notes(store, make_note("/log", "taken"))
        notes = (make_note("/log", "new"), make_note("/new"), make_note("/log", "taken"))
        commit = replace(make_commit(large_state()), notes=notes)

        with pytest.raises(NoteExistsError):
            store.commit(commit)
        with pytest.raises(NoteExistsError):
            store.commit(NotesOnly(notes, {}))

        assert is_absent(store, commit.info)
        assert store.heads() == []
        assert keys(store.notes(None)) == ["taken"]
        if store.shares_chunks:
            assert store.fetch(list(commit.chunks)) == {}
        store.commit(replace(commit, notes=notes[:2]))
        assert keys(store.notes(None)) == ["taken", "new", "note"]
        assert state_of(store.load(commit.info.checkpoint_id)) == large_state()

    def test_of_a_commit_that_has_a_key_twice_nothing_is_kept(self, store: Store) -> None:
        notes = (make_note(key="same", value=1), make_note("/b"), make_note(key="same", value=2))
        commit = replace(make_commit(), notes=notes)

        with pytest.raises(NoteExistsError):
            store.commit(commit)
        with pytest.raises(NoteExistsError):
            store.commit(NotesOnly(notes, {}))

        assert is_absent(store, commit.info)
        assert store.notes(None) == []
        store.commit(replace(commit, notes=(notes[0], replace(notes[2], scope="/c"))))
        assert [note.scope for note in store.notes(None)] == ["/log", "/c"]

    def test_notes_are_kept_together_with_a_record(self, store: Store) -> None:
        commit = make_commit(large_state())
        own = commit.info.checkpoint_id
        notes = (make_note(own, "1"), make_note("/log", "2"), make_note(own, "3"))

        store.commit(replace(commit, notes=notes))

        assert unplaced(store.notes(None)) == list(notes)
        assert keys(store.notes([own])) == ["1", "3"]
        assert state_of(store.load(own)) == large_state()

    def test_of_a_record_that_is_refused_no_note_is_kept(self, store: Store) -> None:
        (there,) = keep(store, make_commit())
        notes = (make_note(), make_note(there.info.checkpoint_id))

        with pytest.raises(CheckpointConflictError):
            store.commit(replace(there, notes=notes))
        with pytest.raises(MissingParentError):
            store.commit(replace(make_commit(parent_id=NEVER_SAVED), notes=notes))
        gone = make_commit(large_state())
        with pytest.raises(MissingBaseError):
            store.commit(replace(make_commit(large_state(1), base=gone), notes=notes))

        assert store.notes(None) == []
        assert store.query(Query()) == [there.info]

    def test_what_notes_are_written_instead_of_may_go_and_nothing_else(self, store: Store) -> None:
        commit = make_commit()
        own = commit.info.checkpoint_id
        keep_notes(store, *(make_note(scope, key) for scope in ("/log", own) for key in "ab"))
        gone = (("/log", "a"), ("/log", "not there"), (own, "a"), ("/nowhere", "b"))

        store.commit(NotesOnly((make_note("/log", "c"),), {}, instead_of=gone[:2]))
        store.commit(replace(commit, notes=(make_note(own, "c"),), instead_of=gone[2:]))

        for scope in ("/log", own):
            assert [key for key in keys(store.notes([scope])) if key != "a"] == ["b", "c"]

    def test_what_is_refused_takes_the_place_of_nothing(self, store: Store) -> None:
        keep_notes(store, make_note("/log", "a"), make_note("/log", "fence"))
        instead_of = (("/log", "a"),)

        with pytest.raises(NoteExistsError):
            store.commit(NotesOnly((make_note("/log", "a"),), {}, instead_of=instead_of))
        written, fence = (make_note("/log", "b"),), ("/log", "fence")
        with pytest.raises(FencedError):
            store.commit(NotesOnly(written, {}, unless=fence, instead_of=instead_of))

        assert keys(store.notes(["/log"])) == ["a", "fence"]

    def test_a_note_may_come_before_its_checkpoint_and_after_it(self, store: Store) -> None:
        commit = make_commit()
        own = commit.info.checkpoint_id

        keep_notes(store, make_note(own, "before"))
        assert is_absent(store, commit.info)
        keep(store, commit)
        keep_notes(store, make_note(own, "after"))

        assert keys(store.notes([own])) == ["before", "after"]
        assert store.query(Query()) == [commit.info]

    def test_notes_are_no_checkpoints(self, store: Store) -> None:
        keep_notes(store, make_note(NEVER_SAVED), make_note("/log"))

        assert store.match("", 10) == []
        assert store.heads() == []
        assert (store.stats().checkpoints, store.stats().sessions) == (0, 0)

    def test_a_commit_of_no_notes_does_nothing(self, store: Store) -> None:
        store.commit(NotesOnly((), {}))

        assert store.notes(None) == []

    def test_notes_are_removed_with_their_checkpoint(self, store: Store) -> None:
        gone, stays = keep(store, make_commit(), make_commit())
        for scope in (*ids([gone, stays]), "/log"):
            keep_notes(store, make_note(scope, "1"), make_note(scope, "2"))

        assert store.delete(ids([gone])) == 1

        assert store.notes(ids([gone])) == []
        assert [note.scope for note in store.notes(None)] == [*ids([stays] * 2), "/log", "/log"]

    def test_notes_are_removed_where_there_is_no_checkpoint(self, store: Store) -> None:
        keep_notes(store, make_note("/log"), make_note("/logs"), make_note(NEVER_SAVED))

        assert store.delete(["/log", NEVER_SAVED, "/unknown"]) == 0

        assert [note.scope for note in store.notes(None)] == ["/logs"]

    def test_notes_kept_with_a_record_of_another_scope_stay_without_it(self, store: Store) -> None:
        commit = make_commit()
        store.commit(replace(commit, notes=(make_note("/log"), make_note("/log", "second"))))

        store.delete(ids([commit]))

        assert keys(store.notes(None)) == ["note", "second"]

    def test_a_key_that_was_removed_may_be_used_again(self, store: Store) -> None:
        keep_notes(store, make_note(value="first"))
        (first,) = store.notes(None)
        store.delete(["/log"])

        keep_notes(store, make_note(value="second"))

        (second,) = store.notes(None)
        assert value_of(second) == "second"
        assert second.seq > first.seq

    def test_an_expired_note_is_never_shown(self, store: Store) -> None:
        keep_notes(
            store,
            make_note(key="gone", expires_at=now() - timedelta(microseconds=1)),
            make_note(key="lives", expires_at=now() + HOUR),
            make_note(key="stays"),
        )

        assert keys(store.notes(None)) == ["lives", "stays"]
        assert keys(store.notes(["/log"], 0, 1)) == ["lives"]

    def test_sweeping_removes_notes_that_have_expired(self, store: Store) -> None:
        end = now() + HOUR
        keep_notes(store, make_note(key="lives", expires_at=end), make_note(key="stays"))

        assert store.sweep(end - timedelta(microseconds=1)) == 0
        assert keys(store.notes(None)) == ["lives", "stays"]
        assert store.sweep(end) == 0
        assert keys(store.notes(None)) == ["stays"]
        keep_notes(store, make_note(key="lives"))

    def test_sweeping_removes_the_notes_of_expired_checkpoints(self, store: Store) -> None:
        gone, stays = keep(store, make_commit(**expired()), make_commit(ttl_seconds=3600))
        keep_notes(store, *(make_note(scope) for scope in ids([gone, stays])))
        keep_notes(store, make_note(NEVER_SAVED))

        assert store.sweep(now()) == 1

        assert [note.scope for note in store.notes(None)] == [*ids([stays]), NEVER_SAVED]

    def test_scopes_and_keys_have_any_names(self, store: Store) -> None:
        an_id = NEVER_SAVED[:-2] + "ab"
        names = [*ODD_NAMES, *(f"/{name}" for name in ODD_NAMES), an_id, an_id.upper()]
        own_keys = [make_note(name, name, name) for name in names]
        own_scope = [make_note("/log", name, name) for name in names]

        store.commit(NotesOnly((*own_keys, *own_scope), {}))

        assert unplaced(store.notes(None)) == [*own_keys, *own_scope]
        for note in own_keys:
            assert unplaced(store.notes([note.scope])) == [note]
        with pytest.raises(NoteExistsError):
            keep_notes(store, own_scope[-1])
        store.delete(names[::2])
        assert [note.scope for note in store.notes(names)] == names[1::2]

    def test_a_large_note_is_given_back_whole(self, store: Store) -> None:
        notes = [make_note(key="small"), make_note(key="large", value=large_state())]
        notes.append(make_note(key="huge", value=["x" * 2_000_000, b"\xfe" * 1_000_000]))

        keep_notes(store, *notes)

        assert unplaced(store.notes(["/log"])) == notes
        assert value_of(store.notes(None)[1]) == large_state()

    def test_the_chunks_of_a_note_are_kept_beside_it(self, store: Store) -> None:
        if not store.shares_chunks:
            return
        encoded = encode(large_state())
        chunks = {name: compress(raw) for name, raw in encoded.chunks.items()}
        body = chunks.pop(encoded.root)

        store.commit(NotesOnly((Note.of("/log", "large", body),), chunks))

        (note,) = store.notes(None)
        assert store.fetch([name for name, _ in references(decompress(note.body))])
        assert store.fetch(list(chunks)) == chunks
        assert store.collect(chunks.keys(), now() + HOUR, False).chunks == 0

    def test_many_notes_of_one_scope_are_kept(self, store: Store) -> None:
        notes = [make_note("/log", f"note {n}", n) for n in range(2000)]
        for start in range(0, 2000, 250):
            store.commit(NotesOnly(tuple(notes[start : start + 250]), {}))

        found = store.notes(["/log"])

        assert unplaced(found) == notes
        assert len({note.seq for note in found}) == 2000
        assert store.notes(["/log"], found[1499].seq, 10) == found[1500:1510]
        assert store.notes(None, found[-2].seq) == found[-1:]

    def test_notes_of_very_many_scopes_are_given_at_once(self, store: Store) -> None:
        scopes = [f"/{n}" for n in range(1200)]
        store.commit(NotesOnly(tuple(make_note(scope) for scope in scopes[:600]), {}))

        assert [note.scope for note in store.notes(scopes)] == scopes[:600]
        assert [note.scope for note in store.notes(scopes[300:], limit=5)] == scopes[300:305]

    def test_one_key_written_by_many_threads_is_kept_once(self, store: Store) -> None:
        def work(number: int) -> int | None:
            commit = replace(make_commit(session_id=str(number)), notes=(make_note(value=number),))
            try:
                store.commit(commit)
            except NoteExistsError:
                return None
            return number

        winners = [number for number in at_once(work) if number is not None]

        assert len(winners) == 1
        assert [value_of(note) for note in store.notes(None)] == winners
        assert [info.session_id for info in store.query(Query())] == [str(winners[0])]

    def test_many_threads_write_to_one_scope_and_nothing_is_lost(
        self, open_store: OpenStore
    ) -> None:
        with open_store() as store:

            def work(number: int) -> None:
                for step in range(12):
                    keep_notes(store, make_note("/log", f"{number}-{step}", step))

            at_once(work)
            found = store.notes(["/log"])

        assert sorted(keys(found)) == sorted(f"{n}-{s}" for n in range(THREADS) for s in range(12))
        assert len({note.seq for note in found}) == len(found)
        for number in range(THREADS):
            steps = [value_of(note) for note in found if note.key.startswith(f"{number}-")]
            assert steps == list(range(12))
        with open_store() as again:
            assert again.notes(["/log"]) == (found if self.persistent else [])

    def test_a_reader_that_goes_on_from_a_place_misses_no_note(self, store: Store) -> None:
        each = 12

        def write(number: int) -> list[str]:
            for step in range(each):
                keep_notes(store, make_note("/log", f"{number}-{step}"))
            return []

        def read() -> list[str]:
            seen: list[Note] = []
            while len(seen) < each * (THREADS - 1):
                seen += store.notes(["/log"], seen[-1].seq if seen else 0, 5)
            return keys(seen)

        seen = at_once(lambda number: write(number) if number else read())[0]

        assert seen == keys(store.notes(None))

    def test_places_go_on_in_a_store_opened_again(self, open_store: OpenStore) -> None:
        if not self.persistent:
            return
        with open_store() as store, open_store() as other:
            for n in range(6):
                keep_notes((store, other)[n % 2], make_note(key=str(n)))
            assert keys(store.notes(None)) == keys(other.notes(None)) == [*"012345"]
            with pytest.raises(NoteExistsError):
                keep_notes(store, make_note(key="5"))

        with open_store() as again:
            keep_notes(again, make_note(key="6"))
            assert keys(again.notes(["/log"])) == [*"0123456"]
