"""Chat messages of LlamaIndex are found where its agents keep them, without LlamaIndex."""

import json
from typing import Any

import pytest
from hypothesis import given

from holdfast.core.conversation import Conversation, Lost, Native
from holdfast.core.conversation.frameworks.llama_index import FORM
from holdfast.core.conversation.reading import conversation_in, read
from tests.conversations import usual_conversations


def text(role: str, said: str) -> dict[str, Any]:
    return {
        "role": role,
        "additional_kwargs": {},
        "blocks": [{"block_type": "text", "text": said}],
    }


def object_of(fields: dict[str, Any], kind: str = "__is_pydantic") -> dict[str, Any]:
    """Return fields as LlamaIndex's serializer writes an object."""
    return {kind: True, "value": fields, "qualified_name": "llama_index.core.some.Class"}


def kept(values: Any) -> dict[str, Any]:
    state = {"store_type": "in_memory", "state_data": {"_tree": "dict", "_data": values}}
    return {"context": {"state": state, "workers": {}}}


def said_in(state: Any) -> list[tuple[str, str]] | None:
    found = conversation_in("llama_index", state)
    if found is None:
        return None
    return [(message["role"], message["parts"][0]["content"]) for message in found.messages]


HELLO = [("user", "hello"), ("assistant", "hi")]
MESSAGES = [text("user", "hello"), text("assistant", "hi")]
STORE = {"class_name": "SimpleChatStore", "store": {"chat_history": MESSAGES, "other": []}}
ROWS = [
    {"key": "k", "status": "active", "data": each, "role": each["role"], "timestamp": i}
    for i, each in enumerate(MESSAGES)
]
ARCHIVED = {"key": "k", "status": "archived", "data": text("user", "long ago")}


@pytest.mark.parametrize(
    "values",
    [
        {"chat_history": MESSAGES},
        {"messages": [object_of(each) for each in MESSAGES]},
        {"memory": object_of({"chat_store": STORE, "chat_store_key": "chat_history"})},
        {"memory": object_of({"chat_store": STORE}, "__is_component")},
        {"memory": object_of({"chat_store": json.dumps(STORE)}, "__is_component")},
        {"memory": object_of({"sql_store": {"db_data": [ARCHIVED, *ROWS]}})},
        {"chat_history": MESSAGES[:1], "scratchpad": MESSAGES[1:]},
        {"scratchpad": MESSAGES, "topic": "kelp"},
        {"history": [{"role": "user", "content": "hello"}, {"role": "model", "content": "hi"}]},
    ],
)
def test_messages_are_found_where_agents_keep_them(values: dict[str, Any]) -> None:
    assert said_in(kept(values)) == HELLO


def test_a_typed_state_is_looked_into_too() -> None:
    state = kept({})
    fields = {"chat_history": MESSAGES, "count": 1}
    state["context"]["state"]["state_data"] = {"_tree": "model", **object_of(fields)}

    assert said_in(state) == HELLO


@pytest.mark.parametrize(
    "values", [{}, {"messages": ["a", "b"]}, {"memory": 3}, {"memory": {"chat_store": "no json"}}]
)
def test_a_state_without_messages_holds_no_conversation(values: dict[str, Any]) -> None:
    assert said_in(kept(values)) is None


def test_a_pickled_state_holds_no_conversation() -> None:
    assert said_in({"context": {"state": {"state_data": "gASVBQAAAA=="}}}) is None


def test_all_blocks_are_read_and_what_has_no_place_is_named() -> None:
    blocks = [
        {"block_type": "thinking", "content": "hm", "additional_information": {"signature": "s"}},
        {"block_type": "image", "image": "AAAA", "image_mimetype": "image/png"},
        {"block_type": "audio", "audio": "AAAA", "format": "wav"},
        {"block_type": "document", "url": "https://example.org/a.pdf"},
        {"block_type": "cache", "cache_control": {}},
        {"block_type": "tool_call", "tool_call_id": "a", "tool_name": "f", "tool_kwargs": {"x": 1}},
    ]
    older = [{"id": "b", "function": {"name": "g", "arguments": "{}"}}]
    messages = [
        {"role": "assistant", "additional_kwargs": {"tool_calls": older}, "blocks": blocks},
        {**text("tool", "one"), "additional_kwargs": {"tool_call_id": "a"}},
        {**text("tool", "two"), "additional_kwargs": {"tool_call_id": "b"}},
    ]
    found = read(FORM, Native(messages))

    first, answers = found.messages
    assert [part["type"] for part in first["parts"]] == [
        "reasoning",
        "blob",
        "blob",
        "uri",
        "tool_call",
        "tool_call",
    ]
    assert first["parts"][2]["mime_type"] == "audio/wav"
    assert [part["response"] for part in answers["parts"]] == ["one", "two"]
    assert found.lost == ["$.messages[0].blocks[4]: a block 'cache' that has no place elsewhere"]


def test_what_a_workflow_waits_for_is_an_open_question() -> None:
    state = kept({"chat_history": MESSAGES})
    waiters = [
        {"waiter_id": "name", "resolved_event": None},
        {"waiter_id": "other", "resolved_event": {"value": {}}},
    ]
    state["context"]["workers"] = {"ask": {"collected_waiters": waiters}}
    found = conversation_in("llama_index", state)

    assert found is not None
    assert [each["id"] for each in found.interrupts] == ["name"]


@given(conversation=usual_conversations())
def test_what_is_written_comes_back_but_for_what_is_lost(conversation: Conversation) -> None:
    lost = Lost()
    native = FORM.write(conversation, lost)
    found = conversation_in("llama_index", FORM.state(native, conversation))

    assert json.loads(json.dumps(native)) == native
    if not lost.found and conversation.messages:
        assert found is not None
        assert found.messages == conversation.messages
