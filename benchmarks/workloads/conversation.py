"""S2 and S4: conversations that grow by one message a step, and the same with typed messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.workloads.states import State, Steps
from benchmarks.workloads.text import Writer

Message = dict[str, Any]

_ROLES = ("user", "assistant", "tool", "assistant")
_EPOCH = 1_790_000_000
LONG_MESSAGE = 900
"""Characters of content that make a message of about 1 KB."""
SHORT_MESSAGE = 180
"""Characters of content that make a message of about 300 bytes."""


def growing(
    start: int = 1,
    seed: int = 2,
    content: int = LONG_MESSAGE,
    convert: Callable[[Message], Any] = lambda message: message,
) -> Steps:
    """A conversation saved after each message, from the one numbered `start`.

    The state is one dict that grows in place, as an agent's does; no message is ever altered.
    """
    write = Writer(seed)
    messages = [convert(message(write, number, content)) for number in range(1, start)]
    state: State = {"messages": messages, "step": 0, "next": "agent"}
    step = start - 1
    while True:
        step += 1
        messages.append(convert(message(write, step, content)))
        state["step"] = step
        state["next"] = "tools" if step % 4 == 2 else "agent"
        yield step, state


def message(write: Writer, number: int, content: int) -> Message:
    role = _ROLES[(number - 1) % len(_ROLES)]
    return {
        "role": role,
        "content": write.text(write.near(content)),
        "id": f"msg-{write.identifier()}{write.identifier()}",
        "metadata": {
            "created_at": _EPOCH + number * 7,
            "tokens": write.random.randint(20, 400),
            "model": "large-2" if role == "assistant" else None,
            "latency": round(write.random.random() * 4, 3),
        },
    }
