"""OpenAI Agents on Holdfast: a Session that keeps its history, and runs that can be killed.

>>> from holdfast.adapters.openai_agents import HoldfastSession
>>> HoldfastSession("ada", url="memory://").session_id
'ada'
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("agents") is None or find_spec("agents.run_state") is None:
    raise MissingPackageError("holdfast.adapters.openai_agents", "openai-agents", "openai-agents")

from holdfast.adapters.openai_agents.runner import HoldfastRunner
from holdfast.adapters.openai_agents.session import HoldfastSession

__all__ = ["HoldfastRunner", "HoldfastSession"]
