"""Conversations that move between frameworks: read one, hand it to another, export it.

Reading needs none of the frameworks: it is a view of what a session holds.

>>> from holdfast import SyncClient
>>> from holdfast.adapters.portable import conversation
>>> with SyncClient.memory() as client:
...     state = {"messages": [{"role": "user", "content": "hello"}]}
...     _ = client.save("coder", execution_state=state, session_id="s1")
...     conversation("s1", client).messages
[{'role': 'user', 'parts': [{'type': 'text', 'content': 'hello'}]}]
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from holdfast.adapters.opening import AdapterStore
from holdfast.client import Client, SyncClient
from holdfast.core.conversation import Conversation, ToolCall
from holdfast.core.conversation.atif import trajectory
from holdfast.core.conversation.opentelemetry import telemetry
from holdfast.core.conversation.reading import form_of
from holdfast.core.conversation.writing import written
from holdfast.errors import InvalidArgumentError
from holdfast.verbs import conversations

__all__ = ["Conversation", "ToolCall", "conversation", "messages", "to_atif", "to_opentelemetry"]


def conversation(
    session_id: str,
    client: Client | SyncClient | None = None,
    *,
    url: str | None = None,
    agent_id: str | None = None,
) -> Conversation | None:
    """Return the conversation at the head of a session; None if there is none.

    If several agents have a session of that name, ``agent_id`` says whose is meant. What a
    framework itself calls the session does too, where its adapter keeps it under another name.
    """
    store = AdapterStore.given(client, url)
    try:
        plan = conversations.conversation(store.sync.engine, session_id, agent_id)
        return store.sync.run(plan)
    finally:
        store.close()


def messages(conversation: Conversation, framework: str, *, as_json: bool = False) -> list[Any]:
    """Return a conversation as a framework takes it: in objects of its classes, or in its dicts.

    ``as_json`` gives the JSON form of them, for which nothing needs to be installed. Calls
    without an answer are left as they are: ``conversation.settle()`` them first.
    """
    form = form_of(framework)
    found = written(form, _checked(conversation)).messages
    if as_json:
        return found
    adapter = import_module(f"holdfast.adapters.{form.framework}.messages")
    return cast(list[Any], adapter.loaded(found))


def to_opentelemetry(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation in the attributes that OpenTelemetry's GenAI conventions name.

    >>> from holdfast.adapters.portable import Conversation, to_opentelemetry
    >>> said = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
    >>> sorted(to_opentelemetry(Conversation.of([said])))
    ['gen_ai.input.messages', 'gen_ai.output.messages', 'gen_ai.system_instructions', 'schema_url']
    """
    return telemetry(_checked(conversation))


def to_atif(
    conversation: Conversation, *, agent: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a conversation as a trajectory in ATIF 1.7, for evaluations.

    ``agent`` may name the agent, its version and its model: else that is the framework.
    """
    return trajectory(_checked(conversation), agent)


def _checked(given: object) -> Conversation:
    if isinstance(given, Conversation):
        return given
    raise InvalidArgumentError(f"a Conversation is wanted, not {type(given).__name__}")
