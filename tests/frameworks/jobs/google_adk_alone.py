"""The job of ADK with the session service alone: no plugin journals its tools."""

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.runners import Runner

from holdfast.adapters.google_adk import HoldfastSessionService
from tests.frameworks.jobs.google_adk import PROMPT, WHO, Scripted, answer, depth, note
from tests.frameworks.kit import point, workspace


async def tide(harbour: str) -> str:
    """Tell whether the water rises."""
    point("tool tide")
    point("tool tide done")
    return "it rises"


async def main(url: str, session_id: str) -> Any:
    async with HoldfastSessionService(url=url, workspace=workspace()) as service:
        app = App(
            name=WHO["app_name"],
            root_agent=LlmAgent(name="clerk", model=Scripted(), tools=[depth, tide, note]),
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        runner = Runner(app=app, session_service=service, auto_create_session=True)
        kept = await service.get_session(**WHO, session_id=session_id)
        said = None if kept is None else answer(kept.events)
        if said is None:
            cut_off = await service.unfinished(**WHO, session_id=session_id, new_message=PROMPT)
            async for event in runner.run_async(
                user_id=WHO["user_id"],
                session_id=session_id,
                new_message=PROMPT,
                invocation_id=cut_off,
            ):
                said = answer([event]) or said
        return said
