"""What holds for all objects of a state while one is taken or loaded; copying values meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from holdfast.core.codec import pack, unpack

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StateOptions:
    """A context variable carries it, since a user's own ``state_dict`` may stand in between."""

    allow_pickle: bool = False
    exact: bool = False
    """Attributes that the state does not have are removed, as a rollback has to."""


_PLAIN = StateOptions()
_options: ContextVar[StateOptions] = ContextVar("holdfast_state_options", default=_PLAIN)


def options() -> StateOptions:
    """Return what holds now."""
    return _options.get()


@contextmanager
def using(**changes: bool) -> Iterator[None]:
    """Change what holds, for a while."""
    token = _options.set(replace(_options.get(), **changes))
    try:
        yield
    finally:
        _options.reset(token)


def packed(value: Any) -> bytes:
    """Return the bytes of a value, pickled in parts where that is allowed."""
    return pack(value, allow_pickle=options().allow_pickle)


def unpacked(data: bytes) -> Any:
    """Return the value of packed bytes."""
    return unpack(data, allow_pickle=options().allow_pickle)


def isolated(value: T) -> T:
    """Return a copy that shares nothing with the value, types kept exactly."""
    copy: T = unpacked(packed(value))
    return copy
