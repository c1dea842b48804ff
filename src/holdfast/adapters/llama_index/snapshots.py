"""The context of a workflow as it is kept: plain data, in which events can be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from workflows import Context, Workflow
from workflows.context.serializers import BaseSerializer, JsonSerializer
from workflows.context.state_store import InMemoryStateStore, StateStore, encode_state_tree
from workflows.runtime.types.internal_state import BrokerState

from holdfast.adapters.llama_index.event_classes import is_instance, with_own_names
from holdfast.errors import AdapterError, SerializationError

# Where the framework's form of a context holds events, each as text that a serializer made.
_EVENTS = frozenset(
    {
        "event",
        "events",
        "resolved_event",
        "bound_events",
        "buffer",
        "collected_events",
        "static_collect_events",
    }
)


def kept_form(
    state: BrokerState, store: StateStore[Any] | None, serializer: BaseSerializer
) -> dict[str, Any]:
    """Return what is kept of a workflow: its queues, waiters, events and state."""
    try:
        context: dict[str, Any] = state.to_serialized(serializer).model_dump(mode="json")
        context["state"] = {} if store is None else _kept_state(store, serializer)
    except ValueError as error:  # says which key or event
        raise SerializationError("$.context", f"{error}; {_remedy(serializer)}") from error
    return {"context": _with_events(context, _opened)}


def _kept_state(store: StateStore[Any], serializer: BaseSerializer) -> dict[str, Any]:
    kept: dict[str, Any] = store.to_dict(serializer)
    if type(serializer) is JsonSerializer and isinstance(store, InMemoryStateStore):
        kept["state_data"] = encode_state_tree(store.checkpoint().state, serializer)
    return kept


def _remedy(serializer: BaseSerializer) -> str:
    if type(serializer) is JsonSerializer:
        return "keep JSON-like data and pydantic models, or give the runtime a serializer of yours"
    return f"this is what {type(serializer).__name__} says of it"


def context_of(workflow: Workflow, kept: Any, serializer: BaseSerializer) -> Context[Any]:
    """Return the context that was kept, ready to run on."""
    given = kept.get("context") if isinstance(kept, dict) else None
    if not isinstance(given, dict):
        raise AdapterError("its state is not that of a LlamaIndex workflow (no $.context)")
    _check_steps(workflow, given)
    if isinstance(serializer, JsonSerializer):
        given = with_own_names(given, workflow)
    try:
        with serializer.validation_context():
            return Context.from_dict(workflow, _with_events(given, _closed), serializer=serializer)
    except Exception as error:  # of whichever class of the framework, pydantic or the user's
        raise AdapterError(
            f"{type(workflow).__name__} cannot take it up: {error} "
            "(classes of events and of the state that the workflow does not declare are allowed "
            "by HoldfastRuntime(serializer=JsonSerializer(allowed_types=[...])))"
        ) from error


def is_running(kept: Any) -> bool:
    """Whether the run that was kept had not ended."""
    return bool(kept["context"].get("is_running"))


def _check_steps(workflow: Workflow, context: dict[str, Any]) -> None:
    """Refuse to lose work of a step that the workflow does not have (any more)."""
    steps, workers = workflow._get_steps(), context.get("workers", {})
    if not isinstance(workers, dict) or not all(
        isinstance(each, dict) for each in workers.values()
    ):
        raise AdapterError("$.context.workers is not that of a LlamaIndex workflow")
    for name, worker in workers.items():
        work = ("queue", "in_progress", "collected_events", "collected_waiters")
        if name not in steps and any(worker.get(kind) for kind in work):
            raise AdapterError(
                f"it has work for a step {name!r}, which {type(workflow).__name__} does not have: "
                "resume it with the workflow that it was begun with"
            )


def _with_events(value: Any, change: Callable[[Any], Any], inside: bool = False) -> Any:
    """Return a context in which each event was changed."""
    if isinstance(value, dict) and not (inside and change is _closed and is_instance(value)):
        return {
            key: part
            if key == "state" and not inside
            else _with_events(part, change, inside or key in _EVENTS)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_with_events(part, change, inside) for part in value]
    return change(value) if inside else value


def _opened(text: Any) -> Any:
    """Return an event as data, if it is text of JSON; anything else as it is."""
    if not isinstance(text, str):
        return text
    try:
        value = json.loads(text)
    except ValueError:  # a serializer of the user's own
        return text
    return value if isinstance(value, dict) and is_instance(value) else text


def _closed(event: Any) -> Any:
    return json.dumps(event) if isinstance(event, dict) else event
