"""A run of an agent that goes on where it was killed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from autogen_agentchat.base import ChatAgent, TaskResult, Team
from autogen_agentchat.messages import BaseChatMessage, TextMessage

from holdfast.adapters.autogen.agent_turn import AgentTurn
from holdfast.adapters.autogen.states import AGENT_ID
from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.opening import AdapterStore
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError
from holdfast.model import Framework, checked_name

Task: TypeAlias = str | BaseChatMessage | Sequence[BaseChatMessage]


async def run(
    agent: ChatAgent,
    task: Task | None = None,
    *,
    session_id: str,
    client: Client | SyncClient | None = None,
    url: str | None = None,
    agent_id: str = AGENT_ID,
    effects: Effects | None = None,
    approval: Any = None,
    approve_when: Any = None,
    approval_expires_seconds: float | None = None,
    approval_timeout: float | None = None,
    workspace: Any = None,
    cancellation_token: Any = None,
) -> TaskResult:
    """Run an agent on a task, and keep each answer of its model and each result of a tool.

    Started again with the same task (or none) after a kill, it goes on where it was. After its end
    the task is a new one. ``effects`` says what tools do to the world, by their names; ``approval``
    and what follows it are those of ``client.session``, ``workspace`` the files that go with it.
    """
    events = run_stream(
        agent,
        task,
        session_id=session_id,
        client=client,
        url=url,
        agent_id=agent_id,
        effects=effects,
        approval=approval,
        approve_when=approve_when,
        approval_expires_seconds=approval_expires_seconds,
        approval_timeout=approval_timeout,
        workspace=workspace,
        cancellation_token=cancellation_token,
    )
    return [event async for event in events][-1]


async def run_stream(
    agent: ChatAgent,
    task: Task | None = None,
    *,
    session_id: str,
    client: Client | SyncClient | None = None,
    url: str | None = None,
    agent_id: str = AGENT_ID,
    effects: Effects | None = None,
    approval: Any = None,
    approve_when: Any = None,
    approval_expires_seconds: float | None = None,
    approval_timeout: float | None = None,
    workspace: Any = None,
    cancellation_token: Any = None,
) -> AsyncGenerator[Any, None]:
    """Do what ``run`` does, and give what happens on the way; the TaskResult comes last."""
    if isinstance(agent, Team) or not isinstance(agent, ChatAgent):
        raise InvalidArgumentError(
            f"run takes an agent, not {type(agent).__name__}: a team is kept between its turns, "
            "with TurnCheckpoints as its termination_condition"
        )
    declared = checked_effects(effects)
    store = AdapterStore.given(client, url)
    try:
        opened = store.async_client.session(
            agent_id,
            session_id=checked_name("session_id", session_id),
            framework=Framework.AUTOGEN,
            on_divergence="live",
            approval=approval,
            approve_when=approve_when,
            approval_expires_seconds=approval_expires_seconds,
            approval_timeout=approval_timeout,
            workspace=workspace,
        )
        async with opened as kept:
            await kept.load_effects()
            turn = AgentTurn(kept, agent, declared)
            async with aclosing(turn.events(_messages(task), cancellation_token)) as events:
                async for event in events:
                    if not isinstance(event, TaskResult):
                        yield event
            await turn.end()
        yield event
    finally:
        await store.aclose()


def _messages(task: Any) -> list[BaseChatMessage]:
    """Return a task as messages, as AutoGen makes them of it."""
    if task is None:
        return []
    if isinstance(task, str):
        return [TextMessage(content=task, source="user")]
    given = list(task) if isinstance(task, (list, tuple)) else [task]
    if not given or not all(isinstance(each, BaseChatMessage) for each in given):
        raise InvalidArgumentError("a task is a text, a chat message, or a list of chat messages")
    return given
