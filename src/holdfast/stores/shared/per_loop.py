"""What each event loop has of its own: clients and pools that belong to the loop they were made on.

A store is used by any number of loops, one after the other or in threads side by side. Each gets
its own resource when it first asks; that of a loop that was closed is ended when another comes; a
fork leaves all of them to the parent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.system.forks import Locked

if TYPE_CHECKING:
    import asyncio

R = TypeVar("R")


class PerLoop(Locked, Generic[R]):
    """Resources by event loop.

    ``make`` makes that of the running loop, or raises where it is too late for one. ``end`` is
    called with that of a closed loop, in any thread. ``leave`` is called in a forked child, where
    what was copied is the parent's.
    """

    def __init__(
        self,
        make: Callable[[], R],
        end: Callable[[R], object] = lambda resource: None,
        leave: Callable[[R], object] = lambda resource: None,
    ) -> None:
        super().__init__()
        self._make = make
        self._end = end
        self._leave = leave
        self._held: dict[asyncio.AbstractEventLoop, R] = {}

    def _after_fork(self, in_child: bool) -> None:
        super()._after_fork(in_child)
        if in_child:
            held, self._held = self._held, {}
            for resource in held.values():
                self._leave(resource)

    def get(self) -> R:
        """Return that of the running loop, made now if it has none."""
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            return self._held[loop]
        except KeyError:
            pass
        with self._lock:
            made = self._make()
            gone = [self._held.pop(known) for known in list(self._held) if known.is_closed()]
            self._held[loop] = made
        for resource in gone:
            self._end(resource)
        return made

    def find(self) -> R | None:
        """Return that of the running loop, or None if it never asked."""
        import asyncio

        return self._held.get(asyncio.get_running_loop())

    def drop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Forget that of a loop, which has seen to its end itself."""
        self._held.pop(loop, None)

    def take_all(self) -> list[R]:
        """Return the resources of all loops, for the caller to end."""
        with self._lock:
            held, self._held = self._held, {}
        return list(held.values())
