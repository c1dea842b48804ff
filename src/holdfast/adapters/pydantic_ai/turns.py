"""The turn that a session is in: its messages, what was asked, and whether that was answered."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage
from pydantic_core import to_json

from holdfast.adapters.pydantic_ai.messages import dumped, loaded, read, written
from holdfast.errors import AdapterError

_USAGE: TypeAdapter[Any] = TypeAdapter(RunUsage)
_DEFERRED: TypeAdapter[Any] = TypeAdapter(DeferredToolRequests)


@dataclass
class Turn:
    """What a session of Pydantic AI holds."""

    messages: list[Any] = field(default_factory=list)
    """In JSON form, with the request that is about to be sent."""
    prompt: Any = None
    """What the user asked in the last turn, in JSON form."""
    finished: bool = True
    """Whether that turn came to its end."""
    usage: Any = None
    """What it has used so far."""
    deferred: Any = None
    """The calls that wait for an approval or for a result from elsewhere."""
    given: str | None = None
    """A digest of the ``message_history`` that the turn was given."""

    def as_state(self) -> dict[str, Any]:
        """Return it as the state of a checkpoint."""
        return dict(self.__dict__)


def turn_of(state: Any, session_id: str) -> Turn:
    """Return the turn that a state holds; one that is empty begins a session."""
    if state == {}:
        return Turn()
    if not isinstance(state, dict) or not isinstance(state.get("messages"), list):
        raise AdapterError(
            f"session {session_id!r} holds no conversation of Pydantic AI's agents, so nothing can "
            "go on from it: use another session_id (or agent_id, if HoldfastConversationStore "
            "keeps a conversation of that name)"
        )
    known = {name: state[name] for name in Turn.__dataclass_fields__ if name in state}
    return Turn(**known)


def prompt_in_json(prompt: Any) -> Any:
    """Return a user's prompt as plain data, the same for one text and a list of just that text."""
    if prompt is None:
        return None
    (request,) = dumped([ModelRequest(parts=[UserPromptPart(prompt)])])
    content = request["parts"][0]["content"]
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], str):
        return content[0]
    return content


def is_prompt(asked: Any, kept: Any) -> bool:
    """Return whether a prompt in JSON form is one that was kept, here or by who had it before."""
    if asked == kept or kept is None:
        return bool(asked == kept)
    part = {"part_kind": "user-prompt", "content": kept}
    (request,) = loaded([{"kind": "request", "parts": [part]}])
    return bool(asked == prompt_in_json(request.parts[0].content))


def digest_of(messages: Sequence[Any]) -> str | None:
    """Return what tells a history that was given from another; None for none."""
    return hashlib.sha256(to_json(list(messages))).hexdigest() if messages else None


def usage_in_json(usage: RunUsage) -> Any:
    """Return what was used as plain data."""
    return written(_USAGE, usage, "$.usage")


def usage_from_json(usage: Any) -> RunUsage:
    """Return what was used."""
    return RunUsage() if usage is None else read(_USAGE, usage, "$.usage")


def used_since(now: RunUsage, before: RunUsage) -> RunUsage:
    """Return what was used between two moments of one count."""
    since = RunUsage(**{name: getattr(now, name) for name in _counts(now)})
    for name in _counts(now):
        had, has = getattr(before, name), getattr(now, name)
        if isinstance(has, dict):
            setattr(since, name, {k: n - had.get(k, 0) for k, n in has.items()})
        elif isinstance(has, (int, float)) or (has is not None and had is not None):
            setattr(since, name, has - (had or 0))
    return since


def _counts(usage: RunUsage) -> list[str]:
    return [name for name, spec in type(usage).__dataclass_fields__.items() if spec.init]


def deferred_in_json(output: Any) -> Any:
    """Return the calls that a run ended with because they wait, as plain data; else None."""
    if not isinstance(output, DeferredToolRequests):
        return None
    return written(_DEFERRED, output, "$.deferred")


def same_history(given: Sequence[Any], kept: Sequence[Any]) -> bool:
    """Return whether a history that was given is how the kept one begins."""
    return len(given) <= len(kept) and loaded(list(given)) == loaded(list(kept[: len(given)]))
