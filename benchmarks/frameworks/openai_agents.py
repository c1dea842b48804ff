"""An agent of the OpenAI SDK that reads a page in every step."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    RunHooks,
    Runner,
    RunResultStreaming,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.openai_agents import HoldfastRunner

set_tracing_disabled(True)
_WORDS = [f"{first}{rest}" for first in "bdfklmprst" for rest in ("ale", "iron", "ump", "otes")]


async def sizes(steps: int, directory: Path) -> Sizes:
    """Measure the same run kept by HoldfastRunner, and as the JSON of a RunState a step."""
    store = directory / "ours.db"
    await HoldfastRunner.run(
        _agent(steps),
        "Read them all.",
        session_id="bench",
        url=f"sqlite:///{store}",
        max_turns=None,
    )
    states = directory / "states"
    states.mkdir()
    saving = _Saving(states)
    saving.result = Runner.run_streamed(
        _agent(steps), "Read them all.", hooks=saving, max_turns=None
    )
    async for _ in saving.result.stream_events():
        pass
    session = SQLiteSession("bench", directory / "session.db")
    await Runner.run(_agent(steps), "Read them all.", session=session, max_turns=None)
    session.close()
    last = size_of(directory / "session.db")
    return Sizes(
        ours=size_of(store),
        theirs=size_of(states),
        peer="RunState JSON at every step",
        note=f"SQLiteSession keeps the items alone, without steps to go back to: {last:,} bytes",
    )


class _Saving(RunHooks[Any]):
    """Writes the state of a run wherever it can be gone on from."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._written = 0
        self.result: RunResultStreaming | None = None

    async def on_llm_start(self, context: Any, agent: Any, system: Any, items: Any) -> None:
        assert self.result is not None
        state = self.result.to_state().to_json()
        self._written += 1
        (self._directory / f"{self._written}.json").write_text(json.dumps(state), "utf-8")


def _agent(steps: int) -> Agent[Any]:
    @function_tool
    def read(page: int) -> str:
        """Read a page."""
        words = random.Random(page).choices(_WORDS, k=90)
        return f"page {page}: {' '.join(words)}"

    def answer(call: Any) -> list[Any]:
        known = sum(item.get("type") == "function_call_output" for item in call.input)
        if known == steps:
            return [assistant_message("That was all.")]
        return [function_call("read", {"page": known}, call_id=f"call_{known}")]

    model = ScriptedModel([ModelStep.respond(answer)] * (steps + 1))
    return Agent(name="reader", instructions="Read.", model=model, tools=[read])
