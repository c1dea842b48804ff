"""The forms in which frameworks keep conversations: one module each, imported when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part


@dataclass(frozen=True)
class Native:
    """What a framework's state holds of a conversation."""

    messages: Sequence[Any]
    """In the framework's own JSON form."""
    system: Sequence[Part] = ()
    """The system prompt, in parts, where the state has it apart from the messages."""
    interrupts: Sequence[Mapping[str, Any]] = ()
    plan: Sequence[Mapping[str, Any]] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None
    """The framework's version, where the state tells it."""
    provider: str | None = None


@dataclass(frozen=True)
class Form:
    """How a framework keeps a conversation: pure functions that need no framework."""

    framework: str
    extract: Callable[[Any], Native | None]
    """Finds the native messages in an execution_state; None if it is not this framework's."""
    read: Callable[[Sequence[Any], Lost], list[Message]]
    """Gives messages of parts in order; they need not be normal, but what is left out is noted."""
    write: Callable[[Conversation, Lost], list[Any]]
    """Gives native messages of a conversation in the normal form, or of the end of one."""
    state: Callable[[list[Any], Conversation], Any]
    """Gives the execution_state from which the adapter goes on."""
    runs_pending: bool = False
    """Whether the adapter runs calls kept without an answer, also where others of the same message
    have one."""
    output: Callable[[Any], Any] = lambda output: output
    """Gives what the journal kept of a call as its response, or as a whole tool_call_response."""
    place: Callable[[Any, str, str], tuple[Any, dict[str, Any]]] = lambda state, session, id_: (
        state,
        {},
    )
    """Completes a state, given the session_id and the checkpoint_id under which it is kept, and
    gives the tags that the adapter's own checkpoints have and that it finds them by."""


FRAMEWORKS = (
    "langgraph",
    "openai_agents",
    "pydantic_ai",
    "autogen",
    "crewai",
    "google_adk",
    "strands",
    "claude_agent_sdk",
    "agent_framework",
    "agentscope",
    "smolagents",
    "llama_index",
)


class _Forms(Mapping[str, Form]):
    """Forms by the name of their framework; each module has one as FORM."""

    def __getitem__(self, framework: str) -> Form:
        if framework not in FRAMEWORKS:
            raise KeyError(framework)
        form: Form = import_module(f"{__package__}.frameworks.{framework}").FORM
        return form

    def __iter__(self) -> Iterator[str]:
        return iter(FRAMEWORKS)

    def __len__(self) -> int:
        return len(FRAMEWORKS)


FORMS: Mapping[str, Form] = _Forms()
