"""Messages between the framework's objects and the plain data that is kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_framework import Message

from holdfast.errors import AdapterError

_ATTRIBUTION = "_attribution"


def loaded(messages: list[Any]) -> list[Any]:
    """Return messages as the framework takes them."""
    found = []
    for i, message in enumerate(messages):
        try:
            found.append(Message.from_dict(message))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise AdapterError(
                f"$.messages[{i}] is no message of Agent Framework ({error}): the checkpoint is "
                "damaged, or was written by another program; go back with holdfast rollback"
            ) from error
    return found


def kept(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """Return messages as plain data; who passed them on in a run is not part of them."""
    found = []
    for message in messages:
        plain: dict[str, Any] = message.to_dict()
        own = plain.get("additional_properties")
        if isinstance(own, dict) and _ATTRIBUTION in own:
            plain["additional_properties"] = {k: v for k, v in own.items() if k != _ATTRIBUTION}
        found.append(plain)
    return found
