"""What was said from one step of a coding agent to the next is shown once."""

from typing import Any

import pytest

from holdfast.cli.output.messages import Known, said_since
from holdfast.core.conversation.said import Said


def said(role: str, text: str) -> Said:
    return Said(role, [{"type": "text", "content": text}])


def result(call_id: str | None, text: str) -> Said:
    part: dict[str, Any] = {"type": "tool_call_response", "response": text}
    return Said("tool", [part if call_id is None else {**part, "id": call_id}])


def known(*messages: Said, of: str | None = None, is_recorded: bool = True) -> Known:
    return Known(list(messages), is_recorded, of)


ASKED = said("user", "Make it.")


def test_a_result_in_other_words_is_the_same_where_a_hook_told_it() -> None:
    told, wrote = result("c1", "a is written."), result("c1", "File created: a")
    more = said("assistant", "Done.")

    changes = said_since(known(ASKED, told), known(ASKED, wrote, more))

    assert (changes.removed, changes.added) == ([], [more])


@pytest.mark.parametrize(("is_recorded", "call_id"), [(False, "c1"), (True, None)])
def test_a_result_that_changed_is_a_change_elsewhere(is_recorded: bool, call_id: str) -> None:
    old, new = result(call_id, "one"), result(call_id, "two")

    changes = said_since(
        known(ASKED, old, is_recorded=is_recorded), known(ASKED, new, is_recorded=is_recorded)
    )

    assert (changes.removed, changes.added) == ([old], [new])


def test_results_of_other_calls_are_others() -> None:
    changes = said_since(known(result("c1", "one")), known(result("c2", "one")))

    assert (len(changes.removed), len(changes.added)) == (1, 1)


def test_a_subagent_takes_nothing_back_of_what_was_said_to_its_parent() -> None:
    own = said("user", "Write the note.")

    changes = said_since(known(ASKED), known(own, of="a1"))
    assert (changes.removed, changes.added) == ([], [own])

    changes = said_since(known(own, of="a1"), known(own, ASKED, of="a1"))
    assert (changes.removed, changes.added) == ([], [ASKED])
