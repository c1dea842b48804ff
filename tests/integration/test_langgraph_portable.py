"""Threads of LangGraph in the portable form: cut in mid-call, asking, and handed over."""

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send, interrupt

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.adapters.portable import conversation

CALLS: list[Any] = [
    {"id": "a", "name": "depth", "args": {}, "type": "tool_call"},
    {"id": "b", "name": "tide", "args": {}, "type": "tool_call"},
]
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def graph_of(tool: Any) -> StateGraph[Any, Any, Any, Any]:
    """A model that calls two tools, each a task of its own."""

    def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("I look", tool_calls=CALLS)]}

    def both(state: MessagesState) -> list[Send]:
        return [Send("tool", call) for call in CALLS]

    return (
        StateGraph(MessagesState)
        .add_node("model", model)
        .add_node("tool", tool)
        .add_edge(START, "model")
        .add_conditional_edges("model", both, ["tool"])
    )


def test_what_a_tool_gave_is_kept_where_the_one_beside_it_was_cut_off() -> None:
    def tool(call: Any) -> dict[str, Any]:
        if call["id"] == "b":
            raise RuntimeError("cut off")
        return {"messages": [ToolMessage("12.5 m", tool_call_id=call["id"])]}

    with SyncClient.memory() as client:
        graph = graph_of(tool).compile(checkpointer=HoldfastSaver(client))
        try:
            graph.invoke({"messages": [HumanMessage("go")]}, CONFIG, durability="sync")
        except RuntimeError:
            pass
        head = client.latest("langgraph", "t")
        assert head is not None
        found = client.continue_in(head.checkpoint_id, "strands")
        held = conversation(found.session_id, client, agent_id="strands")
        before = conversation("t", client)

    assert before is not None
    assert held is not None
    assert [call.id for call in before.pending] == ["a", "b"]
    first, second = held.messages[-1]["parts"]
    assert (first["response"], second["is_error"]) == ("12.5 m", True)
    assert "interrupted" in second["response"]


def test_what_a_graph_asks_is_among_the_interrupts() -> None:
    def tool(call: Any) -> dict[str, Any]:
        return {"messages": [ToolMessage(interrupt({"ok?": call["id"]}), tool_call_id="a")]}

    with SyncClient.memory() as client:
        graph = graph_of(tool).compile(checkpointer=HoldfastSaver(client))
        graph.invoke({"messages": [HumanMessage("go")]}, CONFIG, durability="sync")
        held = conversation("t", client)

    assert held is not None
    asked = sorted(each["message"] for each in held.interrupts)
    assert asked == ['{"ok?": "a"}', '{"ok?": "b"}']
