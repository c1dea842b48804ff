"""Messages of a portable conversation as LangChain's own."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import messages_from_dict


def loaded(messages: list[Any]) -> list[Any]:
    """Return messages in their JSON form as objects of LangChain's classes."""
    return list(messages_from_dict(messages))
