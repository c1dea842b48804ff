"""AgentScope on Holdfast: a middleware that keeps every step of an agent's replies.

>>> from holdfast.adapters.agentscope import HoldfastMiddleware
>>> middleware = HoldfastMiddleware(session_id="fix-42", url="memory://")
>>> middleware.state() is None
True
>>> middleware.close()
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("agentscope") is None:
    raise MissingPackageError("holdfast.adapters.agentscope", "agentscope", "agentscope")

from holdfast.adapters.agentscope.middleware import HoldfastMiddleware
from holdfast.adapters.journal import ToolEffect

__all__ = ["HoldfastMiddleware", "ToolEffect"]
