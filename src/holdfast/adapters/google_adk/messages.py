"""Messages as ADK takes them: events, for ``append_event``."""

from __future__ import annotations

from typing import Any

from google.adk.events import Event


def loaded(messages: list[Any]) -> list[Any]:
    """Return events of ADK, of their JSON form."""
    return [Event.model_validate(message) for message in messages]
