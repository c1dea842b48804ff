"""The history of calls by itself: no store, no run."""

from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.errors import DivergenceError, RunError, UnknownEffectError
from holdfast.session.effects import (
    ENDED,
    FINAL,
    KINDS,
    RULES,
    SESSION,
    STARTED,
    Effect,
    Kind,
)
from holdfast.session.history import CallHistory, Recalled, without
from holdfast.session.recorded import calls_noted
from holdfast.session.volumes import Shelf

HEAD = "head"


CLIENT = SyncClient.open("memory://")
run = CLIENT.runtime.run


def history(may_diverge: bool = False) -> CallHistory:
    shelf = Shelf(CLIENT.runtime.engine)
    return CallHistory(("agent", "session"), lambda block: block == SESSION, may_diverge, shelf)


def recalled(calls: CallHistory, effect: Effect, again: bool = False) -> Recalled:
    return run(calls.recall(effect, again))


def effect(tool: str, kind: Kind = "local", key: str | None = None) -> Effect:
    return Effect("", -1, tool, kind, digest=tool, key=key)


def made(calls: CallHistory, tool: str, kind: Kind = "local", **end: Any) -> Effect:
    """Return a call that was made and written down, as ``run.call`` does it."""
    begun = calls.put(recalled(calls, effect(tool, kind)).effect)
    return calls.put(begun.ended(status="done", **end)) if end else begun


def notes_of(*calls: Effect) -> list[tuple[str, Any]]:
    return [(f"call/{call.index}/started", call.as_dict()) for call in calls]


def test_a_call_has_the_same_id_after_a_resume_and_equal_ones_are_told_apart() -> None:
    first, second = history(), history()

    ids = [made(first, "read", output=1).id for _ in range(2)]

    assert len(set(ids)) == 2
    assert [made(second, "read", output=1).id for _ in range(2)] == ids


def test_a_call_that_was_not_made_after_all_is_the_next_equal_one() -> None:
    calls = history()
    begun = recalled(calls, effect("read")).effect
    calls.not_made(begun)

    assert recalled(calls, effect("read")).effect.id == begun.id


def test_what_is_noted_on_the_head_is_recalled_in_order_and_then_all_is_new() -> None:
    before = history()
    noted = [made(before, "a", output=1), made(before, "b", output=2)]
    calls = history()
    calls.begin(notes_of(*noted))

    found = [recalled(calls, effect(tool)) for tool in ("a", "b", "b")]

    assert [each.is_recorded for each in found] == [True, True, False]
    assert [each.effect.output for each in found] == [1, 2, None]
    assert calls.made_since_opening() == 0


def test_another_call_than_the_recorded_one_is_a_divergence_unless_that_may_be() -> None:
    noted = notes_of(made(history(), "a", output=1))
    strict, live = history(), history(may_diverge=True)
    for calls in (strict, live):
        calls.begin(noted)

    with pytest.raises(DivergenceError):
        recalled(strict, effect("other"))
    assert not recalled(live, effect("other")).is_recorded
    assert [call.abandoned for call in run(live.every_call())] == [True]


def test_a_lasting_call_of_unknown_end_waits_for_a_decision() -> None:
    noted = notes_of(made(history(), "pay", "irreversible"))
    calls = history()
    calls.begin(noted)

    assert calls.waiting_for_decision() == 1
    assert calls.is_cut_off()
    for _ in range(2):  # asked again, it still waits
        with pytest.raises(UnknownEffectError):
            recalled(calls, effect("pay", "irreversible"))
    (unknown,) = calls.unknown()
    calls.put(calls.undecided(unknown).ended(status="done", output="paid"))

    assert recalled(calls, effect("pay", "irreversible")).effect.output == "paid"
    with pytest.raises(RunError, match="not unknown any more"):
        calls.undecided(unknown)


def test_who_only_looks_makes_no_call() -> None:
    calls = history()
    assert not calls.is_only_looked_at()  # nothing waits
    calls.begin(notes_of(made(history(), "a", output=1)))

    assert calls.is_only_looked_at()
    calls.program_calls()
    assert not calls.is_only_looked_at()


def test_only_the_end_of_a_call_is_noted_on_the_head_that_has_its_beginning() -> None:
    calls = history()
    begun = recalled(calls, effect("a")).effect
    calls.begin_call(begun)
    begun = calls.put(begun)

    assert calls.note_of(begun, STARTED, HEAD)[1]["tool"] == "a"
    ended = calls.put(begun.ended(status="done", output=1))
    assert "tool" not in calls.note_of(ended, ENDED, HEAD)[1]
    assert calls.note_of(ended, ENDED, "a head made while it ran")[1]["tool"] == "a"


def test_a_checkpoint_takes_the_journal_over_but_for_what_is_under_way() -> None:
    calls = history()
    made(calls, "a", output=1)
    running = recalled(calls, effect("b")).effect
    calls.begin_call(running)
    running = calls.put(running)
    assert running.index == 1

    news = calls.news([calls.resume_point(SESSION)], SESSION)
    calls.follow(news, "next")

    assert [entry.get("tool") for entry in news] == ["a", None, "b"]
    assert calls.entries_with([]) == news
    assert calls.put(running.ended(status="done")).index == 0  # the first since the new head
    assert [call.tool for call in run(calls.every_call())] == ["a", "b"]


def test_what_was_done_elsewhere_and_cannot_be_undone_is_given_and_not_done_again() -> None:
    elsewhere = history()
    paid = made(elsewhere, "pay", "irreversible", output="receipt")
    looked = made(elsewhere, "look", "read", output=1)
    calls = history()

    run(calls.know_of([paid, looked]))

    assert recalled(calls, effect("look", "read")).reused is None
    assert recalled(calls, effect("pay", "irreversible"), again=True).reused is None
    reused = recalled(calls, effect("pay", "irreversible")).reused
    assert reused is not None
    assert reused.output == "receipt"


def test_going_back_leaves_what_was_done_since() -> None:
    calls = history()
    made(calls, "a", output=1)
    calls.follow(calls.news([], None), "next")
    kept = calls.entries_with([])
    done = made(calls, "b", "reversible", output=2)
    calls.follow(calls.news([], None), "next")  # the checkpoint from which one goes back

    since = run(calls.since(kept))
    run(calls.go_back(kept, since, {done.id}, "there"))
    calls.jump([SESSION])

    assert [call.tool for call in since.later] == ["b"]
    (_, undone) = run(calls.every_call())
    assert (undone.abandoned, undone.compensated) == (True, True)


def test_notes_and_entries_can_be_read_without_a_session() -> None:
    calls = history()
    call = made(calls, "a", output=1)
    written = calls.news([], None)

    assert calls_noted(notes_of(call)) == [call]
    assert without([*written, {"id": "new"}], written) == [{"id": "new"}]
    assert calls.last_files() is None


def test_every_kind_of_effect_says_what_holds_for_its_calls() -> None:
    assert set(RULES) == set(KINDS)
    assert FINAL == ("irreversible",)
    assert [kind for kind in KINDS if effect("a", kind).lasts] == ["reversible", "irreversible"]
