"""How much work a run does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    quick: bool = False
    repeat: int = 3
    directory: Path | None = None
    """Where the stores are made; None is the system's temporary directory."""

    def pick(self, quick: int, full: int) -> int:
        return quick if self.quick else full
