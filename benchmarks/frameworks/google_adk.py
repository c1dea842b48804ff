"""An agent of ADK that reads a page in every step."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent, RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from benchmarks.frameworks.pages import page
from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.google_adk import HoldfastSessionService


async def sizes(steps: int, directory: Path) -> Sizes:
    """Measure the same run kept by both session services, and with tools journaled."""
    for name, is_journaled in (("ours", False), ("journaled", True)):
        async with HoldfastSessionService(url=f"sqlite:///{directory / name}.db") as service:
            await _run(service, steps, [service.plugin()] if is_journaled else [])
    await _run(SqliteSessionService(str(directory / "adk.db")), steps, [])
    journaled = size_of(directory / "journaled.db")
    return Sizes(
        ours=size_of(directory / "ours.db"),
        theirs=size_of(directory / "adk.db"),
        peer="SqliteSessionService",
        note=f"each event once, without steps to go back to; with every tool journaled ours are "
        f"{journaled:,} bytes",
    )


class _Reader(BaseLlm):
    """A model that asks for the next page, until it has them all."""

    model: str = "scripted"
    steps: int

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = sum(content.role == "model" for content in llm_request.contents)
        call = types.FunctionCall(id=f"call_{said}", name="read", args={"number": said})
        part = types.Part(function_call=call) if said < self.steps else types.Part(text="All.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def read(number: int) -> str:
    """Read a page."""
    return page(number)


async def _run(service: Any, steps: int, plugins: list[Any]) -> None:
    app = App(
        name="bench",
        root_agent=LlmAgent(name="reader", model=_Reader(steps=steps), tools=[read]),
        plugins=plugins,
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    runner = Runner(app=app, session_service=service, auto_create_session=True)
    async for _ in runner.run_async(
        user_id="ann",
        session_id="bench",
        new_message=types.UserContent("Read them all."),
        run_config=RunConfig(max_llm_calls=0),
    ):
        pass
