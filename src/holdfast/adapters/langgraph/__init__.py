"""LangGraph on Holdfast: a checkpointer, an adapter for snapshots, and the way over.

>>> from holdfast.adapters.langgraph import HoldfastSaver
>>> with HoldfastSaver.open("memory://") as saver:
...     saver.get_tuple({"configurable": {"thread_id": "1"}}) is None
True
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("langgraph") is None:
    raise MissingPackageError("holdfast.adapters.langgraph", "langgraph", "langgraph")

from holdfast.adapters.langgraph.dev_server import bring_back_threads, dev_checkpointer
from holdfast.adapters.langgraph.importing.move import Moved, move_in
from holdfast.adapters.langgraph.saver import HoldfastSaver
from holdfast.adapters.langgraph.snapshot import LangGraphAdapter

__all__ = [
    "HoldfastSaver",
    "LangGraphAdapter",
    "Moved",
    "bring_back_threads",
    "dev_checkpointer",
    "move_in",
]
