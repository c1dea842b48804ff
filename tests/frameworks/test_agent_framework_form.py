"""Messages of Agent Framework as the framework itself takes and gives them."""

import asyncio
from typing import Any

from agent_framework import AgentSession
from hypothesis import given, settings

from holdfast import SyncClient
from holdfast.adapters.agent_framework import HoldfastHistoryProvider
from holdfast.adapters.agent_framework.messages import kept, loaded
from holdfast.core.conversation import FORMS, Conversation, Lost, Native
from holdfast.core.conversation.reading import read
from tests.conversations import CONVERSATIONS, usual_conversations
from tests.frameworks.agent_framework_kit import harbour_agent

FORM = FORMS["agent_framework"]


@given(conversation=CONVERSATIONS)
def test_any_conversation_comes_back_from_the_frameworks_own_messages(
    conversation: Conversation,
) -> None:
    lost = Lost()
    messages = loaded(FORM.write(conversation, lost))
    found = read(FORM, Native(kept(messages)))

    assert found.messages == conversation.messages
    assert lost.found in ([], ["$.system_instructions: the agent has its own: give them to it"])


@settings(max_examples=15, deadline=None)
@given(conversation=usual_conversations())
def test_a_conversation_of_another_framework_goes_on_here(conversation: Conversation) -> None:
    settled = conversation.settle(rest="answer")
    state = FORM.state(FORM.write(settled, Lost()), settled)

    async def goes_on() -> Any:
        with SyncClient.memory() as client:
            client.save("agent_framework", "agent_framework", state, session_id="s")
            provider = HoldfastHistoryProvider(client)
            agent = harbour_agent(provider, lambda messages: [])
            await agent.run("go on", session=AgentSession(session_id="s"))
            return agent.client.sent[0]

    sent = asyncio.run(goes_on())
    assert read(FORM, Native(kept(sent[:-1]))).messages == settled.messages
    assert sent[-1].text == "go on"


def test_what_somebody_else_put_beside_messages_is_lost_and_named() -> None:
    beside = {"holdfast": {"foreign": [7, [0, {"type": "x_item"}]], "fields": 7}}
    content = {
        "type": "function_result",
        "call_id": "c",
        "result": "{",
        "additional_properties": {"holdfast": {"json": True, "fields": 7, "without": 7}},
    }
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}
    messages = [
        {"role": "assistant", "contents": [call], "additional_properties": beside},
        {"role": "tool", "contents": [content]},
    ]
    found = read(FORM, Native(messages))

    assert [part["type"] for part in found.messages[0]["parts"]] == ["x_item", "tool_call"]
    assert found.messages[1]["parts"][0]["response"] == "{"
    assert found.lost == ["$.messages[0]: what was kept beside it is no part"]
