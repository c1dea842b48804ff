"""What an agent is at the end of a step: its steps, its state and the variables of its code."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from smolagents.local_python_executor import LocalPythonExecutor
from smolagents.memory import ActionStep, MemoryStep

from holdfast.adapters.smolagents.messages import loaded
from holdfast.adapters.smolagents.steps import step_data
from holdfast.adapters.smolagents.variables import (
    OnlyHereError,
    kept_value,
    kept_values,
    loaded_value,
    put_back,
)
from holdfast.core.safe_repr import shown
from holdfast.errors import AdapterError, SerializationError

ANSWER = "the answer"
"""How an answer that cannot be kept is named among what is left out."""
_log = logging.getLogger("holdfast")


def state_of(
    agent: Any, steps: list[MemoryStep], asked: str | None, answer: Any, exclude: Collection[str]
) -> dict[str, Any]:
    """Return an agent with these steps as it is kept."""
    values, left_out = kept_values(agent.state, "$.state", exclude)
    executor = getattr(agent, "python_executor", None)
    variables: dict[str, Any] = {}
    if isinstance(executor, LocalPythonExecutor):
        variables, more = kept_values(executor.state, "$.variables", exclude)
        left_out += [*more, *executor.custom_tools]
    elif executor is not None:
        left_out.append(f"all variables of {type(executor).__name__}, which are elsewhere")
    written = [step_data(step, f"$.steps[{place}]") for place, step in enumerate(steps)]
    if written[-1].get("is_final_answer") and written[-1]["output"] is None:
        written[-1]["output"] = answer  # agents that call tools do not note it
    for place, step in enumerate(written):
        if "output" in step:
            path = f"$.steps[{place}].output"
            try:
                step["output"] = kept_value(step["output"], path)
            except SerializationError as error:  # its observations say what the model was told
                is_ours = isinstance(error, OnlyHereError)
                step["output"] = shown(step["output"]) if is_ours else None
                left_out.append(ANSWER if step["is_final_answer"] else path)
    return {
        "system_prompt": agent.memory.system_prompt.system_prompt,
        "steps": written,
        "asked": asked,
        "state": values,
        "variables": variables,
        "left_out": sorted(set(left_out)),
    }


def load_steps(agent: Any, before: dict[str, Any]) -> None:
    """Give an agent the memory that was kept."""
    steps = loaded(before["steps"])
    for place, step in enumerate(steps):
        if isinstance(step, ActionStep):
            step.action_output = loaded_value(step.action_output, f"$.steps[{place}].output")
    agent.memory.steps = steps
    for name, value in before.get("state", {}).items():
        agent.state[name] = loaded_value(value, f"$.state.{name}")


def load_variables(agent: Any, before: dict[str, Any], session_id: str) -> None:
    """Give an agent's code its variables, and say which are gone."""
    executor = getattr(agent, "python_executor", None)
    if isinstance(executor, LocalPythonExecutor):
        put_back(before.get("variables", {}), executor, "$.variables")
    if before.get("left_out"):
        names = ", ".join(before["left_out"])
        _log.warning("session %r: not kept, and gone for the agent's code: %s", session_id, names)


def checked(state: Any, session_id: str) -> dict[str, Any]:
    """Return the kept state of an agent; an empty one if there is none yet."""
    if state == {}:
        return {}
    is_whole = isinstance(state, dict) and isinstance(state.get("steps"), list)
    if not is_whole or not all(isinstance(state.get(n, {}), dict) for n in ("state", "variables")):
        raise AdapterError(
            f"session {session_id!r} holds no steps of smolagents: it was kept by something else, "
            "or is damaged; use another session_id"
        )
    for place, step in enumerate(state["steps"]):
        if not isinstance(step, dict):
            raise AdapterError(
                f"session {session_id!r}: $.steps[{place}] is no step of smolagents; go back to an "
                "older checkpoint"
            )
    found: dict[str, Any] = state
    return found


def last_task(steps: list[dict[str, Any]]) -> str | None:
    """Return the newest task."""
    return next((step.get("task") for step in reversed(steps) if step.get("type") == "task"), None)


def steps_done(steps: list[dict[str, Any]]) -> int:
    """Return how many steps were made on the newest task."""
    for step in reversed(steps):
        if step.get("type") == "action":
            return int(step["step_number"])
        if step.get("type") == "task":
            break
    return 0


def is_finished(steps: list[dict[str, Any]]) -> bool:
    """Return whether the newest task has its answer."""
    last = steps[-1] if steps else {}
    error = last.get("error") or {}
    return bool(last.get("is_final_answer")) or error.get("type") == "AgentMaxStepsError"
