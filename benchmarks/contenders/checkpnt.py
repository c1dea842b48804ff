"""checkpnt's SQLite client. It sets WAL and leaves `synchronous` as SQLite has it: FULL."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import MAIN, Contender, State


class Checkpnt(Contender):
    requires = "checkpnt.backends.sqlite"
    durability = "full"

    def __init__(self, name: str) -> None:
        self.name = name
        # The client has no `latest`, so a user keeps the id of the newest checkpoint.
        self._heads: dict[str, str] = {}

    async def open(self, directory: Path) -> None:
        self.directory = directory
        checkpnt = import_module("checkpnt")
        self._framework = checkpnt.Framework.LANGGRAPH
        self._client = self._client_in(checkpnt, directory)
        # It connects on first use; connect now, so that no timed call pays for it.
        await self._client.timeline("agent", "none", limit=1)

    def _client_in(self, checkpnt: Any, directory: Path) -> Any:
        return checkpnt.Client.sqlite(str(directory / "checkpnt.db"))

    async def save(self, step: int, state: State, session: str = MAIN) -> None:
        self._heads[session] = await self._client.save(
            agent_id="agent",
            framework=self._framework,
            execution_state=state,
            session_id=session,
            parent_id=self._heads.get(session),
            step_index=step,
        )

    async def restore_newest(self, session: str = MAIN) -> Any:
        return (await self._client.restore(self._heads[session])).execution_state

    async def close(self) -> None:
        await self._client.close()
