"""Go back to any step of a thread and take another way; the first way stays as it was."""

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from holdfast.adapters.langgraph import HoldfastSaver

CONFIG = {"configurable": {"thread_id": "joke-1"}}


class State(TypedDict, total=False):
    topic: str
    joke: str


def pick(state: State) -> State:
    return {"topic": "penguins"}


def tell(state: State) -> State:
    return {"joke": f"A joke about {state['topic']}."}


builder = StateGraph(State).add_node(pick).add_node(tell)
builder.add_edge(START, "pick").add_edge("pick", "tell")

with HoldfastSaver.open("memory://") as saver:
    graph = builder.compile(checkpointer=saver)
    print(graph.invoke({}, CONFIG)["joke"])

    # The state before `tell` ran, with another topic: a new branch of the same thread.
    before_tell = next(s for s in graph.get_state_history(CONFIG) if s.next == ("tell",))
    branch = graph.update_state(before_tell.config, {"topic": "otters"})
    print(graph.invoke(None, branch)["joke"])

    # The same as a thread of its own, made with Holdfast: nothing is copied.
    client = saver.client
    picked = next(i for i in client.timeline("langgraph", "joke-1") if i.step_name == "pick")
    client.fork(picked.checkpoint_id, session_id="joke-2")
    print(graph.invoke(None, {"configurable": {"thread_id": "joke-2"}})["joke"])

    print(client.tree("langgraph", "joke-1"))
