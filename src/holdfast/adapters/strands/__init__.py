"""Strands on Holdfast: a storage for its sessions, and a plugin that journals tools one by one.

>>> from holdfast.adapters.strands import HoldfastStorage
>>> HoldfastStorage(url="memory://").client.sessions()
[]
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("strands") is None:
    raise MissingPackageError("holdfast.adapters.strands", "strands", "strands")

from holdfast.adapters.strands.errors import HoldfastStorageError
from holdfast.adapters.strands.plugin import HoldfastPlugin
from holdfast.adapters.strands.prompts import prompt_once
from holdfast.adapters.strands.storage import HoldfastStorage

__all__ = ["HoldfastPlugin", "HoldfastStorage", "HoldfastStorageError", "prompt_once"]
