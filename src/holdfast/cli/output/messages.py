"""Messages of agents as people read them, whatever framework wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.core.conversation.said import Said, messages_in
from holdfast.system.terminal_text import clean, clean_lines, cut

if TYPE_CHECKING:
    from holdfast.cli.output.terminal import Terminal
    from holdfast.core.conversation.lost import Lost
    from holdfast.model import Checkpoint

_STYLES = {"-": "bad", "+": "good"}


def messages_of(checkpoint: Checkpoint, lost: Lost | None = None) -> list[Said]:
    """Return the messages that a checkpoint holds."""
    return messages_in(checkpoint.framework.value, checkpoint.execution_state, lost)


def with_prompt(messages: list[Said], checkpoint: Checkpoint) -> list[Said]:
    """Return messages with the prompt at which a checkpoint was recorded, if it was.

    A coding agent tells its hook of a prompt before it writes that down.
    """
    state = checkpoint.execution_state
    if "program" not in checkpoint.metadata or not isinstance(state, dict):
        return messages
    prompt = state.get("prompt") if state.get("moment") == "prompt" else None
    if not isinstance(prompt, str) or (messages and messages[-1].text == prompt):
        return messages
    return [*messages, Said("user", [{"type": "text", "content": prompt}])]


@dataclass(frozen=True)
class Known:
    """What was said until a checkpoint, and by whom it was recorded."""

    messages: list[Said]
    is_recorded: bool
    """Whether a hook of a coding agent has told of it."""
    subagent_id: Any

    @classmethod
    def of(cls, checkpoint: Checkpoint, lost: Lost | None = None) -> Known:
        """Return what a checkpoint knows."""
        tags = checkpoint.metadata
        messages = with_prompt(messages_of(checkpoint, lost), checkpoint)
        return cls(messages, "program" in tags, tags.get("subagent_id"))


@dataclass(frozen=True)
class MessageChanges:
    """What was said in one checkpoint and not in another."""

    removed: list[Said]
    added: list[Said]

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "removed": [message.as_dict() for message in self.removed],
            "added": [message.as_dict() for message in self.added],
        }

    def lines(self, terminal: Terminal) -> list[str]:
        """Return the messages, each in its lines behind a sign."""
        return [
            f"{terminal.paint(sign, _STYLES[sign])} {line}"
            for sign, messages in (("-", self.removed), ("+", self.added))
            for message in messages
            for line in message_lines(message, terminal, brief=True)
        ]


def changed(old: list[Said], new: list[Said], by_call: bool = False) -> MessageChanges:
    """Return the messages between what both begin and what both end with.

    With ``by_call`` results of the same calls are the same, in whatever words.
    """
    before, now = (
        [_result_of(each) or each for each in said] if by_call else said for said in (old, new)
    )
    least = min(len(old), len(new))
    first = next((i for i in range(least) if before[i] != now[i]), least)
    least -= first
    last = next((i for i in range(least) if before[-1 - i] != now[-1 - i]), least)
    return MessageChanges(old[first : len(old) - last], new[first : len(new) - last])


def _result_of(message: Said) -> tuple[Any, ...] | None:
    """Return the calls that a message gives the results of; None if it says anything else."""
    calls = [part.get("id") for part in message.parts if part["type"] == "tool_call_response"]
    return tuple(calls) if calls and len(calls) == len(message.parts) and all(calls) else None


def said_since(old: Known | None, new: Known) -> MessageChanges:
    """Return what was said from one checkpoint to another.

    A subagent's conversation is its own, and nothing of its parent's was taken back. What a tool of
    a coding agent gave is told by its hook first, and then in the program's own words.
    """
    is_other = old is not None and new.subagent_id not in (None, old.subagent_id)
    before = [] if old is None or is_other else old.messages
    return changed(before, new.messages, by_call=new.is_recorded)


def message_lines(message: Said, terminal: Terminal, brief: bool = False) -> list[str]:
    """Return a message: its role, and what it says."""
    role = terminal.paint(f"{clean(message.role)}:", "head")
    text = clean_lines(message.text)
    if brief:
        text = cut(text.replace("\n", " ⏎ "), min(terminal.width, 160) - 16)
    first, *others = text.splitlines() or [""]
    lines = [f"{role} {first}".rstrip(), *(f"  {line}" for line in others)]
    for call in message.calls:
        said = cut(clean(call.arguments), 120) if brief else clean_lines(call.arguments)
        lines.append(f"  -> {clean(call.name)}({said})")
    return lines
