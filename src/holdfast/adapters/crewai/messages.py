"""Messages as CrewAI takes them: the dicts that are kept."""

from __future__ import annotations

from typing import Any


def loaded(messages: list[Any]) -> list[Any]:
    """Return messages for ``Agent.kickoff``, which takes chat dicts as they are."""
    return [dict(message) for message in messages]
