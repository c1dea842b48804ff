"""The frameworks that agents run on."""

from __future__ import annotations

from enum import Enum

from holdfast.errors import InvalidArgumentError


class Framework(str, Enum):  # noqa: UP042  (StrEnum would lose the repr users compare)
    """The framework an agent runs on.

    >>> from holdfast import Framework
    >>> Framework("langgraph")
    <Framework.LANGGRAPH: 'langgraph'>
    """

    LANGGRAPH = "langgraph"
    CREWAI = "crewai"
    AUTOGEN = "autogen"
    OPENAI_AGENTS = "openai_agents"
    CLAUDE_AGENT_SDK = "claude_agent_sdk"
    PYDANTIC_AI = "pydantic_ai"
    AGENT_FRAMEWORK = "agent_framework"
    GOOGLE_ADK = "google_adk"
    STRANDS = "strands"
    LLAMA_INDEX = "llama_index"
    AGENTSCOPE = "agentscope"
    SMOLAGENTS = "smolagents"
    CUSTOM = "custom"

    def __str__(self) -> str:
        return self.value


def checked_framework(what: str, value: Framework | str) -> Framework:
    """Return the framework of that name; InvalidArgumentError if there is none."""
    if type(value) is Framework:
        return value
    try:
        return Framework(value)
    except ValueError:
        names = ", ".join(framework.value for framework in Framework)
        raise InvalidArgumentError(f"no {what} {value!r}; there are {names}") from None
