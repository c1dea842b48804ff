"""What a run is given beside its agent and its prompt, checked before anything is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from agents import FunctionTool, Handoff

from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.openai_agents.copies import may_pause
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError
from holdfast.model import Framework
from holdfast.session.async_run import AsyncRun
from holdfast.workspace import AsyncWorkspace, Workspace

SESSION_OPTIONS = (
    "approval",
    "approve_when",
    "approval_timeout",
    "approval_expires_seconds",
    "lease_seconds",
    "takeover",
)
"""Of ``client.session``."""
_SERVERS = ("conversation_id", "previous_response_id", "auto_previous_response_id")
_OF_THE_RUNNER = ("max_turns", "error_handlers")


@dataclass(frozen=True)
class RunnerOptions:
    """How HoldfastRunner was called."""

    session_id: str
    client: Client | SyncClient | None
    url: str | None
    agent_id: str
    context: Any
    context_serializer: Callable[[Any], Any] | None
    context_deserializer: Callable[[Any], Any] | None
    hooks: Any
    run_config: Any
    journal: bool
    effects: Effects | None
    workspace: Any
    session: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.workspace
        if given is not None and not isinstance(
            given, (str, os.PathLike, Workspace, AsyncWorkspace)
        ):
            raise InvalidArgumentError(
                f"workspace is a Workspace or the path of a directory, not {type(given).__name__}"
            )
        if not self.journal and (self.effects or self.session.get("approval") is not None):
            raise InvalidArgumentError(
                "effects and approval are of calls in the journal: leave out journal=False"
            )

    def opened(self, client: Client) -> AsyncRun:
        """Return the session of the run, to be opened."""
        return client.session(
            self.agent_id,
            session_id=self.session_id,
            framework=Framework.OPENAI_AGENTS,
            workspace=self.workspace,
            on_divergence="live",  # another prompt leaves what a run had begun
            **self.session,
        )

    def check_effects(self, agents: Iterable[Any]) -> None:
        """Refuse an effect that is declared of a tool which no agent has."""
        effects = checked_effects(self.effects)
        if not effects:
            return
        known: set[str] = set()
        pausing: set[str] = set()
        are_all_known = True
        for agent in agents:
            are_all_known = are_all_known and not agent.mcp_servers  # those are asked later
            for tool in agent.tools:
                if isinstance(tool, FunctionTool):
                    (pausing if may_pause(tool) else known).add(tool.name)
            known.update(
                each.tool_name if isinstance(each, Handoff) else Handoff.default_tool_name(each)
                for each in agent.handoffs
            )
        for name in effects:
            if name in pausing:
                raise InvalidArgumentError(
                    f"effects names {name!r}, an agent that may stop for an approval inside: it is "
                    "not journaled; run it by a HoldfastRunner of its own, with effects of its own"
                )
            if are_all_known and name not in known:
                raise InvalidArgumentError(
                    f"effects names {name!r}, which is no function tool of the agents; these are "
                    f"{', '.join(sorted(known)) or 'none'}"
                )


def split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options of the session and those of the SDK's Runner; others are refused."""
    if "session" in options:
        raise InvalidArgumentError(
            "HoldfastRunner keeps the conversation itself, under session_id: leave out session=, "
            "or give a HoldfastSession to the SDK's own Runner"
        )
    for name in _SERVERS:
        if options.get(name):
            raise InvalidArgumentError(
                f"{name} has OpenAI's server keep the conversation, which cannot be rolled back: "
                "HoldfastRunner keeps it itself"
            )
    session = {name: options[name] for name in SESSION_OPTIONS if name in options}
    rest = {name: options[name] for name in _OF_THE_RUNNER if name in options}
    unknown = set(options) - set(session) - set(rest) - set(_SERVERS)
    if unknown:
        raise InvalidArgumentError(
            f"HoldfastRunner takes no option {', '.join(sorted(unknown))}; it takes "
            f"{', '.join((*_OF_THE_RUNNER, *SESSION_OPTIONS))}, hooks and run_config"
        )
    return session, rest
