"""Messages of a conversation as LlamaIndex has them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from holdfast.errors import AdapterError


def loaded(messages: list[Any]) -> list[Any]:
    """Return messages as ``ChatMessage`` objects where LlamaIndex's core is there; else as dicts.

    Workflows need no core, and those without it keep messages as they like.
    """
    if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
        return messages
    from llama_index.core.base.llms.types import ChatMessage

    found = []
    for i, message in enumerate(messages):
        try:
            found.append(ChatMessage.model_validate(message))
        except ValueError as error:
            raise AdapterError(f"$.messages[{i}]: LlamaIndex cannot read it: {error}") from error
    return found
