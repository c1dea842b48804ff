"""Messages as smolagents has them: the steps of an agent's memory."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.smolagents.steps import loaded_step


def loaded(messages: list[Any]) -> list[Any]:
    """Return the steps for ``agent.memory.steps``."""
    return [loaded_step(step, f"$.steps[{place}]") for place, step in enumerate(messages)]
