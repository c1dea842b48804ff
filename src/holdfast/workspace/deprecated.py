"""The async forms that a workspace had up to 0.3, which say what replaces them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")


def warn(old: str, new: str) -> None:
    """Warn whoever called the caller of this that there is a better way."""
    warnings.warn(f"{old} is deprecated: {new}", DeprecationWarning, stacklevel=3)


def awaited(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return the async form of a method, which does the same in a thread."""
    name = method.__name__

    @wraps(method)
    def start(self: S, /, *args: P.args, **options: P.kwargs) -> Coroutine[Any, Any, T]:
        warn(f"Workspace.a{name}", f"open an AsyncWorkspace and await workspace.{name}(...)")
        return asyncio.to_thread(method, self, *args, **options)

    start.__name__ = f"a{name}"
    start.__doc__ = f"Do the same as ``{name}`` without blocking the event loop; deprecated."
    return start
