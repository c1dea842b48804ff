"""Asking in a session that may have been cut short: it goes on where it stopped.

Claude's program resumes a session only with something said. Two things it does by itself are used
to say nothing: a call that a hook has deferred is made when its session is resumed, and with
CLAUDE_CODE_RESUME_INTERRUPTED_TURN a turn that was cut short is gone on with.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    Message,
    ProcessError,
    ResultMessage,
    SystemMessage,
    project_key_for_directory,
    query,
)

from holdfast.adapters.claude_agent_sdk import transcript
from holdfast.adapters.claude_agent_sdk.on_disk import is_taken
from holdfast.adapters.claude_agent_sdk.sessions import PROJECT, Key
from holdfast.adapters.claude_agent_sdk.tool_hooks import now
from holdfast.adapters.claude_agent_sdk.transcript import Call
from holdfast.adapters.kept import Kept
from holdfast.errors import InvalidArgumentError

if TYPE_CHECKING:
    from holdfast.adapters.claude_agent_sdk.store import HoldfastSessionStore

_GOES_ON = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"
_PATIENCE = 60.0
"""Seconds in which the program begins to go on by itself; if it does not, the prompt is said."""
Prompt = str | AsyncIterable[dict[str, Any]]


async def asked(
    store: HoldfastSessionStore,
    prompt: Prompt,
    session_id: str,
    given: ClaudeAgentOptions | None,
    declared: dict[str, Any],
) -> AsyncGenerator[Message, None]:
    """Ask, or go on with what was asked before."""
    options = await store.options(session_id, given, **declared)
    key = key_of(store, session_id, options)
    first, rest = await _split(prompt)
    name, head = await store._recorder.find(key)
    waiting = None if head is None else transcript.waiting_prompt(head.state)
    try:
        if waiting is not None and first is not None and _is_same(waiting, first):
            messages = _gone_on(store, key, options, first, rest)
        else:
            messages = _begun(store, key, options, first, rest)
        async with aclosing(messages):  # whoever stops listening ends the program
            async for message in messages:
                yield message
    finally:
        await store._recorder.lasting.leave(name)
    await store._recorder.make_up()
    store.check(session_id)


async def _begun(
    store: HoldfastSessionStore,
    key: Key,
    options: ClaudeAgentOptions,
    first: dict[str, Any] | None,
    rest: AsyncIterable[dict[str, Any]],
) -> AsyncGenerator[Message, None]:
    """Say the prompt in a session that is new, or whose last turn is not gone on with.

    One that was killed before anything was kept may leave its id taken, a moment later even.
    """
    while True:
        is_begun = False
        try:
            async with aclosing(query(prompt=_said(first, rest), options=options)) as messages:
                async for message in messages:
                    is_begun = True
                    yield message
            return
        except ProcessError:
            own_id = options.session_id
            if is_begun or own_id is None or not is_taken(options.env, key[PROJECT], own_id):
                raise
            another = store._recorder.transcripts.another_id(own_id)
            options = replace(options, session_id=another)


async def _gone_on(
    store: HoldfastSessionStore,
    key: Key,
    options: ClaudeAgentOptions,
    first: dict[str, Any],
    rest: AsyncIterable[dict[str, Any]],
) -> AsyncGenerator[Message, None]:
    """Make the calls that were cut off, and go on with the turn."""
    session_id = key["session_id"]
    name, head = await store._recorder.find(key)
    assert head is not None
    await store._hooks.put_files_back(name, head)
    calls = await _left(store, key, name, head)
    for call in calls[:-1]:  # the program makes one call by itself; the others in starts before
        store._hooks.held_back.add(session_id)
        try:
            resumed = _resumed(store, session_id, options, call, first, _none())
            async with aclosing(resumed):
                async for message in resumed:
                    if not isinstance(message, (ResultMessage, SystemMessage)):
                        yield message
        finally:
            store._hooks.held_back.discard(session_id)
    last = calls[-1] if calls else None
    resumed = _resumed(store, session_id, options, last, first, rest)
    async with aclosing(resumed):
        async for message in resumed:
            yield message


async def _left(store: HoldfastSessionStore, key: Key, name: str, head: Kept) -> list[Call]:
    """Return the calls to make; one that lasts and may have been made is answered as unknown."""
    found = []
    begun = await store._recorder.lasting.begun(name)
    for call in transcript.pending(head.state):
        if call.id not in begun:
            found.append(call)
            continue

        def answered(state: Any, call: Call = call) -> Any:
            said = transcript.UNKNOWN
            return transcript.with_result(state, key[PROJECT], call, said, True, now())

        await store._recorder.change(key, answered, f"{call.tool}: unknown")
    return found


async def _resumed(
    store: HoldfastSessionStore,
    session_id: str,
    options: ClaudeAgentOptions,
    call: Call | None,
    first: dict[str, Any],
    rest: AsyncIterable[dict[str, Any]],
) -> AsyncGenerator[Message, None]:
    """Resume a session with nothing said: what is owed is done, and then ``rest`` is said."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def said() -> AsyncIterator[dict[str, Any]]:
        try:
            await asyncio.wait_for(begun.wait(), _PATIENCE)
        except TimeoutError:
            yield first
        else:
            await ended.wait()
        async for message in rest:
            yield message

    if call is None:
        options = replace(options, env={**options.env, _GOES_ON: "1"})
    else:
        store._left[session_id] = call
    try:
        async with aclosing(query(prompt=said(), options=options)) as messages:
            async for message in messages:
                begun.set()
                if isinstance(message, ResultMessage):
                    ended.set()
                yield message
    finally:
        store._left.pop(session_id, None)


# What is said


async def _split(prompt: Prompt) -> tuple[dict[str, Any] | None, AsyncIterable[dict[str, Any]]]:
    """Return the first message of a prompt, and those behind it."""
    if isinstance(prompt, str):
        message = {"role": "user", "content": prompt}
        own = {"type": "user", "session_id": "", "message": message, "parent_tool_use_id": None}
        return own, _none()
    if not isinstance(prompt, AsyncIterable):
        raise InvalidArgumentError(
            f"prompt is a text or an async iterable of messages, not {type(prompt).__name__}"
        )
    messages = aiter(prompt)
    return await anext(messages, None), messages


async def _none() -> AsyncIterator[dict[str, Any]]:
    nothing: tuple[dict[str, Any], ...] = ()
    for message in nothing:
        yield message


async def _said(
    first: dict[str, Any] | None, rest: AsyncIterable[dict[str, Any]]
) -> AsyncIterator[dict[str, Any]]:
    if first is not None:
        yield first
    async for message in rest:
        yield message


def _is_same(waiting: Any, first: dict[str, Any]) -> bool:
    """Return whether a message says what the prompt said whose turn was cut short.

    Of a prompt with images a hook tells the text alone.
    """
    message = first.get("message")
    said = message.get("content") if isinstance(message, dict) else None
    return bool(waiting == said or _texts(waiting) == _texts(said) != [])


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [b["text"] for b in blocks if isinstance(b, dict) and b.get("type") == "text"]


# Options


def key_of(store: HoldfastSessionStore, session_id: str, options: ClaudeAgentOptions) -> Key:
    """Return the key by which the SDK asks for a session in the directory of these options."""
    project = project_key_for_directory(options.cwd)
    return {PROJECT: project, "session_id": store.claude_id(session_id)}


def checked_options(
    store: HoldfastSessionStore, session_id: str, options: ClaudeAgentOptions | None
) -> ClaudeAgentOptions:
    """Return the user's options; an error if they say something else than the session."""
    given = ClaudeAgentOptions() if options is None else options
    if not isinstance(given, ClaudeAgentOptions):
        raise InvalidArgumentError(f"options are ClaudeAgentOptions, not {type(given).__name__}")
    own_id = store.claude_id(session_id)
    for name in ("resume", "session_id"):
        other = getattr(given, name)
        if other not in (None, session_id, own_id):
            raise InvalidArgumentError(
                f"options.{name} is {other!r}, and session_id {session_id!r}: give one of them"
            )
    if given.continue_conversation:
        raise InvalidArgumentError(
            "continue_conversation goes on with whatever came last: session_id says with what"
        )
    if given.session_store not in (None, store):
        raise InvalidArgumentError("options.session_store is another store: leave it out")
    return given


async def options_for(
    store: HoldfastSessionStore, session_id: str, given: ClaudeAgentOptions, hooks: Any
) -> ClaudeAgentOptions:
    """Return options that begin a session, or resume it if it is there."""
    key = key_of(store, session_id, given)
    head = await store._recorder.brought_here(key)
    is_there = head is not None and bool(head.state["entries"])
    own: dict[str, Any] = {"session_store": store, "session_store_flush": "eager", "hooks": hooks}
    own_id = key["session_id"]
    while not is_there and is_taken(given.env, key[PROJECT], own_id):
        own_id = store._recorder.transcripts.another_id(own_id)
    own |= {"resume": own_id if is_there else None, "session_id": None if is_there else own_id}
    if head is not None and given.system_prompt is None:
        told = [part["content"] for part in head.state.get("system", []) if "content" in part]
        own |= {"system_prompt": "\n\n".join(told)} if told else {}
    return replace(given, **own)
