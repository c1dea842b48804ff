"""Pydantic AI on Holdfast: a capability that keeps every step of a run, and a conversation store.

>>> from pydantic_ai import Agent
>>> from pydantic_ai.models.test import TestModel
>>> from holdfast.adapters.pydantic_ai import HoldfastCapability
>>> with HoldfastCapability(url="memory://", session_id="ada") as capability:
...     agent = Agent(TestModel(custom_output_text="hello"), capabilities=[capability])
...     result = agent.run_sync("hi")
...     [step.step_name for step in capability.client.timeline("pydantic_ai", "ada")]
['end', 'model', 'user prompt', 'start']
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("pydantic_ai") is None:
    raise MissingPackageError("holdfast.adapters.pydantic_ai", "pydantic_ai", "pydantic-ai")

from holdfast.adapters.journal import ToolEffect
from holdfast.adapters.pydantic_ai.capability import HoldfastCapability
from holdfast.adapters.pydantic_ai.conversation_store import HoldfastConversationStore

__all__ = ["HoldfastCapability", "HoldfastConversationStore", "ToolEffect"]
