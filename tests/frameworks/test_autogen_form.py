"""Messages of AutoGen as AutoGen itself takes and gives them."""

import asyncio
from typing import Any

import pytest
from autogen_core.models import UserMessage
from hypothesis import given, settings

from holdfast import AdapterError, SyncClient
from holdfast.adapters.autogen import run
from holdfast.adapters.autogen.messages import loaded
from holdfast.core.conversation import FORMS, Conversation, Lost, Native
from holdfast.core.conversation.reading import read
from tests.conversations import usual_conversations
from tests.frameworks.autogen_kit import harbour_agent, says

FORM = FORMS["autogen"]


def without_images(conversation: Conversation) -> Conversation:
    """Return a conversation without images: those drawn are none that can be opened."""
    messages = [
        {**message, "parts": [part for part in message["parts"] if part["type"] != "blob"]}
        for message in conversation.messages
    ]
    return Conversation.of(messages)


@given(conversation=usual_conversations())
def test_what_agents_do_comes_back_from_autogens_own_messages(conversation: Conversation) -> None:
    native = FORM.write(without_images(conversation), Lost())
    objects = loaded(native)

    again = [each.model_dump(mode="json") for each in objects]
    assert read(FORM, Native(again)).messages == read(FORM, Native(native)).messages


@settings(max_examples=15, deadline=None)
@given(conversation=usual_conversations())
def test_a_conversation_of_another_framework_goes_on_here(conversation: Conversation) -> None:
    settled = without_images(conversation).settle(rest="answer")
    native = FORM.write(settled, Lost())

    async def goes_on() -> Any:
        with SyncClient.memory() as client:
            state = FORM.state(native, settled)
            client.save("autogen", "autogen", state, session_id="s")
            agent = harbour_agent(lambda _: says("gladly"))
            await run(agent, "go on", session_id="s", client=client)
            return agent._model_client.sent[0]

    sent = asyncio.run(goes_on())
    assert isinstance(sent[-1], UserMessage)
    own = [each.model_dump(mode="json") for each in sent[1:-1]]
    assert read(FORM, Native(own)).messages == read(FORM, Native(native)).messages


def test_what_is_no_message_is_named() -> None:
    with pytest.raises(AdapterError, match="no messages of AutoGen"):
        loaded([{"type": "UserMessage"}])
