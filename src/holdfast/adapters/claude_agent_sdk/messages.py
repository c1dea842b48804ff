"""What Claude's program takes: entries of a transcript, which are plain data."""

from __future__ import annotations

from typing import Any


def loaded(messages: list[Any]) -> list[Any]:
    """Return entries as a SessionStore gives them."""
    return messages
