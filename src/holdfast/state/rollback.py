"""Try something with an agent; if it fails, the agent is as it was before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from holdfast.core.state_tags import State
from holdfast.state.checkpointable import Checkpointable
from holdfast.state.options import using
from holdfast.state.save_queue import PendingSave

if TYPE_CHECKING:
    from holdfast.state.manager import CheckpointManager


class Rollback:
    """Saves on entry; on an exception puts the agent back in place and lets the exception pass."""

    def __init__(self, manager: CheckpointManager, key: str, agent: Checkpointable) -> None:
        self.manager = manager
        self.key = key
        self.agent = agent
        self.checkpoint_id = ""
        """The checkpoint saved on entry."""
        self._entered: list[tuple[str, State]] = []

    def __enter__(self) -> Self:
        pending = self.manager.prepare(self.key, self.agent)
        return self._enter(pending, pending.write())

    async def __aenter__(self) -> Self:
        pending = self.manager.prepare(self.key, self.agent)
        return self._enter(pending, await asyncio.to_thread(pending.write))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        checkpoint_id, state = self._entered.pop()
        if kind is not None:
            self._put_back(state)
            self._follow(checkpoint_id, state)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        checkpoint_id, state = self._entered.pop()
        if kind is not None:
            self._put_back(state)
            await asyncio.to_thread(self._follow, checkpoint_id, state)

    def _enter(self, pending: PendingSave, checkpoint_id: str) -> Self:
        self.checkpoint_id = checkpoint_id
        self._entered.append((checkpoint_id, pending.state))
        return self

    def _put_back(self, state: State) -> None:
        with using(exact=True, allow_pickle=self.manager.allow_pickle):
            self.agent.load_state_dict(state)

    def _follow(self, checkpoint_id: str, state: State) -> None:
        """Where the block saved too, make what was rolled back to the newest checkpoint again."""
        newest = self.manager.history(self.key, 1)
        if newest and newest[0]["id"] != checkpoint_id:
            self.manager.write(
                self.key, state, parent_id=checkpoint_id, rolled_back_to=checkpoint_id
            )
