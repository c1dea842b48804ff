"""The frameworks that have an adapter, and what each needs to be installed."""

from __future__ import annotations

from typing import NamedTuple


class Needed(NamedTuple):
    """What an adapter needs."""

    module: str
    """What is imported."""
    package: str
    """What it is installed as."""
    extra: str
    """What Holdfast calls it: ``holdfast[extra]``."""


FRAMEWORKS = {
    "agent_framework": Needed("agent_framework", "agent-framework-core", "agent-framework"),
    "agentscope": Needed("agentscope", "agentscope", "agentscope"),
    "autogen": Needed("autogen_agentchat", "autogen-agentchat", "autogen"),
    "claude_agent_sdk": Needed("claude_agent_sdk", "claude-agent-sdk", "claude"),
    "crewai": Needed("crewai", "crewai", "crewai"),
    "google_adk": Needed("google.adk", "google-adk", "google-adk"),
    "langgraph": Needed("langgraph", "langgraph", "langgraph"),
    "llama_index": Needed("workflows", "llama-index-workflows", "llama-index"),
    "openai_agents": Needed("agents", "openai-agents", "openai-agents"),
    "pydantic_ai": Needed("pydantic_ai", "pydantic-ai-slim", "pydantic-ai"),
    "smolagents": Needed("smolagents", "smolagents", "smolagents"),
    "strands": Needed("strands", "strands-agents", "strands"),
}
"""By the value of ``Framework``, which is also the name of the package of the adapter."""
