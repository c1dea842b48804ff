"""A database that one of LangGraph's own savers wrote, as it is read to be moved in."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from holdfast.adapters.langgraph.safe_reading import SealedPath, load, trusting
from holdfast.adapters.langgraph.thread_position import ThreadPosition
from holdfast.errors import (
    AdapterError,
    InvalidArgumentError,
    StoreFormatError,
    UnknownTypeError,
)

PAGE = 20
"""Checkpoints that are looked at in one view of the source."""


@dataclass(frozen=True, slots=True)
class SourceCheckpoint:
    """A checkpoint that a source has; what it holds is not read yet."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent: str | None = None

    def __post_init__(self) -> None:
        names = (*self.key, self.parent or "")
        if not all(type(name) is str for name in names):
            raise StoreFormatError(f"a row is no checkpoint of LangGraph's: {names!r:.200}")

    @property
    def key(self) -> tuple[str, str, str]:
        return self.thread_id, self.namespace, self.checkpoint_id

    @property
    def position(self) -> ThreadPosition:
        """Where it is put: in its namespace, after its parent."""
        return ThreadPosition(self.thread_id, self.namespace, self.parent)

    def refused(self, reason: object) -> AdapterError:
        """Return the error that this one cannot be moved."""
        place = f" in {self.namespace!r}" if self.namespace else ""
        return AdapterError(
            f"checkpoint {self.checkpoint_id!r} of thread {self.thread_id!r}{place} cannot be "
            f"moved: {reason}. What came before it is kept; run again to go on"
        )


@dataclass(frozen=True, slots=True)
class SourceWrite:
    """A write of a task as the source keeps it."""

    task_id: str
    task_path: str
    index: int
    channel: str
    tag: str
    data: bytes

    def __post_init__(self) -> None:
        names = (self.task_id, self.task_path, self.channel, self.tag)
        if not all(type(name) is str for name in names) or type(self.index) is not int:
            raise StoreFormatError(f"a write is no write of LangGraph's: {names!r:.200}")


class Source(ABC):
    """A database that one of LangGraph's savers wrote. It is only read."""

    def __init__(self, load_value: LoadValue) -> None:
        self._load_value = load_value

    @abstractmethod
    def view(self) -> AbstractContextManager[None]:
        """Make all reads see the source as it was at one moment, while this is open."""

    @abstractmethod
    def count(self) -> int:
        """Return how many checkpoints there are."""

    @abstractmethod
    def page(self, after: SourceCheckpoint | None) -> list[SourceCheckpoint]:
        """Return the next checkpoints by thread, namespace and age, the oldest first."""

    @abstractmethod
    def read(self, found: SourceCheckpoint) -> tuple[Any, Any]:
        """Return a checkpoint and its metadata."""

    @abstractmethod
    def writes(self, found: SourceCheckpoint) -> list[SourceWrite]:
        """Return what tasks wrote on a checkpoint, as it is kept."""

    @abstractmethod
    def close(self) -> None:
        """Leave the source."""

    def load(self, found: SourceCheckpoint, tag: str, data: bytes, path: str) -> Any:
        """Return a value of a checkpoint, at this path of it; never less than was written."""
        if type(tag) is not str or not isinstance(data, (bytes, type(None))):
            raise found.refused(
                f"{path} is kept as {type(data).__name__}, and not as LangGraph does"
            )
        with _lost_types() as lost:
            try:
                value = self._load_value(tag, data or b"", SealedPath(path))
            except UnknownTypeError as error:
                raise found.refused(error) from error
            except Exception as error:  # whatever a serializer that is not ours may raise
                raise found.refused(
                    f"it cannot be read ({error}); if it was written with a serializer of your "
                    "own, call move_in(..., serde=that)"
                ) from error
        if lost:
            raise found.refused(f"{path} holds a {lost[0]}")
        return value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@contextmanager
def _lost_types() -> Iterator[list[str]]:
    """Tell which classes LangGraph's serializer does not revive: it gives their fields instead."""
    seen: list[SerdeEvent] = []
    lost: list[str] = []
    here = threading.get_ident()

    def listen(event: SerdeEvent) -> None:
        if threading.get_ident() == here:
            seen.append(event)

    unregister = register_serde_event_listener(listen)
    try:
        yield lost
    finally:
        unregister()
    lost += [
        f"{event['module']}.{event['name']}, which the serializer does not allow; "
        "give move_in a serde whose allowed_msgpack_modules name it"
        for event in seen
        if event["kind"] != "msgpack_unregistered_allowed"
    ]


LoadValue = Callable[[str, bytes, SealedPath], Any]
"""Returns the value of a serializer's tag and bytes, which belong at a path."""


def loader_of(serde: SerializerProtocol | None, trust: Collection[str | type] = ()) -> LoadValue:
    """Return how a source is read: strictly but for what is trusted, or by the user's serde."""
    if serde is None:
        return trusting(trust).load
    if trust:
        raise InvalidArgumentError(
            "give serde= or trust=, not both: a serializer says itself what it allows "
            "(allowed_msgpack_modules)"
        )
    return partial(load, serde)
