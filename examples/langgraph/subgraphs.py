"""A subgraph has a history of its own, in a session beside that of its thread."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from holdfast.adapters.langgraph import HoldfastSaver

CONFIG = {"configurable": {"thread_id": "trip-1"}}


class State(TypedDict):
    notes: Annotated[list[str], operator.add]


def search(state: State) -> State:
    return {"notes": ["three hotels found"]}


def choose(state: State) -> State:
    return {"notes": [f"booked {interrupt('which hotel?')}"]}


def plan(state: State) -> State:
    return {"notes": ["plan made"]}


hotel = StateGraph(State).add_node(search).add_node(choose)
hotel.add_edge(START, "search").add_edge("search", "choose")
trip = StateGraph(State).add_node(plan).add_node("hotel", hotel.compile())
trip.add_edge(START, "plan").add_edge("plan", "hotel")

with HoldfastSaver.open("memory://") as saver:
    graph = trip.compile(checkpointer=saver)
    graph.invoke({"notes": []}, CONFIG)

    for session in saver.client.sessions("langgraph"):
        steps = saver.client.timeline("langgraph", session.session_id)
        name = session.session_id.split(":")[0]
        print(f"{name:14} {[step.step_name for step in reversed(steps)]}")

    print(graph.invoke(Command(resume="the Anchor"), CONFIG)["notes"][-1])
