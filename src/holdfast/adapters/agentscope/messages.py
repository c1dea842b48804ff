"""Messages of a conversation as AgentScope has them."""

from __future__ import annotations

from typing import Any

from agentscope.message import Msg
from pydantic import ValidationError

from holdfast.errors import AdapterError


def loaded(messages: list[Any]) -> list[Any]:
    """Return messages as ``Msg`` objects, for ``AgentState(context=...)``."""
    found = []
    for i, message in enumerate(messages):
        try:
            found.append(Msg.model_validate(message))
        except ValidationError as error:
            raise AdapterError(f"$.messages[{i}]: AgentScope cannot read it: {error}") from error
    return found
