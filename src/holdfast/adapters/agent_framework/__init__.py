"""Microsoft Agent Framework on Holdfast: runs that resume, history, sessions and workflows.

>>> from holdfast.adapters.agent_framework import HoldfastHistoryProvider
>>> provider = HoldfastHistoryProvider(url="memory://")
>>> provider.source_id
'holdfast'
>>> provider.close()
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("agent_framework") is None:
    raise MissingPackageError(
        "holdfast.adapters.agent_framework", "agent_framework", "agent-framework"
    )

from holdfast.adapters.agent_framework.history import HoldfastHistoryProvider
from holdfast.adapters.agent_framework.sessions import HoldfastSessionStore
from holdfast.adapters.agent_framework.workflows import HoldfastCheckpointStorage
from holdfast.adapters.journal import ToolEffect

__all__ = [
    "HoldfastCheckpointStorage",
    "HoldfastHistoryProvider",
    "HoldfastSessionStore",
    "ToolEffect",
]
