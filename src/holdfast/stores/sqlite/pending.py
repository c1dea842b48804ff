"""Commits that wait to be carried out together."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.stores.base import Commit, NotesOnly


class Pending:
    """A commit in a queue, and what became of it."""

    __slots__ = ("commit", "done", "error", "on_settled")

    def __init__(
        self, commit: Commit | NotesOnly, on_settled: Callable[[Pending], None] | None = None
    ) -> None:
        self.commit = commit
        self.done = False
        self.error: Exception | None = None
        self.on_settled = on_settled

    def settle(self, error: Exception | None = None) -> None:
        """Say that it is done, or that it failed if it had not already."""
        self.error = self.error or error
        self.done = True
        if self.on_settled is not None:
            self.on_settled(self)
