"""The reference conversation in ADK, and its continuation."""

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.genai import types

from holdfast.adapters.google_adk import HoldfastSessionService
from tests.frameworks import reference
from tests.frameworks.kit import point

APP, USER = "harbour", "ann"


class Scripted(BaseLlm):
    """A model that says what it is told to."""

    model: str = "scripted"
    reply: str | None = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        point("model")
        if self.reply is not None:
            parts = [types.Part(text=self.reply)]
        elif any(content.role == "model" for content in llm_request.contents):
            parts = [types.Part(text=reference.ANSWER)]
        else:
            calls = [
                types.FunctionCall(id=call["id"], name=call["name"], args=call["arguments"])
                for call in reference.CALLS
            ]
            parts = [types.Part(text=reference.SAID)]
            parts += [types.Part(function_call=call) for call in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


async def _run(url: str, session_id: str, message: types.Content, reply: str | None) -> Any:
    async with HoldfastSessionService(url=url) as service:
        agent = LlmAgent(
            name="clerk",
            model=Scripted(reply=reply),
            instruction=reference.SYSTEM,
            tools=[reference.depth, reference.tide],
        )
        app = App(
            name=APP,
            root_agent=agent,
            plugins=[service.plugin()],
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        runner = Runner(app=app, session_service=service, auto_create_session=True)
        said = None
        async for event in runner.run_async(
            user_id=USER, session_id=session_id, new_message=message
        ):
            if event.content and event.content.parts and event.is_final_response():
                said = event.content.parts[0].text
        return said


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation up to the second request, in which the process is killed."""
    image = types.Part(inline_data=types.Blob(data=reference.PNG, mime_type="image/png"))
    await _run(url, session_id, types.UserContent([reference.PROMPT, image]), None)


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> Any:
    """Go on with a session, wherever it was begun."""
    return await _run(url, session_id, types.UserContent(prompt), reply)
