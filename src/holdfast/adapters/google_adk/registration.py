"""The entry for ADK's ``services.yaml``: ``adk web`` and ``adk run`` keep their sessions here."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.google_adk.service import HoldfastSessionService
from holdfast.errors import InvalidArgumentError

_SCHEME = "holdfast"


def session_service(uri: str, **options: Any) -> HoldfastSessionService:
    """Return the session service of ``--session_service_uri``: ``holdfast:`` and a store's URL.

    ``holdfast:sqlite:///agent.db`` names the store, ``holdfast:`` alone the one of HOLDFAST_URL, or
    the nearest. Of the options that ADK gives (``agents_dir``) it needs none.
    """
    if not isinstance(uri, str) or not uri.startswith((f"{_SCHEME}:", f"{_SCHEME}+")):
        raise InvalidArgumentError(
            f"a session service of Holdfast is named by 'holdfast:' and the URL of a store "
            f"(holdfast:sqlite:///agent.db), not by {uri!r}"
        )
    url = uri[len(_SCHEME) + 1 :].removeprefix("//") if uri.startswith(f"{_SCHEME}:") else uri[9:]
    return HoldfastSessionService(url=url or None)
