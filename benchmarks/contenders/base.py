"""What every contender can do; the rest of a benchmark knows nothing more about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from pathlib import Path
from typing import Any

State = dict[str, Any]
MAIN = "main"


class Contender(ABC):
    """A way to keep an agent's state on disk, one checkpoint per save."""

    name: str
    durability: str
    """What an acknowledged save survives, in the words of the table."""
    requires: str
    """The module that must be installed."""
    directory: Path

    def missing(self) -> bool:
        try:
            return find_spec(self.requires) is None
        except ModuleNotFoundError:
            return True

    @abstractmethod
    async def open(self, directory: Path) -> None:
        """Open the store kept in `directory`, or make it."""

    @abstractmethod
    async def save(self, step: int, state: State, session: str = MAIN) -> None: ...

    @abstractmethod
    async def restore_newest(self, session: str = MAIN) -> Any: ...

    @abstractmethod
    async def close(self) -> None: ...

    def bytes(self) -> int:
        """The size of its files; ask after `close`, when the WAL has been folded in."""
        return sum(file.stat().st_size for file in self.directory.rglob("*") if file.is_file())


class SyncContender(Contender):
    """One that blocks, and so may also be driven from threads."""

    async def open(self, directory: Path) -> None:
        self.open_now(directory)

    async def save(self, step: int, state: State, session: str = MAIN) -> None:
        self.save_now(step, state, session)

    async def restore_newest(self, session: str = MAIN) -> Any:
        return self.restore_now(session)

    async def close(self) -> None:
        self.close_now()

    @abstractmethod
    def open_now(self, directory: Path) -> None: ...

    @abstractmethod
    def save_now(self, step: int, state: State, session: str = MAIN) -> None: ...

    @abstractmethod
    def restore_now(self, session: str = MAIN) -> Any: ...

    @abstractmethod
    def close_now(self) -> None: ...


class Lister(SyncContender):
    """One that can also list what it keeps, newest first."""

    @abstractmethod
    def timeline(self, session: str, limit: int) -> int:
        """List a session's newest checkpoints and say how many came."""

    @abstractmethod
    def recent(self, limit: int) -> int:
        """List the newest checkpoints of the whole store and say how many came."""
