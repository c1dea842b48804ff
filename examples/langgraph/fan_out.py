"""`Send` runs a node many times; after a failure only the part that failed runs again."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from holdfast.adapters.langgraph import HoldfastSaver

# One at a time: then it is certain that the others had finished when one failed.
CONFIG = {"configurable": {"thread_id": "survey-1"}, "max_concurrency": 1}
runs: list[str] = []


class State(TypedDict, total=False):
    pages: list[str]
    summaries: Annotated[list[str], operator.add]


def fan_out(state: State) -> list[Send]:
    return [Send("summarise", page) for page in state["pages"]]


def summarise(page: str) -> State:
    runs.append(page)
    if page == "c" and runs.count("c") == 1:
        raise ConnectionError("the model is not reachable")
    return {"summaries": [f"{page}: short"]}


builder = StateGraph(State).add_node("start", lambda state: {}).add_node(summarise)
builder.add_edge(START, "start").add_conditional_edges("start", fan_out, ["summarise"])

with HoldfastSaver.open("memory://") as saver:
    graph = builder.compile(checkpointer=saver)
    try:
        graph.invoke({"pages": ["a", "b", "c"]}, CONFIG, durability="sync")
    except ConnectionError as error:
        print("failed:", error)
    state = graph.invoke(None, CONFIG)
    print("runs:", sorted(runs))
    print("summaries:", sorted(state["summaries"]))
