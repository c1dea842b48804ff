"""CrewAI on Holdfast: crews task by task, conversations request by request, flows, checkpoints.

>>> from holdfast.adapters.crewai import HoldfastCheckpoints
>>> with HoldfastCheckpoints(session_id="report-7", url="memory://") as checkpoints:
...     checkpoints.latest() is None
True
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("crewai") is None:
    raise MissingPackageError("holdfast.adapters.crewai", "crewai", "crewai")

from holdfast.adapters.crewai.checkpoints import HoldfastCheckpoints
from holdfast.adapters.crewai.flows import HoldfastFlowPersistence
from holdfast.adapters.crewai.provider import HoldfastCheckpointProvider

__all__ = ["HoldfastCheckpointProvider", "HoldfastCheckpoints", "HoldfastFlowPersistence"]
