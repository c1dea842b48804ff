"""An agent of Agent Framework that reads a page in every step, and a workflow that does."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    Executor,
    FileCheckpointStorage,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    tool,
)

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.agent_framework import HoldfastCheckpointStorage, HoldfastHistoryProvider

_WORDS = [f"{first}{rest}" for first in "bdfklmprst" for rest in ("ale", "iron", "ump", "otes")]


async def sizes(steps: int, directory: Path) -> Sizes:
    """Measure the same run kept by us, and as the JSON of its AgentSession after every step."""
    provider = HoldfastHistoryProvider(url=f"sqlite:///{directory / 'ours.db'}")
    agent = _agent(_Reader(steps), provider, middleware=[provider.middleware])
    await agent.run("Read them all.", session=agent.create_session(session_id="bench"))
    await provider.aclose()
    theirs = directory / "sessions"
    theirs.mkdir()
    reader = _Reader(steps)
    agent = _agent(
        reader, InMemoryHistoryProvider(), require_per_service_call_history_persistence=True
    )
    session = agent.create_session(session_id="bench")
    reader.save = lambda number: (theirs / f"{number}.json").write_text(
        json.dumps(session.to_dict())
    )
    await agent.run("Read them all.", session=session)
    ours_of_workflow, theirs_of_workflow = await _workflows(steps, directory)
    return Sizes(
        ours=size_of(directory / "ours.db"),
        theirs=size_of(theirs),
        peer="AgentSession JSON at every step",
        note=(
            f"a workflow of as many supersteps: {ours_of_workflow / 1e6:.2f} MB, "
            f"by FileCheckpointStorage {theirs_of_workflow / 1e6:.2f} MB"
        ),
    )


class _Reader(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A model that asks for one page after the other."""

    def __init__(self, steps: int) -> None:
        super().__init__(function_invocation_configuration={"max_iterations": steps + 1})
        self.steps = steps
        self.save: Any = lambda number: None

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **kwargs: Any
    ) -> ChatResponse:
        number = sum(message.role == "assistant" for message in messages)
        self.save(number)
        if number >= self.steps:
            return ChatResponse(messages=[Message("assistant", ["All are read."])])
        call = Content.from_function_call(f"call_{number}", "read", arguments={"page": number})
        return ChatResponse(messages=[Message("assistant", [call])])


@tool(approval_mode="never_require")
def read(page: int) -> str:
    """Read a page."""
    return _page(page)


def _page(number: int) -> str:
    return " ".join(random.Random(number).choices(_WORDS, k=90))


def _agent(model: _Reader, provider: Any, **options: Any) -> Agent:
    return Agent(
        client=model,
        name="reader",
        instructions="Read what is asked for.",
        tools=[read],
        context_providers=[provider],
        **options,
    )


class _Collects(Executor):
    """Reads a page and goes on with the next."""

    def __init__(self, steps: int) -> None:
        super().__init__(id="collects")
        self.steps = steps

    @handler
    async def collect(self, page: int, context: WorkflowContext[int, str]) -> None:
        context.set_state("pages", [*context.get_state("pages", []), _page(page)])
        if page + 1 < self.steps:
            await context.send_message(page + 1)
        else:
            await context.yield_output("done")


async def _workflows(steps: int, directory: Path) -> tuple[int, int]:
    """Return what a workflow costs that keeps all pages in its state: by us, and in files."""
    store = directory / "workflow.db"
    async with HoldfastCheckpointStorage("bench", url=f"sqlite:///{store}") as ours:
        await _workflow(steps, ours).run(0)
    files = directory / "checkpoints"
    await _workflow(steps, FileCheckpointStorage(files)).run(0)
    return size_of(store), size_of(files)


def _workflow(steps: int, storage: Any) -> Any:
    collects = _Collects(steps)
    builder = WorkflowBuilder(
        name="bench",
        start_executor=collects,
        checkpoint_storage=storage,
        max_iterations=steps + 1,
        output_from=[collects],
    )
    return builder.add_edge(collects, collects).build()
