"""A graph whose process is killed between two nodes goes on where it was, and repeats nothing.

Run it: the first process kills itself after `research`; the second finishes the thread.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from langgraph.graph import END, START, MessagesState, StateGraph

from holdfast.adapters.langgraph import HoldfastSaver

CONFIG = {"configurable": {"thread_id": "report-7"}}


def research(state: MessagesState) -> dict:
    print("  research runs (it is slow and costs money)")
    return {"messages": [("ai", "Kelp grows half a metre a day.")]}


def write(state: MessagesState) -> dict:
    if "HOLDFAST_EXAMPLE_CRASH" in os.environ:
        print("  ... killed in the middle of write", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    print("  write runs")
    return {"messages": [("ai", f"Report: {state['messages'][-1].content}")]}


def run(database: str) -> None:
    builder = StateGraph(MessagesState).add_node(research).add_node(write)
    builder.add_edge(START, "research").add_edge("research", "write").add_edge("write", END)
    with HoldfastSaver.from_sqlite(database) as saver:
        graph = builder.compile(checkpointer=saver)
        started = graph.get_state(CONFIG).created_at is not None
        # None as the input means: go on with what is there.
        state = graph.invoke(
            None if started else {"messages": [("user", "How fast does kelp grow?")]},
            CONFIG,
            durability="sync",
        )
        print("  ->", state["messages"][-1].content)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, __file__, str(Path(directory, "agent.db"))]
        print("first process")
        subprocess.run(command, env={**os.environ, "HOLDFAST_EXAMPLE_CRASH": "1"}, check=False)
        print("second process")
        subprocess.run(command, check=True)


if __name__ == "__main__":
    run(sys.argv[1]) if len(sys.argv) > 1 else main()
