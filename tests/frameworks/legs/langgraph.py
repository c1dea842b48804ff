"""The reference conversation in LangGraph, and going on with one."""

import base64
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from holdfast.adapters.langgraph import HoldfastSaver
from tests.frameworks import reference
from tests.frameworks.kit import point


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation, until the model is asked for the second time."""

    def model(state: MessagesState) -> dict[str, Any]:
        point("model")
        calls = [
            {"name": call["name"], "args": call["arguments"], "id": call["id"], "type": "tool_call"}
            for call in reference.CALLS
        ]
        return {"messages": [AIMessage(reference.SAID, tool_calls=calls)]}

    graph = (
        StateGraph(MessagesState)
        .add_node("model", model)
        .add_node("tools", ToolNode([reference.depth, reference.tide]))
        .add_edge(START, "model")
        .add_conditional_edges("model", tools_condition)
        .add_edge("tools", "model")
    )
    picture = {
        "type": "image",
        "base64": base64.b64encode(reference.PNG).decode(),
        "mime_type": "image/png",
    }
    asked = HumanMessage([{"type": "text", "text": reference.PROMPT}, picture])
    async with HoldfastSaver.open(url) as saver:
        await graph.compile(checkpointer=saver).ainvoke(
            {"messages": [SystemMessage(reference.SYSTEM), asked]},
            {"configurable": {"thread_id": session_id}},
            durability="sync",
        )


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> None:
    """Go on with a thread: the prompt is given, and the model says the reply."""

    def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(reply)]}

    graph = StateGraph(MessagesState).add_node("model", model).add_edge(START, "model")
    async with HoldfastSaver.open(url) as saver:
        await graph.compile(checkpointer=saver).ainvoke(
            {"messages": [HumanMessage(prompt)]},
            {"configurable": {"thread_id": session_id}},
            durability="sync",
        )
