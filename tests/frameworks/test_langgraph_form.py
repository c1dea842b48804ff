"""Threads of LangGraph hand their conversations on, and go on with those of others."""

import base64
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, LangGraphAdapter
from holdfast.adapters.portable import Conversation, conversation, messages
from tests.frameworks import reference

PICTURE = {
    "type": "image",
    "base64": base64.b64encode(reference.PNG).decode(),
    "mime_type": "image/png",
}
CALLS = [
    {"name": call["name"], "args": call["arguments"], "id": call["id"], "type": "tool_call"}
    for call in reference.CALLS
]
SAID: list[AnyMessage] = [
    SystemMessage(reference.SYSTEM),
    HumanMessage([{"type": "text", "text": reference.PROMPT}, PICTURE]),
    AIMessage(reference.SAID, tool_calls=CALLS),
    ToolMessage(reference.RESULTS["call_depth"], tool_call_id="call_depth"),
    ToolMessage("no tide", tool_call_id="call_tide", status="error"),
]
WHOLE = Conversation.of(
    [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": reference.PROMPT},
                {
                    "type": "blob",
                    "modality": "image",
                    "mime_type": "image/png",
                    "content": PICTURE["base64"],
                },
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": reference.SAID},
                *({"type": "tool_call", **call} for call in reference.CALLS),
            ],
        },
        {
            "role": "tool",
            "parts": [
                {
                    "type": "tool_call_response",
                    "id": "call_depth",
                    "response": reference.RESULTS["call_depth"],
                },
                {
                    "type": "tool_call_response",
                    "id": "call_tide",
                    "response": "no tide",
                    "is_error": True,
                },
            ],
        },
    ],
    [{"type": "text", "content": reference.SYSTEM}],
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "store.db") as client:
        yield client


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def graph_saying(saver: HoldfastSaver, *answers: AnyMessage) -> Any:
    left = iter(answers)
    graph = StateGraph(MessagesState).add_node("model", lambda state: {"messages": [next(left)]})
    return graph.add_edge(START, "model").compile(checkpointer=saver)


def found(session_id: str, client: SyncClient) -> Conversation:
    conversation_ = conversation(session_id, client)
    assert conversation_ is not None
    return conversation_


def test_a_thread_is_read_with_system_prompt_picture_calls_and_errors(client: SyncClient) -> None:
    graph = graph_saying(HoldfastSaver(client), AIMessage("done"))
    graph.invoke({"messages": SAID}, thread("t"))
    read = found("t", client)
    assert read.system_instructions == WHOLE.system_instructions
    assert read.messages[:-1] == WHOLE.messages
    assert (read.lost, read.origin["framework"]) == ([], "langgraph")


def test_it_is_read_without_langchain(client: SyncClient, tmp_path: Path) -> None:
    graph_saying(HoldfastSaver(client), AIMessage("done")).invoke({"messages": SAID}, thread("t"))
    script = (
        "import sys\n"
        "from holdfast.adapters.portable import conversation\n"
        f"read = conversation('t', url='sqlite:///{tmp_path / 'store.db'}')\n"
        "assert [m['role'] for m in read.messages] == ['user', 'assistant', 'tool', 'assistant']\n"
        "assert not any(name.startswith(('langchain', 'langgraph')) for name in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_snapshot_that_was_kept_by_hand_is_read_too(client: SyncClient) -> None:
    graph = graph_saying(HoldfastSaver(client), AIMessage("done"))
    graph.invoke({"messages": SAID}, thread("t"))
    snapshot = graph.get_state(thread("t"))
    client.put(LangGraphAdapter.extract(snapshot, agent_id="hand", session_id="h"))
    assert found("h", client).messages == found("t", client).messages


def test_a_conversation_from_elsewhere_is_gone_on_with_by_a_graph(client: SyncClient) -> None:
    elsewhere = client.save("custom", execution_state={"messages": _by_shape()}, session_id="e")
    moved = client.continue_in(elsewhere, "langgraph", session_id="t")
    assert moved.lost == []
    graph = graph_saying(HoldfastSaver(client), AIMessage("gone on"), AIMessage("again"))
    values = graph.invoke({"messages": [HumanMessage("more")]}, thread("t"))
    said = [message.content for message in values["messages"]]
    assert said == ["hello", "hi", "more", "gone on"]
    assert all(message.id for message in values["messages"][2:])
    graph.invoke({"messages": [HumanMessage("and")]}, thread("t"))
    history = list(graph.get_state_history(thread("t")))
    assert [len(each.values["messages"]) for each in history] == [6, 5, 4, 4, 3, 2, 2]
    first = client.timeline("langgraph", "t")[-1]
    assert first.parent_id == elsewhere


def _by_shape() -> list[dict[str, str]]:
    return [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def test_an_agent_of_langchain_goes_on_with_it(client: SyncClient) -> None:
    saver = HoldfastSaver(client)
    graph_saying(saver, AIMessage("done")).invoke({"messages": SAID}, thread("t"))
    head = client.timeline("langgraph", "t")[0].checkpoint_id
    client.continue_in(head, "pydantic_ai", session_id="p")
    there = client.timeline("pydantic_ai", "p")[0].checkpoint_id
    client.continue_in(there, "langgraph", session_id="t2")
    agent = create_agent(
        Model(messages=iter([AIMessage("gone on")])),
        tools=[reference.depth, reference.tide],
        system_prompt=reference.SYSTEM,
        checkpointer=saver,
    )
    agent.invoke({"messages": [HumanMessage("more")]}, thread("t2"))
    assert found("t2", client).messages[:4] == found("t", client).messages
    assert [message["role"] for message in found("t2", client).messages[4:]] == [
        "user",
        "assistant",
    ]


def test_going_back_takes_the_messages_that_were_there(client: SyncClient) -> None:
    saver = HoldfastSaver(client)
    graph_saying(saver, AIMessage("done")).invoke({"messages": SAID}, thread("t"))
    head = client.timeline("langgraph", "t")[0].checkpoint_id
    there = client.continue_in(head, "pydantic_ai", session_id="p")
    client.continue_in(there.checkpoint_id, "langgraph", session_id="back")
    graph = graph_saying(saver)
    before = graph.get_state(thread("t")).values["messages"]
    assert graph.get_state(thread("back")).values["messages"] == before


def test_a_fork_and_an_update_of_what_came_from_elsewhere_work(client: SyncClient) -> None:
    elsewhere = client.save("custom", execution_state={"messages": _by_shape()}, session_id="e")
    moved = client.continue_in(elsewhere, "langgraph", session_id="t")
    graph = graph_saying(HoldfastSaver(client), AIMessage("a"), AIMessage("b"))
    client.fork(moved.checkpoint_id, session_id="t2")
    graph.update_state(thread("t2"), {"messages": [HumanMessage("edited")]}, as_node="__start__")
    graph.invoke(None, thread("t2"))
    graph.invoke({"messages": [HumanMessage("more")]}, thread("t"))
    assert len(found("t2", client).messages) == 4
    assert len(found("t", client).messages) == 4


def test_calls_without_an_answer_do_not_brick_a_thread(client: SyncClient) -> None:
    saver = HoldfastSaver(client)
    graph_saying(saver, SAID[2]).invoke({"messages": SAID[:2]}, thread("t"))
    assert [call.id for call in found("t", client).pending] == ["call_depth", "call_tide"]
    head = client.timeline("langgraph", "t")[0].checkpoint_id
    moved = client.continue_in(head, "langgraph", session_id="t2")
    assert found("t2", client).problems() == []
    assert len(moved.lost) == 2
    kept = client.continue_in(head, "pydantic_ai", session_id="p")
    assert len(found(kept.session_id, client).pending) == 2


def test_messages_are_given_as_langchain_has_them() -> None:
    given = messages(WHOLE, "langgraph")
    assert [type(each).__name__ for each in given] == [type(each).__name__ for each in SAID[1:]]
    assert given[0].content == SAID[1].content
    assert given[1].tool_calls == CALLS
    assert (given[3].status, given[3].tool_call_id) == ("error", "call_tide")


def test_what_a_tool_gave_the_program_alone_is_named_as_lost(client: SyncClient) -> None:
    said = [*SAID[:3], ToolMessage("12", tool_call_id="call_depth", artifact={"chart": 1})]
    graph_saying(HoldfastSaver(client), AIMessage("done")).invoke({"messages": said}, thread("t"))
    assert found("t", client).lost == [
        "$.messages[3].artifact: what a tool gave for the program alone"
    ]


class Mirror:
    """A cipher, for the test."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "mirror", bytes(255 - byte for byte in plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return bytes(255 - byte for byte in ciphertext)


def test_encrypted_messages_stay_so_and_that_is_said(client: SyncClient) -> None:
    saver = HoldfastSaver(client, serde=EncryptedSerializer(Mirror()))
    graph_saying(saver, AIMessage("done")).invoke({"messages": SAID}, thread("t"))
    read = found("t", client)
    assert read.messages == []
    assert "only the serializer of their thread reads" in read.lost[0]
