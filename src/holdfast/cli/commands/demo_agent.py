"""The agent of the demo: reads, thinks, answers, and saves after every step.

Run as its own process, so that it can really be killed. It is what a user would write: load the
newest checkpoint if there is one, go on from there.
"""

from __future__ import annotations

import sys
from typing import Any

from holdfast.client import SyncClient

AGENT, SESSION = "researcher", "report-42"

STEPS = (
    ("plan", "I will read two sources, compare them and write a summary."),
    ("search", "found: 'Tides', 'Holdfasts of kelp'"),
    ("read", "'Tides': the sea rises and falls twice a day."),
    ("read", "'Holdfasts of kelp': they grip the rock so that no wave carries the kelp off."),
    ("compare", "Both are about staying where you are while everything moves."),
    ("write", "Summary: hold fast, and the tide can come and go."),
)


def run(path: str) -> None:
    """Do all steps that are not done yet."""
    with SyncClient.sqlite(path) as client:
        newest = client.latest(AGENT, SESSION)
        state: dict[str, Any] = newest.execution_state if newest else {"messages": [], "done": 0}
        print(f"resumed after step {state['done']}" if newest else "started", flush=True)
        while state["done"] < len(STEPS):
            name, text = STEPS[state["done"]]
            state["messages"].append({"role": "assistant", "step": name, "content": text})
            state["done"] += 1
            client.save(
                AGENT,
                execution_state=state,
                session_id=SESSION,
                step_index=state["done"],
                step_name=name,
            )
            print(f"saved {state['done']} {name}: {text}", flush=True)
            sys.stdin.readline()  # the demo lets it go on, or kills it here
        print("finished", flush=True)


if __name__ == "__main__":
    run(sys.argv[1])
