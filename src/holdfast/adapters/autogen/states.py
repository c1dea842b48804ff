"""The state of an agent or a team, kept and given back when the program says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autogen_agentchat.base import ChatAgent, Team

from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.client import Client, SyncClient
from holdfast.core.conversation.settling import INTERRUPTED
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.model import Framework, checked_name

AGENT_ID = Framework.AUTOGEN.value
_OF_TEAM = "TeamState"


async def save(
    what: ChatAgent | Team,
    *,
    session_id: str,
    client: Client | SyncClient | None = None,
    url: str | None = None,
    agent_id: str = AGENT_ID,
    workspace: Any = None,
) -> str:
    """Keep the state of an agent, or of a team that is not running; returns the checkpoint's id."""
    _check(what)
    state = {"state": plain(await what.save_state()), "system": instructions(what)}
    store = AdapterStore.given(client, url)
    try:
        kept = KeptSessions(store, Framework.AUTOGEN, agent_id, workspace)
        plan = kept.update(checked_name("session_id", session_id), lambda _: state, name="saved")
        return (await store.aio.run(plan)).checkpoint_id
    finally:
        await store.aclose()


async def load(
    what: ChatAgent | Team,
    *,
    session_id: str,
    client: Client | SyncClient | None = None,
    url: str | None = None,
    agent_id: str = AGENT_ID,
) -> bool:
    """Give an agent or a team the state where its session stands; False if there is none yet."""
    _check(what)
    store = AdapterStore.given(client, url)
    try:
        kept = KeptSessions(store, Framework.AUTOGEN, agent_id)
        head = await store.aio.run(kept.head(checked_name("session_id", session_id)))
    finally:
        await store.aclose()
    if head is None:
        return False
    await give(what, answered(state_in(head.state, session_id), _interrupted), session_id)
    return True


def _check(what: object) -> None:
    if not isinstance(what, (ChatAgent, Team)):
        raise InvalidArgumentError(
            f"what is kept is an agent or a team of AutoGen, not {type(what).__name__}"
        )


def state_in(kept: Any, session_id: str) -> Mapping[str, Any]:
    """Return the framework's own state in what is kept of a session."""
    state = kept.get("state") if isinstance(kept, dict) else None
    if not isinstance(state, dict) or not isinstance(state.get("type"), str):
        raise AdapterError(
            f"session {session_id!r} holds no state of AutoGen's: it is damaged, or of another "
            "program; use another session_id, or go back with holdfast rollback"
        )
    return state


async def give(what: ChatAgent | Team, state: Mapping[str, Any], session_id: str) -> None:
    """Give an agent or a team its state; an error if it is that of another kind."""
    is_of_team = state["type"] == _OF_TEAM
    if is_of_team != isinstance(what, Team):
        kinds = ("a team", "an agent") if is_of_team else ("an agent", "a team")
        raise AdapterError(
            f"session {session_id!r} holds the state of {kinds[0]}, not of {kinds[1]}: "
            "use another session_id"
        )
    try:
        await what.load_state(state)
    except (KeyError, TypeError, ValueError) as error:
        raise AdapterError(
            f"the state of session {session_id!r} does not fit {what.name!r}: {error}; build "
            "it as it was when the state was kept"
        ) from error


ResultOf = Callable[[Mapping[str, Any]], dict[str, Any]]


def answered(state: Mapping[str, Any], result_of: ResultOf) -> dict[str, Any]:
    """Return the state of an agent in which calls at the end have results: models want them."""
    messages = messages_in(state)
    last = messages[-1] if messages else {}
    if last.get("type") != "AssistantMessage" or not isinstance(last.get("content"), list):
        return dict(state)
    results = [result_of(call) for call in last["content"]]
    message = {"content": results, "type": "FunctionExecutionResultMessage"}
    return with_messages(state, [message])


def _interrupted(call: Mapping[str, Any]) -> dict[str, Any]:
    return result(call, INTERRUPTED, is_error=True)


def result(call: Mapping[str, Any], content: str, *, is_error: bool) -> dict[str, Any]:
    """Return the result of a call as a model is told of it."""
    return {"content": content, "name": call["name"], "call_id": call["id"], "is_error": is_error}


def messages_in(state: Mapping[str, Any]) -> list[Any]:
    """Return what the model of an assistant sees; nothing for agents that keep something else."""
    context = state.get("llm_context")
    found = context.get("messages") if isinstance(context, Mapping) else None
    return found if isinstance(found, list) else []


def with_messages(state: Mapping[str, Any], messages: Sequence[Any]) -> dict[str, Any]:
    """Return the state of an assistant with messages added to what its model sees."""
    context = state.get("llm_context")
    if not isinstance(context, Mapping) or not isinstance(context.get("messages"), list):
        return dict(state)
    whole = {**context, "messages": [*context["messages"], *messages]}
    return {**state, "llm_context": whole}


def plain(value: Any) -> Any:
    """Return plain data: what AutoGen gives as its own mappings and sequences, as dict and list."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def instructions(what: object) -> list[dict[str, Any]]:
    """Return an agent's system prompt in parts, for who goes on in another framework."""
    given = getattr(what, "_system_messages", None) or []
    return [{"type": "text", "content": each.content} for each in given if each.content]
