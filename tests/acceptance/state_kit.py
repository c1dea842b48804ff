"""Objects with state, of every kind."""

import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast import (
    Checkpointable,
)


class Memory(Checkpointable):
    def __init__(self, *facts: str) -> None:
        self.facts = list(facts)
        self._index = {fact: at for at, fact in enumerate(facts)}


class Agent(Checkpointable):
    def __init__(self) -> None:
        self.messages = [{"role": "user", "content": "hello"}]
        self.memory = Memory("water is wet")
        self.calls = 0
        self._lock = threading.Lock()


class Bag(Checkpointable):
    """Holds one value, whatever it is."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Frozen(Checkpointable):
    name: str
    tags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slotted(Checkpointable):
    name: str
    inner: Any = None
    _secret: int = 0


class WithSlots(Checkpointable):
    __slots__ = ("later", "name")
    name: str
    later: str

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass
class Plain:
    """A dataclass that is no Checkpointable, but may hold one."""

    inner: Any
