"""A team of two that speak in turn, kept between their turns."""

from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat

from holdfast.adapters.autogen import TurnCheckpoints
from tests.frameworks.autogen_kit import ScriptedClient, numbered
from tests.frameworks.reference import PROMPT


async def main(url: str, session_id: str) -> Any:
    checkpoints = TurnCheckpoints(session_id=session_id, url=url)
    team = RoundRobinGroupChat(
        [AssistantAgent(name, ScriptedClient(numbered)) for name in ("north", "south")],
        termination_condition=checkpoints | MaxMessageTermination(5),
        max_turns=10,
    )
    is_cut_off = await checkpoints.resume(team)
    kept = checkpoints.client.latest("autogen", session_id)
    if is_cut_off or kept is None:
        await team.run(task=None if is_cut_off else PROMPT)
    state = await team.save_state()
    await checkpoints.aclose()
    manager = state["agent_states"]["RoundRobinGroupChatManager"]
    said = [(each["source"], each["content"]) for each in manager["message_thread"]]
    return [said, manager["current_turn"], manager["next_speaker_index"]]
