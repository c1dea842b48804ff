"""Modules, optimizers and schedulers of torch in an agent: kept by their own ``state_dict``.

They hold functions and refer to each other, so none is made from stored data: a state is loaded
into the one that stands in its place.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

from holdfast.core.kinds.torch_values import is_live
from holdfast.core.state_tags import CLASS, DEFAULT_VERSION, VERSION, State
from holdfast.errors import SchemaMigrationError, SerializationError

MODULE, OPTIMIZER, SCHEDULER = "torch.nn.Module", "torch.optim.Optimizer", "torch.optim.LRScheduler"
_WORDS = {MODULE: "module", OPTIMIZER: "optimizer", SCHEDULER: "scheduler"}


def live_class(value: object) -> str | None:
    """Return the tag of a live object of torch, or None for anything else."""
    if not is_live(type(value)):
        return None
    torch = sys.modules["torch"]
    if isinstance(value, torch.nn.Module):
        return MODULE
    return OPTIMIZER if isinstance(value, torch.optim.Optimizer) else SCHEDULER


def live_state(value: Any, tag: str) -> State:
    """Return what is kept of a live object."""
    return {CLASS: tag, VERSION: DEFAULT_VERSION, "state": value.state_dict()}


def is_live_state(state: State) -> bool:
    """Return whether a tagged dict is what ``live_state`` gave."""
    return state[CLASS] in _WORDS and state.keys() == {CLASS, VERSION, "state"}


def check_place(state: State, held: object, path: str) -> None:
    """Refuse a state where no object stands that could take it."""
    wanted = state[CLASS]
    if live_class(held) != wanted:
        raise SerializationError(
            path,
            f"is the state of a {_WORDS[wanted]} of torch, and none stands there now: set the "
            "attribute to one before loading",
        )


def load_live(held: Any, state: State, strict: bool, path: str) -> None:
    """Load a state in place, as torch does it."""
    try:
        if state[CLASS] == MODULE:
            held.load_state_dict(state["state"], strict=strict)
        else:
            held.load_state_dict(state["state"])
    except (RuntimeError, ValueError, KeyError) as error:
        raise SchemaMigrationError(
            f"{path}: the state does not fit {type(held).__name__}: {error}"
        ) from error


def keep_live(held: Any) -> Callable[[], None]:
    """Remember the state of a live object; the function given back puts it back."""
    before = copy.deepcopy(held.state_dict())
    return lambda: held.load_state_dict(before)
