"""What tests of CheckpointManager share: agents, and every backend."""

import functools
import threading
from typing import Any

from holdfast import Checkpointable, CheckpointManager


class Memory(Checkpointable):
    def __init__(self) -> None:
        self.facts: list[str] = []


class Agent(Checkpointable):
    def __init__(self, step: int = 0) -> None:
        self.step = step
        self.seen: set[tuple[int, str]] = {(1, "a")}
        self.memory = Memory()
        self._lock = threading.Lock()


class Tool(Checkpointable):
    """Has a value that only pickle can keep."""

    def __init__(self) -> None:
        self.call: Any = functools.partial(max, 3)


BACKENDS = {
    "memory": lambda path: CheckpointManager("memory"),
    "file-json": lambda path: CheckpointManager("file", path / "states"),
    "file-pickle": lambda path: CheckpointManager("file", str(path / "states"), fmt="pickle"),
    "sqlite": lambda path: CheckpointManager("sqlite", path / "states.db"),
    "url": lambda path: CheckpointManager(f"sqlite:///{path}/url.db"),
}
ON_DISK = [name for name in BACKENDS if name != "memory"]
