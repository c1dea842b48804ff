"""A person decides before mail is sent; the question waits in the store, also over restarts."""

import tempfile
from pathlib import Path

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from holdfast.adapters.langgraph import HoldfastSaver

CONFIG = {"configurable": {"thread_id": "mail-3"}}


class State(TypedDict, total=False):
    draft: str
    sent: bool


def draft(state: State) -> State:
    return {"draft": "Dear all, the server moves on Friday."}


def send(state: State) -> State:
    answer = interrupt({"question": "Send this?", "draft": state["draft"]})
    return {"sent": answer == "yes"}


builder = StateGraph(State).add_node(draft).add_node(send)
builder.add_edge(START, "draft").add_edge("draft", "send")

with tempfile.TemporaryDirectory() as directory:
    database = Path(directory, "agent.db")
    with HoldfastSaver.from_sqlite(database) as saver:
        state = builder.compile(checkpointer=saver).invoke({}, CONFIG)
        print("asked:", state["__interrupt__"][0].value["question"])

    # Another process, another day.
    with HoldfastSaver.from_sqlite(database) as saver:
        graph = builder.compile(checkpointer=saver)
        print("still waiting for:", graph.get_state(CONFIG).next)
        print("sent:", graph.invoke(Command(resume="yes"), CONFIG)["sent"])
