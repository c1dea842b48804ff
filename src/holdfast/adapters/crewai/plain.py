"""What CrewAI's objects hold as plain data, without what lives in the program only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from crewai.agents.agent_builder.base_agent import BaseAgent
from crewai.crew import Crew
from crewai.llms.base_llm import BaseLLM
from crewai.task import Task
from crewai.tools.base_tool import BaseTool
from crewai.tools.structured_tool import CrewStructuredTool
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

_LIVE = (Crew, BaseAgent, Task, BaseTool, CrewStructuredTool, BaseLLM)
SECRET_FIELDS = frozenset(
    {"api_key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"}
)
"""Fields of models that hold keys, which CrewAI's own checkpoints keep in plain text."""


class NotPlainError(Exception):
    """A value lives in the program only: a function, a client, an agent."""


def plain(value: Any) -> Any:
    """Return a value as JSON-like data, or raise NotPlainError."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, (UUID, PurePath)):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    if isinstance(value, BaseModel) and not isinstance(value, _LIVE):
        try:
            return value.model_dump(mode="json")
        except (PydanticSerializationError, ValueError) as error:
            raise NotPlainError(type(value).__name__) from error
    raise NotPlainError(type(value).__name__)


def plain_fields(model: BaseModel) -> dict[str, Any]:
    """Return the fields of a model that are plain data."""
    fields = {}
    for name in type(model).model_fields:
        try:
            fields[name] = plain(getattr(model, name))
        except NotPlainError:
            continue
    return fields


def without_secrets(value: Any) -> Any:
    """Return plain data without the keys of models, which belong in no checkpoint."""
    if isinstance(value, dict):
        return {
            key: None if key in SECRET_FIELDS else without_secrets(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [without_secrets(each) for each in value]
    return value
