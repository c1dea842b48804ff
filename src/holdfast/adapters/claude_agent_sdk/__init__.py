"""Claude Agent SDK on Holdfast: a session store whose hooks keep every tool call, and files.

>>> from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
>>> with HoldfastSessionStore(url="memory://") as store:
...     sorted(store.hooks())[:2]
['PostToolUse', 'PostToolUseFailure']
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("claude_agent_sdk") is None:
    raise MissingPackageError("holdfast.adapters.claude_agent_sdk", "claude_agent_sdk", "claude")

from holdfast.adapters.claude_agent_sdk.file_hooks import workspace_hooks
from holdfast.adapters.claude_agent_sdk.store import HoldfastSessionStore

__all__ = ["HoldfastSessionStore", "workspace_hooks"]
