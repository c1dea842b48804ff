"""Messages in the form in which the SDK takes them."""

from __future__ import annotations

from typing import Any


def loaded(messages: list[Any]) -> list[Any]:
    """Return input items for a run or a Session: the SDK takes them as they are."""
    return messages
