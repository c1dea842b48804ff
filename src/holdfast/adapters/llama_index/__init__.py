"""LlamaIndex workflows on Holdfast: a runtime that keeps every step, and goes on where it stopped.

>>> from holdfast.adapters.llama_index import HoldfastRuntime
>>> runtime = HoldfastRuntime(url="memory://", session_id="report-7")
>>> runtime.client.sessions()
[]
>>> runtime.close()
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("workflows") is None:
    raise MissingPackageError("holdfast.adapters.llama_index", "workflows", "llama-index")

from holdfast.adapters.llama_index.runtime import HoldfastRuntime

__all__ = ["HoldfastRuntime"]
