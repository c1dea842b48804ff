"""smolagents on Holdfast: every step of an agent is kept, with its variables, and gone on from.

>>> from holdfast.adapters.smolagents import Checkpoints
>>> with Checkpoints(session_id="harbour-1", url="memory://") as checkpoints:
...     checkpoints.client.sessions()
[]
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("smolagents") is None:
    raise MissingPackageError("holdfast.adapters.smolagents", "smolagents", "smolagents")

from holdfast.adapters.smolagents.checkpoints import Checkpoints

__all__ = ["Checkpoints"]
