"""Pydantic AI on Holdfast: a capability that keeps every step of a run, and a conversation store.

>>> from holdfast.adapters.pydantic_ai import HoldfastCapability
from holdfast.adapters.pydantic_ai.conversation_store import HoldfastConversationStore
>>> capability = HoldfastCapability(url="memory://", session_id="ada")
>>> capability.session_id
'ada'
>>> capability.close()
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("pydantic_ai") is None:
    raise MissingPackageError("holdfast.adapters.pydantic_ai", "pydantic_ai", "pydantic-ai")

from holdfast.adapters.journal import ToolEffect
from holdfast.adapters.pydantic_ai.capability import HoldfastCapability
from holdfast.adapters.pydantic_ai.conversation_store import HoldfastConversationStore

__all__ = ["HoldfastCapability", "HoldfastConversationStore", "ToolEffect"]
