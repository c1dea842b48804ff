"""Steps of an agent's memory as plain data, and back.

The whole input that each step holds again is not kept: it is what the steps before it say. Nor is
the raw answer of a provider's client, which is an object of that client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smolagents import utils
from smolagents.memory import ActionStep, MemoryStep, PlanningStep, TaskStep, ToolCall
from smolagents.models import ChatMessage
from smolagents.monitoring import Timing, TokenUsage
from smolagents.utils import AgentError

from holdfast.adapters.smolagents.images import as_png, from_png
from holdfast.errors import AdapterError, SerializationError

_AS_THEY_ARE = ("step_number", "model_output", "code_action", "observations", "is_final_answer")


def step_data(step: MemoryStep, path: str) -> dict[str, Any]:
    """Return a step as plain data; what its tools gave as it is."""
    if isinstance(step, TaskStep):
        return {"type": "task", "task": step.task, "images": _pngs(step.task_images, path)}
    if isinstance(step, PlanningStep):
        return {
            "type": "planning",
            "plan": step.plan,
            "answer": message_data(step.model_output_message),
            "timing": _timing(step.timing),
            "token_usage": _usage(step.token_usage),
        }
    if isinstance(step, ActionStep):
        return {
            "type": "action",
            **{name: getattr(step, name) for name in _AS_THEY_ARE},
            "answer": message_data(step.model_output_message),
            "tool_calls": [_call(each) for each in step.tool_calls or ()],
            "error": None if step.error is None else step.error.dict(),
            "images": _pngs(step.observations_images, path),
            "output": step.action_output,
            "timing": _timing(step.timing),
            "token_usage": _usage(step.token_usage),
        }
    raise SerializationError(path, f"a step of class {type(step).__name__} is not known")


def loaded_step(data: Any, path: str) -> MemoryStep:
    """Return the step of its plain data."""
    made: dict[str, Callable[[dict[str, Any], str], MemoryStep]] = {
        "task": lambda d, p: TaskStep(d["task"], _images(d.get("images"), p)),
        "planning": _planning,
        "action": _action,
    }
    kind = data.get("type") if isinstance(data, dict) else None
    if kind not in made:
        raise AdapterError(f"{path} is no step of smolagents; go back to an older checkpoint")
    try:
        return made[kind](data, path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AdapterError(
            f"{path} is damaged ({type(error).__name__}: {error}); go back to an older checkpoint"
        ) from error


def _planning(data: dict[str, Any], path: str) -> PlanningStep:
    return PlanningStep(
        model_input_messages=[],
        model_output_message=loaded_message(data["answer"]),
        plan=data["plan"],
        timing=Timing(**data["timing"]),
        token_usage=_loaded_usage(data.get("token_usage")),
    )


def _action(data: dict[str, Any], path: str) -> ActionStep:
    calls = [ToolCall(**call) for call in data["tool_calls"]]
    return ActionStep(
        **{name: data.get(name) for name in _AS_THEY_ARE},
        timing=Timing(**data["timing"]),
        tool_calls=calls or None,
        error=_loaded_error(data.get("error")),
        model_output_message=loaded_message(data.get("answer")),
        observations_images=_images(data.get("images"), path),
        action_output=data.get("output"),
        token_usage=_loaded_usage(data.get("token_usage")),
    )


def message_data(message: ChatMessage | None) -> dict[str, Any] | None:
    """Return what a model said as plain data."""
    if message is None:
        return None
    return {
        "role": str(message.role.value if hasattr(message.role, "value") else message.role),
        "content": message.content,
        "tool_calls": [
            {
                "id": call.id,
                "type": call.type,
                "function": {
                    "name": call.function.name,
                    "arguments": call.function.arguments,
                    "description": call.function.description,
                },
            }
            for call in message.tool_calls or ()
        ],
        "token_usage": _usage(message.token_usage),
    }


def loaded_message(data: dict[str, Any] | None) -> ChatMessage | None:
    """Return what a model said."""
    if data is None:
        return None
    fields = {"role": data["role"], "content": data["content"], "tool_calls": data["tool_calls"]}
    return ChatMessage.from_dict(fields, token_usage=_loaded_usage(data.get("token_usage")))


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments, "id": call.id}


def _timing(timing: Timing) -> dict[str, Any]:
    return {"start_time": timing.start_time, "end_time": timing.end_time}


def _usage(usage: TokenUsage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def _loaded_usage(data: dict[str, Any] | None) -> TokenUsage | None:
    return None if data is None else TokenUsage(**data)


def _loaded_error(data: dict[str, Any] | None) -> AgentError | None:
    """Return the error of a step; made without its constructor, which would log it once more."""
    if data is None:
        return None
    kind = getattr(utils, str(data["type"]), None)
    if not (isinstance(kind, type) and issubclass(kind, AgentError)):
        kind = AgentError
    error: AgentError = kind.__new__(kind, data["message"])
    error.message = data["message"]
    return error


def _pngs(images: Any, path: str) -> list[bytes]:
    return [as_png(image, f"{path}.images") for image in images or ()]


def _images(data: Any, path: str) -> list[Any] | None:
    return [from_png(each, f"{path}.images") for each in data] if data else None
