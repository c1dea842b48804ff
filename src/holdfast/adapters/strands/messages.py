"""Messages as Strands takes them: ``Agent(messages=…)``, with bytes where media are."""

from __future__ import annotations

from typing import Any

from strands.types.session import decode_bytes_values


def loaded(messages: list[Any]) -> list[Any]:
    """Return messages for ``Agent(messages=…)``, of their JSON form."""
    return [decode_bytes_values(message) for message in messages]
