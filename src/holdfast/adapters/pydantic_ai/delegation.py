"""Runs that a tool of another run makes: each has a session of its own, told by the tool's call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydantic_ai.usage import RunUsage


class OuterCall:
    """The call of a tool in which a run is made."""

    def __init__(self, session_id: str, call_key: str, usage: RunUsage) -> None:
        self.session_id = session_id
        self._call_key = call_key
        self._usage = usage
        self._runs = 0
        self.used: RunUsage | None = None
        """What runs made in it have used, of those that count with the outer one."""

    def next_session(self) -> str:
        """Return the session of the next run that is made in this call."""
        self._runs += 1
        name = f"{self.session_id}.{self._call_key}"
        return name if self._runs == 1 else f"{name}.{self._runs}"

    def counts(self, usage: RunUsage) -> bool:
        """Return whether a run counts what it uses together with the outer one."""
        return usage is self._usage

    def add(self, used: RunUsage) -> None:
        """Know what a run has used that counts with the outer one."""
        self.used = used if self.used is None else self.used + used


_outer: ContextVar[OuterCall | None] = ContextVar("holdfast_pydantic_ai_call", default=None)


def outer_call() -> OuterCall | None:
    """Return the call of a tool that this is made in, if it is."""
    return _outer.get()


@contextmanager
def inside(call: OuterCall) -> Iterator[Any]:
    """Have runs that are made meanwhile be of this call."""
    token = _outer.set(call)
    try:
        yield
    finally:
        _outer.reset(token)
