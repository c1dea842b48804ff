"""The contract of fences: what is written unless a note is there, as who took over writes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.errors import FencedError, NoteExistsError
from holdfast.stores.base import NotesOnly, Query, Store
from holdfast.testing.handles import at_once
from holdfast.testing.samples import (
    NEVER_SAVED,
    ids,
    keep,
    keep_notes,
    large_state,
    make_commit,
    make_note,
)
from holdfast.testing.suite import OpenStore, Suite

FENCE = ("/sessions/agent/session", "lease/2")


class FenceSuite(Suite):
    """Tests of ``Commit.unless`` and ``NotesOnly.unless``."""

    def test_what_is_fenced_is_kept_while_the_note_is_not_there(self, store: Store) -> None:
        keep_notes(store, make_note(FENCE[0], "lease/1"), make_note("/elsewhere", FENCE[1]))
        commit = replace(make_commit(large_state()), unless=FENCE)

        store.commit(commit)
        store.commit(NotesOnly((make_note("/log"),), {}, unless=FENCE))

        assert ids(store.query(Query())) == ids([commit])
        assert len(store.notes(["/log"])) == 1

    @pytest.mark.parametrize("scope", [FENCE[0], NEVER_SAVED, "/Ä B/c:d"])
    def test_once_the_note_is_there_nothing_of_it_is_kept(self, store: Store, scope: str) -> None:
        fence = (scope, "claim/2")
        (first,) = keep(store, make_commit())
        keep_notes(store, make_note(*fence))

        with pytest.raises(FencedError) as raised:
            store.commit(replace(make_commit(large_state()), unless=fence))
        with pytest.raises(FencedError):
            store.commit(
                replace(make_commit(), unless=fence, notes=(make_note("/log", "with it"),))
            )
        with pytest.raises(FencedError):
            store.commit(NotesOnly((make_note("/log", "alone"),), {}, unless=fence))
        with pytest.raises(FencedError):
            store.commit(NotesOnly((make_note(scope, "beside"),), {}, unless=fence))

        assert raised.value.fence == fence
        assert ids(store.query(Query())) == ids([first])
        assert [note.key for note in store.notes(None)] == ["claim/2"]

    def test_a_fenced_note_may_be_in_the_scope_of_its_fence(self, store: Store) -> None:
        keep_notes(store, make_note(FENCE[0], "lease/1"))

        store.commit(NotesOnly((make_note(FENCE[0], "lease/1/renewed"),), {}, unless=FENCE))

        assert len(store.notes([FENCE[0]])) == 2

    def test_who_takes_over_may_be_fenced_by_another_note(self, store: Store) -> None:
        take = NotesOnly((make_note(*FENCE),), {}, unless=(FENCE[0], "settled"))
        store.commit(take)

        with pytest.raises(NoteExistsError):
            store.commit(take)
        keep_notes(store, make_note(FENCE[0], "settled"))
        with pytest.raises(FencedError):
            store.commit(NotesOnly((make_note(FENCE[0], "lease/3"),), {}, unless=take.unless))

    def test_a_second_handle_is_fenced_by_what_the_first_wrote(self, open_store: OpenStore) -> None:
        if not self.persistent:
            return
        with open_store() as store, open_store() as other:
            other.commit(replace(make_commit(), unless=FENCE))
            keep_notes(store, make_note(*FENCE))

            with pytest.raises(FencedError):
                other.commit(replace(make_commit(), unless=FENCE))
            assert len(store.query(Query())) == 1

    @pytest.mark.parametrize("large", [False, True])
    def test_who_took_over_sees_all_that_others_could_write(
        self, store: Store, large: bool
    ) -> None:
        """Whatever is written when the note stands was there to be seen by who wrote the note."""
        state = {"text": "x" * 9_000_000} if large else {"step": 1}
        writers = range(1, 4)

        def work(number: int) -> list[str]:
            if number == 0:
                for _ in range(3):
                    keep(store, make_commit(session_id="another"))
                keep_notes(store, make_note(*FENCE))
                seen = ids(store.query(Query(session_id="session")))
                return [*seen, *(note.key for note in store.notes(["/log"]))]
            if number not in writers:
                return []
            done = []
            try:
                for step in range(3 if large else 40):
                    key = f"{number}/{step}"
                    store.commit(NotesOnly((make_note("/log", key),), {}, unless=FENCE))
                    done.append(key)
                    commit = replace(make_commit([state, key]), unless=FENCE)
                    store.commit(commit)
                    done += ids([commit])
            except FencedError:
                pass
            return done

        seen, *written = at_once(work)

        assert set(seen) == {each for done in written for each in done}
        assert ids(store.query(Query(session_id="session"))) == [i for i in seen if "/" not in i]
