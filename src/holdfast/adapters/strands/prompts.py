"""The same prompt after a crash: given to the agent once."""

from __future__ import annotations

from typing import Any

from strands import Agent


def prompt_once(agent: Agent, prompt: Any) -> Any:
    """Return what to call an agent with: the prompt, or None if it began a turn that was cut off.

    ``agent(prompt_once(agent, "Book it"))``: called with None, Strands goes on with what is there,
    calls of tools that were not answered included.
    """
    turn = _turn(agent.messages)
    if not turn or _ended(turn[-1]) or turn[0]["content"] != _content(prompt):
        return prompt
    return None


def _turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of the last turn: from what the user said on."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user" and not _has(messages[at], "toolResult"):
            return messages[at:]
    return []


def _ended(message: dict[str, Any]) -> bool:
    return message["role"] == "assistant" and not _has(message, "toolUse")


def _has(message: dict[str, Any], kind: str) -> bool:
    return any(kind in block for block in message["content"])


def _content(prompt: Any) -> Any:
    """Return what a prompt is in a message, as Strands makes it."""
    if isinstance(prompt, str):
        return [{"text": prompt}]
    if (
        isinstance(prompt, list)
        and prompt
        and isinstance(prompt[-1], dict)
        and "role" in prompt[-1]
    ):
        return prompt[-1]["content"]
    return prompt
