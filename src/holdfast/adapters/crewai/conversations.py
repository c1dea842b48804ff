"""A conversation with one agent: ``Agent.kickoff``, kept before each request to its model.

What is kept are the messages as they were given and answered. The agent's own system prompt is the
agent's, and is made anew; so is CrewAI's wording around the newest prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crewai.agents.agent_builder.base_agent import BaseAgent
from crewai.hooks.dispatch import HookAborted, InterceptionPoint, scoped_hooks
from crewai.lite_agent_output import LiteAgentOutput

from holdfast.adapters.crewai.heads import follow
from holdfast.adapters.crewai.plain import NotPlainError, plain
from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.runtime.steps import Plan

_NOT_KEPT = frozenset({"cache_breakpoint", "raw_tool_call_parts"})
"""Hints of CrewAI's to a provider, which it makes anew."""
_ROLES = ("system", "user", "assistant", "tool")


def kept_messages(state: Any, session_id: str) -> list[dict[str, Any]]:
    """Return the messages in a kept state."""
    messages = state.get("messages") if isinstance(state, dict) else None
    if isinstance(messages, list) and all(isinstance(each, dict) for each in messages):
        return [dict(message) for message in messages]
    raise AdapterError(
        f"session {session_id!r} holds no conversation of CrewAI: it was kept by something else "
        "(a crew, a flow), or is damaged; use another session_id"
    )


def kept_output(kept: KeptSessions, session_id: str, output: LiteAgentOutput) -> Plan[Kept]:
    """Keep the messages of an agent's output as the conversation of a session."""
    messages = [_clean(message) for message in output.messages]
    if messages and _is_own_prompt(messages[0], output.agent_role):
        messages = messages[1:]
    state = {"messages": _with_answer(messages, output), "turn": None}
    return (yield from kept.update(session_id, lambda _: state, name="answer"))


def _is_own_prompt(message: Mapping[str, Any], role: str) -> bool:
    """Return whether a message is the system prompt that CrewAI makes of an agent's role."""
    own = f"You are {role}."
    return message.get("role") == "system" and str(message.get("content")).startswith(own)


def _with_answer(messages: list[dict[str, Any]], output: LiteAgentOutput) -> list[dict[str, Any]]:
    """Return messages that end with the answer, which agents without tools do not put there."""
    if messages and messages[-1].get("role") == "assistant":
        return messages
    return [*messages, {"role": "assistant", "content": output.raw}]


class Turn:
    """One prompt in a conversation, up to its answer."""

    def __init__(
        self, run: Callable[[Plan[Any]], Any], kept: KeptSessions, session_id: str
    ) -> None:
        self._run = run
        self._kept = kept
        self._session_id = session_id
        self._head: Kept | None = None
        self._messages: list[dict[str, Any]] = []
        self._turn: list[dict[str, Any]] | None = None
        self._agent: Any = None
        self._executor: Any = None
        self._shown: list[dict[str, Any]] = []
        """What the model was shown when this turn's first request was made."""
        self._own = 0
        self._problem: Exception | None = None

    def kickoff(self, agent: Any, prompt: Any, options: Mapping[str, Any]) -> LiteAgentOutput:
        """Add a prompt, unless it is there already, and have it answered."""
        if not isinstance(agent, BaseAgent):
            raise InvalidArgumentError(f"kickoff is given an Agent, not {type(agent).__name__}")
        _check_no_loop()
        added = _given(prompt)
        self._agent = agent
        self._begin(added)
        with scoped_hooks({InterceptionPoint.PRE_MODEL_CALL: [self._before_request]}):
            try:
                output = agent.kickoff([dict(message) for message in self._messages], **options)
            except Exception:
                if self._problem is not None:
                    raise self._problem from None
                raise
        if self._problem is not None:
            raise self._problem
        self._take_up(output.messages)
        self._messages = _with_answer(self._messages, output)
        self._turn = None
        self._write("answer")
        return output

    def _begin(self, added: list[dict[str, Any]]) -> None:
        self._head = self._run(self._kept.head(self._session_id))
        state = None if self._head is None else self._head.state
        if state is not None:
            self._messages = kept_messages(state, self._session_id)
        cut = None if state is None else state.get("turn")
        self._turn = added
        if cut is not None and cut == added:
            return  # the prompt is there once
        if not added and not self._messages:
            raise InvalidArgumentError(
                f"session {self._session_id!r} is yet to begin: kickoff needs a prompt"
            )
        if added:
            self._messages = [*self._messages, *added]
            self._write("user prompt")

    def _before_request(self, context: Any) -> None:
        """Keep what has been said since; what goes wrong ends the kickoff, and is raised there."""
        if context.executor is None or context.agent is not self._agent:
            return  # another agent, that a tool has asked
        if self._executor is None:
            self._executor = context.executor
            self._show_all(context.messages)
            return
        if context.executor is not self._executor:
            return
        try:
            if self._take_up(context.messages):
                self._write("tools")
        except Exception as error:  # CrewAI drops all else that a hook raises
            self._problem = error
            raise HookAborted(f"the conversation could not be kept: {error}") from error

    def _show_all(self, messages: list[dict[str, Any]]) -> None:
        """Show the model the images of the newest prompt, of which CrewAI takes the text alone."""
        carried = [each for each in self._messages if _says_something(each)]
        self._own = len(messages) - len(carried)
        asked = [place for place, each in enumerate(carried) if each.get("role") == "user"]
        if asked and self._own >= 0:
            media = _media(carried[asked[-1]].get("content"))
            place = self._own + asked[-1]
            if media and isinstance(messages[place].get("content"), str):
                text = {"type": "text", "text": messages[place]["content"]}
                messages[place] = {**messages[place], "content": [text, *media]}
        self._shown = [_clean(message) for message in messages]

    def _take_up(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Add what came since; returns whether anything did."""
        now = [_clean(message) for message in messages]
        before = len(self._shown)
        if now[:before] == self._shown:
            new = now[before:]
        else:  # CrewAI has made the conversation shorter, to fit the model's window
            self._messages, new = now[max(self._own, 0) :], []
            self._shown = now
            return True
        self._messages = [*self._messages, *new]
        self._shown = now
        return bool(new)

    def _write(self, name: str) -> None:
        state = {"messages": self._messages, "turn": self._turn}
        self._head = self._run(
            follow(self._kept, self._session_id, state, name=name, after=self._head)
        )


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidArgumentError(
        "kickoff blocks until the agent has answered: from a coroutine call it by "
        "await asyncio.to_thread(checkpoints.kickoff, agent, prompt)"
    )


def _given(prompt: Any) -> list[dict[str, Any]]:
    """Return a prompt as messages."""
    if isinstance(prompt, str):
        if not prompt:
            raise InvalidArgumentError("the prompt is empty; to go on without one give []")
        return [{"role": "user", "content": prompt}]
    if not isinstance(prompt, Sequence):
        raise InvalidArgumentError(
            f"a prompt is text or a list of chat messages, not {type(prompt).__name__}"
        )
    for place, message in enumerate(prompt):
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            raise InvalidArgumentError(
                f"message {place} of the prompt is no chat message: a dict with a role "
                f"({', '.join(_ROLES)}) and content"
            )
        if message.get("files"):
            raise InvalidArgumentError(
                f"message {place} of the prompt has files, which cannot be kept: give images as "
                "parts of its content (image_url)"
            )
    return [_clean(message) for message in prompt]


def _clean(message: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {key: plain(value) for key, value in message.items() if key not in _NOT_KEPT}
    except NotPlainError as error:
        raise AdapterError(
            f"a {message.get('role')} message holds a {error}, which cannot be kept: "
            "messages are plain data"
        ) from error


def _media(content: Any) -> list[Any]:
    """Return the parts of a content that are no text."""
    if not isinstance(content, list):
        return []
    return [part for part in content if isinstance(part, Mapping) and part.get("type") != "text"]


def _says_something(message: Mapping[str, Any]) -> bool:
    """Return whether CrewAI shows a message to the model."""
    return any(message.get(key) for key in ("content", "tool_calls", "tool_call_id", "files"))
