"""The event loops that use a client, each with a committer of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.stores.base import Store
from holdfast.system.forks import Locked

if TYPE_CHECKING:
    import asyncio

    from holdfast.stores.sqlite.group_commit import Committer


class Loops(Locked):
    """Gives every event loop the committer that its tasks await; those of closed loops end."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._committers: dict[asyncio.AbstractEventLoop, Committer] = {}

    def _after_fork(self, in_child: bool) -> None:
        super()._after_fork(in_child)
        if in_child:  # threads are not copied, and the child has a loop of its own
            self._committers = {}

    def committer(self) -> Committer:
        """That of the running loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        found = self._committers.get(loop)
        if found is None:
            from holdfast.stores.sqlite.group_commit import Committer

            found = Committer(self._store, loop)  # type: ignore[arg-type]
            with self._lock:
                for gone in [known for known in self._committers if known.is_closed()]:
                    self._committers.pop(gone).stop()
                self._committers[loop] = found
        return found

    def close(self) -> None:
        """Commit what is queued, and end all."""
        with self._lock:
            committers, self._committers = self._committers, {}
        for committer in committers.values():
            committer.close()
