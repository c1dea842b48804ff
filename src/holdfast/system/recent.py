"""A memory of bounded size, for what is only remembered to be quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from holdfast.system.forks import Locked

K = TypeVar("K")
V = TypeVar("V")


class Recent(Locked, Generic[K, V]):
    """A dict that forgets what was put in longest ago."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._items: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return what was put in under a key; None if nothing, or if it was forgotten."""
        return self._items.get(key)

    def put(self, key: K, value: V) -> None:
        """Remember a value, which is now the newest."""
        with self._lock:
            self._items.pop(key, None)
            self._items[key] = value
            if len(self._items) > self._size:
                del self._items[next(iter(self._items))]

    def take(self, key: K) -> V | None:
        """Return what was put in under a key, and forget it."""
        return self._items.pop(key, None)

    def find(self, wanted: Callable[[V], bool]) -> V | None:
        """Return the oldest value that is wanted; None if none is."""
        with self._lock:
            return next((value for value in self._items.values() if wanted(value)), None)

    def drop(self, wanted: Callable[[K, V], bool]) -> None:
        """Forget all that are wanted gone."""
        with self._lock:
            for key in [key for key, value in self._items.items() if wanted(key, value)]:
                del self._items[key]
