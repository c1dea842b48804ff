"""Google ADK on Holdfast: a session service, and a plugin that journals tools one by one.

>>> from holdfast.adapters.google_adk import HoldfastSessionService
>>> HoldfastSessionService(url="memory://").client.sessions()
[]
"""

from importlib.util import find_spec

from holdfast.errors import MissingPackageError

if find_spec("google") is None or find_spec("google.adk") is None:
    raise MissingPackageError("holdfast.adapters.google_adk", "google.adk", "google-adk")

from holdfast.adapters.google_adk.plugin import HoldfastPlugin
from holdfast.adapters.google_adk.registration import session_service
from holdfast.adapters.google_adk.service import HoldfastSessionService

__all__ = ["HoldfastPlugin", "HoldfastSessionService", "session_service"]
