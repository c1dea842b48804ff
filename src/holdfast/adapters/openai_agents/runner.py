"""The SDK's Runner, with every step kept: killed anywhere, the same lines go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from agents import Agent, RunResultStreaming, RunState

from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.openai_agents.options import RunnerOptions, split
from holdfast.adapters.openai_agents.stream import KeptRun
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError
from holdfast.model import Framework, checked_name

_NAME = Framework.OPENAI_AGENTS.value
_OWN = tuple(field.name for field in fields(RunnerOptions) if field.name not in ("session", "rest"))


class HoldfastRunner:
    """Runs agents as ``agents.Runner`` does, and keeps the model's answers, tools and files.

    ``await HoldfastRunner.run(agent, "…", session_id="fix-42", url="sqlite:///agent.db")``.
    """

    @classmethod
    async def run(
        cls,
        agent: Agent[Any],
        input: Any = None,
        *,
        session_id: str,
        client: Client | SyncClient | None = None,
        url: str | None = None,
        agent_id: str = _NAME,
        context: Any = None,
        context_serializer: Callable[[Any], Any] | None = None,
        context_deserializer: Callable[[Any], Any] | None = None,
        hooks: Any = None,
        run_config: Any = None,
        journal: bool = True,
        effects: Effects | None = None,
        workspace: Any = None,
        **options: Any,
    ) -> RunResultStreaming:
        """Run an agent to its end, or on from where it was killed; options as of run_streamed.

        With the prompt of a run that was not finished (or with ``[]``) that run goes on; another
        prompt is the next turn of the conversation. Models are asked without streaming.
        """
        given = {name: value for name, value in locals().items() if name in _OWN}
        shown = _begun(agent, input, {**given, **options}, streams=False)
        async for _ in shown.stream_events():
            pass
        return shown

    @classmethod
    def run_streamed(
        cls,
        agent: Agent[Any],
        input: Any = None,
        *,
        session_id: str,
        client: Client | SyncClient | None = None,
        url: str | None = None,
        agent_id: str = _NAME,
        context: Any = None,
        context_serializer: Callable[[Any], Any] | None = None,
        context_deserializer: Callable[[Any], Any] | None = None,
        hooks: Any = None,
        run_config: Any = None,
        journal: bool = True,
        effects: Effects | None = None,
        workspace: Any = None,
        **options: Any,
    ) -> RunResultStreaming:
        """Return a run that begins when its ``stream_events()`` are asked for.

        ``client`` or ``url`` say where it is kept, ``workspace`` names a directory whose files go
        with it, ``effects`` says what tools do to the world (by their names), ``journal=False``
        does without a journal of tools. Further options are ``approval``, ``approve_when`` and the
        like of ``client.session``, and ``max_turns`` and ``error_handlers`` of ``agents.Runner``.
        """
        given = {name: value for name, value in locals().items() if name in _OWN}
        return _begun(agent, input, {**given, **options}, streams=True)


def _begun(agent: Any, input: Any, options: dict[str, Any], *, streams: bool) -> KeptRun:
    if not isinstance(agent, Agent):
        raise InvalidArgumentError(f"an Agent of the SDK is run, not {type(agent).__name__}")
    given = [] if input is None else input
    if not isinstance(given, (str, list, RunState)):
        raise InvalidArgumentError(
            f"input is a text, a list of items or a RunState, not {type(given).__name__}"
        )
    own = {name: options.pop(name) for name in _OWN}
    session, rest = split(options)
    checked_name("session_id", own["session_id"])
    checked_name("agent_id", own["agent_id"])
    checked_effects(own["effects"])
    return KeptRun(agent, given, RunnerOptions(**own, session=session, rest=rest), streams)
