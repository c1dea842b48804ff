"""One file per checkpoint (JSON indented, to be readable), renamed into place, never fsynced."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import MAIN, State, SyncContender


class _Files(SyncContender):
    durability = "none"

    def __init__(self, name: str) -> None:
        self.name = name
        self._heads: dict[str, Path] = {}

    def open_now(self, directory: Path) -> None:
        self.directory = directory

    def save_now(self, step: int, state: State, session: str = MAIN) -> None:
        target = self.directory / f"{session}-{step:06d}"
        aside = target.with_suffix(".tmp")
        aside.write_bytes(self._dump(state))
        os.replace(aside, target)
        self._heads[session] = target

    def restore_now(self, session: str = MAIN) -> Any:
        return self._load(self._heads[session].read_bytes())

    def close_now(self) -> None:
        """Nothing is held open."""

    def _dump(self, state: State) -> bytes:
        raise NotImplementedError

    def _load(self, data: bytes) -> Any:
        raise NotImplementedError


class PickleFile(_Files):
    requires = "pickle"

    def _dump(self, state: State) -> bytes:
        return pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)

    def _load(self, data: bytes) -> Any:
        return pickle.loads(data)


class JsonFile(_Files):
    requires = "json"

    def _dump(self, state: State) -> bytes:
        return json.dumps(state, indent=2).encode()

    def _load(self, data: bytes) -> Any:
        return json.loads(data)
