"""Laws that the form of every framework's conversations keeps; no framework is needed for them."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.conversation import FORMS, Conversation, Form, Lost, Native
from holdfast.core.conversation.reading import conversation_in, found_in, read
from holdfast.core.conversation.writing import beginning, with_originals, written
from holdfast.errors import AdapterError
from tests.conversations import ANYTHING, CONVERSATIONS, usual_conversations

WRITTEN = [name for name in FORMS if name != "smolagents"]
"""Those that keep calls and answers apart; the steps of smolagents are made of text."""

every_form = pytest.mark.parametrize("framework", list(FORMS))
every_target = pytest.mark.parametrize("framework", WRITTEN)


def back(form: Form, conversation: Conversation) -> tuple[Conversation, list[str], list[Any]]:
    """Return what is read of what is written, what was lost on the way, and what was written."""
    lost = Lost()
    native = form.write(conversation, lost)
    found = read(form, Native(native))
    return found, [*lost.found, *found.lost], native


@every_target
@given(conversation=usual_conversations())
def test_what_agents_do_comes_back_as_it_was(framework: str, conversation: Conversation) -> None:
    form = FORMS[framework]
    found, lost, _ = back(form, conversation)

    if not lost:
        assert found.messages == conversation.messages
    else:
        check_losses(conversation, found, lost)


@every_target
@given(conversation=CONVERSATIONS)
@example(Conversation())
def test_any_conversation_comes_back_but_for_what_is_said_to_be_lost(
    framework: str, conversation: Conversation
) -> None:
    form = FORMS[framework]
    found, lost, _ = back(form, conversation)

    if not lost:
        assert found.messages == conversation.messages
        assert found.system_instructions == conversation.system_instructions
    else:
        check_losses(conversation, found, lost)


@every_target
@given(conversation=CONVERSATIONS)
def test_what_came_back_once_comes_back_again(framework: str, conversation: Conversation) -> None:
    form = FORMS[framework]
    once, *_ = back(form, conversation)
    twice, *_ = back(form, once)

    assert twice.messages == once.messages


@every_target
@given(conversation=CONVERSATIONS)
def test_what_is_written_is_json(framework: str, conversation: Conversation) -> None:
    native = FORMS[framework].write(conversation, Lost())

    assert json.loads(json.dumps(native)) == native


@every_target
@given(conversation=usual_conversations())
def test_the_state_of_a_framework_holds_its_conversation(
    framework: str, conversation: Conversation
) -> None:
    form = FORMS[framework]
    native = form.write(conversation, Lost())
    state, tags = form.place(form.state(native, conversation), "s", ID)
    found = form.extract(state)

    assert found is not None
    assert read(form, found).messages == read(form, Native(native)).messages
    assert all(isinstance(name, str) for name in tags)


ID = "01a1edd5-3c49-7cd4-9b7e-927986b420e7"


@every_target
@given(conversation=usual_conversations(), more=usual_conversations(), data=st.data())
def test_who_comes_back_finds_the_messages_it_had(
    framework: str, conversation: Conversation, more: Conversation, data: st.DataObject
) -> None:
    form = FORMS[framework]
    natives = form.write(conversation, Lost())
    had = read(form, Native(natives))
    goes_on = Conversation.of([*had.messages, *more.messages])
    taken, said = beginning(form, goes_on, natives)

    assert read(form, Native(natives[:taken])).messages == goes_on.messages[:said]
    assert not read(form, Native(natives[:taken])).pending
    whole = written(form, goes_on, natives)
    assert whole.messages[:taken] == natives[:taken]
    if had.messages and not had.pending and had.messages[-1]["role"] != more.messages[0]["role"]:
        assert taken == len(natives)
    end = data.draw(st.integers(0, len(natives)))
    few, _ = beginning(form, goes_on, natives[:end])
    assert few <= end


@given(conversation=usual_conversations(), more=usual_conversations())
def test_what_another_framework_could_not_hold_is_back(
    conversation: Conversation, more: Conversation
) -> None:
    own = Conversation.of(
        [
            {**message, "parts": [{"type": "reasoning", "content": "hm"}, *message["parts"]]}
            if message["role"] == "assistant"
            else message
            for message in conversation.messages
        ]
    )
    now = Conversation.of([*conversation.messages, *more.messages])
    restored = with_originals(now, conversation, own)

    untouched = len(conversation.messages) - 1
    assert restored.messages[:untouched] == own.messages[:untouched]
    assert restored.messages[untouched + 1 :] == now.messages[untouched + 1 :]


# Data of an enemy


@every_form
@given(state=ANYTHING)
def test_any_state_is_read_or_clearly_refused(framework: str, state: Any) -> None:
    try:
        found = conversation_in(framework, state)
    except AdapterError:
        return
    if found is not None:
        assert [each for each in found.problems() if not each.startswith("call ")] == []


@every_form
@given(messages=st.lists(ANYTHING, max_size=4))
def test_any_messages_are_read_or_lost(framework: str, messages: list[Any]) -> None:
    found = read(FORMS[framework], Native(messages))

    assert [each for each in found.problems() if not each.startswith("call ")] == []


@every_form
def test_a_state_that_leads_to_itself_is_clearly_refused(framework: str) -> None:
    circle: dict[str, Any] = {}
    for name in ("messages", "values", "checkpoint", "state", "items", "events", "llm_context"):
        circle[name] = circle if name != "messages" else [circle]
    circle |= {"type": "text", "role": "user", "content": [circle], "parts": [circle]}
    try:
        found_in(framework, circle)
        conversation_in(framework, circle)
    except AdapterError as error:
        assert "nests deeper" in str(error) or "holds more" in str(error)  # noqa: PT017


@given(state=ANYTHING)
def test_any_state_of_a_program_is_looked_through_for_messages(state: Any) -> None:
    found = conversation_in("custom", state)

    assert found is None or [p for p in found.problems() if not p.startswith("call ")] == []


# What is lost is named


def check_losses(conversation: Conversation, found: Conversation, lost: list[str]) -> None:
    """Check that what is not named as lost is there.

    Where a whole message is lost its neighbours are one, so the order may be another; and a
    system message that was behind it may lead now.
    """
    named = [each.partition(": ")[0] for each in lost]
    kept = [
        (message["role"], part)
        for i, message in enumerate(conversation.messages)
        for j, part in enumerate(message["parts"])
        if not any(
            path == f"$.messages[{i}]" or path.startswith(f"$.messages[{i}].parts[{j}]")
            for path in named
        )
    ]
    there = [(message["role"], part) for message in found.messages for part in message["parts"]]
    there += [("system", part) for part in found.system_instructions]
    for each in kept:
        assert each in there, f"{each} is gone, and not among {lost}"
        there.remove(each)
