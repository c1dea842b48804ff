"""What a client and each group of its verbs have in common: the runtime they work through."""

from __future__ import annotations

from typing import Generic, TypeVar

from holdfast.runtime import Runtime

R = TypeVar("R", bound=Runtime)


class VerbGroup(Generic[R]):
    """The verbs of one topic. A client has those of every topic, under the same names."""

    def __init__(self, runtime: R) -> None:
        self.runtime = runtime
        """What carries out plans; runs, workspaces and adapters are given it."""
        self._engine = runtime.engine
