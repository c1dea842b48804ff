"""An agent of ADK with two tools at once, a second question to the model, and an answer."""

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.genai import types

from holdfast.adapters.google_adk import HoldfastSessionService
from tests.frameworks.beside import first_tool_is_recorded
from tests.frameworks.kit import point, workspace

WHO = {"app_name": "harbour", "user_id": "ann"}
PROMPT = types.UserContent("How deep is it, and does the water rise?")


class Scripted(BaseLlm):
    """A model that answers by how much was said already."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        point("model")
        said = sum(content.role == "model" for content in llm_request.contents)
        if said == 0:
            parts = [types.Part(text="Let me see."), _call("depth"), _call("tide")]
        elif said == 1:
            parts = [_call("note")]
        else:
            answers = [
                str((part.function_response.response or {}).get("result"))
                for content in llm_request.contents
                for part in content.parts or []
                if part.function_response is not None
            ]
            parts = [types.Part(text=" / ".join(answers))]
        point("model answered")
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def _call(name: str) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args={"harbour": "Süd"}))


async def depth(harbour: str) -> str:
    """Tell how deep a harbour is."""
    point("tool depth")
    point("tool depth done")
    return f"{harbour} is 12 m"


async def tide(harbour: str) -> str:
    """Tell whether the water rises."""
    await first_tool_is_recorded()
    point("tool tide")
    point("tool tide done")
    return "it rises"


async def note(harbour: str) -> str:
    """Write a note into the workspace."""
    point("tool note")
    place = workspace()
    if place is not None:
        (place / "notes.txt").write_text(f"{harbour} ✓\n", "utf-8")
    point("tool note done")
    return "noted"


async def main(url: str, session_id: str) -> Any:
    async with HoldfastSessionService(url=url, workspace=workspace()) as service:
        app = App(
            name=WHO["app_name"],
            root_agent=LlmAgent(name="clerk", model=Scripted(), tools=[depth, tide, note]),
            plugins=[service.plugin()],
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        runner = Runner(app=app, session_service=service, auto_create_session=True)
        mine = {"user_id": WHO["user_id"], "session_id": session_id}
        kept = await service.get_session(**WHO, session_id=session_id)
        said = None if kept is None else answer(kept.events)
        if said is None:  # not answered yet: the same line, whether it was begun or not
            async for event in runner.run_async(**mine, new_message=PROMPT):
                said = answer([event]) or said
        return said


def answer(events: list[Any]) -> str | None:
    """Return the last word of an invocation."""
    for event in reversed(events):
        if event.author != "user" and event.content and event.is_final_response():
            return str(event.content.parts[0].text)
    return None
