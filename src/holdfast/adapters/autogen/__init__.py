"""AutoGen on Holdfast: agents that go on where they were killed, and teams between their turns.

>>> import asyncio
>>> from holdfast.adapters.autogen import load
>>> from autogen_agentchat.agents import AssistantAgent
>>> from autogen_ext.models.replay import ReplayChatCompletionClient
>>> agent = AssistantAgent("clerk", ReplayChatCompletionClient(["hello"]))
>>> asyncio.run(load(agent, session_id="s1", url="memory://"))
False
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("autogen_agentchat") is None:
    raise MissingPackageError("holdfast.adapters.autogen", "autogen_agentchat", "autogen")

from holdfast.adapters.autogen.agent_run import run, run_stream
from holdfast.adapters.autogen.states import load, save
from holdfast.adapters.autogen.team_turns import TurnCheckpoints
from holdfast.adapters.journal import ToolEffect

__all__ = ["ToolEffect", "TurnCheckpoints", "load", "run", "run_stream", "save"]
