"""What the processes of test_servers_under_fire do: save and take notes, whatever the server does.

Each saver is an agent of its own. Its sessions are short, so that states stay small.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from holdfast import StoreConnectionError, SyncClient
from holdfast.testing import crash_points
from holdfast.testing.samples import make_commit
from holdfast.verbs.notes import NoteBatch
from tests.integration.crash_jobs import noted_at, state_at
from tests.integration.fork_server import tell

T = TypeVar("T")

STEPS = 25
"""How many checkpoints a session has."""
SAVED, NOTED, FAILED, COLLECTED = "saved", "noted", "failed", "collected"


def log_of(agent: str) -> str:
    """The name under which an agent takes notes, beside those at its checkpoints."""
    return f"/log {agent}"


class Head(NamedTuple):
    """Where a saver stands."""

    checkpoint_id: str | None
    session: int
    step: int


class Saver:
    """Saves step by step through one client; what the store acknowledged is reported at once."""

    def __init__(self, client: SyncClient, agent: str, report: Callable[[Any], object]) -> None:
        self._client = client
        self._agent = agent
        self._report = report
        self._head = patiently(self._newest)

    def step(self) -> None:
        """Take the next step, however often the server fails meanwhile."""
        head = self._head = patiently(self._save, self._failed)
        self._report([SAVED, head.checkpoint_id, head.step])
        try:
            if head.step % 3 == 0:
                self._client.runtime.run(self._notes(head, "after").write())
                self._report([NOTED, head.checkpoint_id, "after"])
            if head.step % 5 == 4:
                garbage = self._client.save("scratch", execution_state=state_at(self._agent, STEPS))
                self._client.expire(garbage)
        except StoreConnectionError:
            self._failed()

    def _failed(self) -> None:
        """Nobody knows whether what failed was done: go on from what there is."""
        self._report([FAILED, self._agent, 0])
        self._head = patiently(self._newest)

    def _newest(self) -> Head:
        for info in self._client.find(agent_id=self._agent, limit=1):
            return Head(info.checkpoint_id, int(info.session_id), info.step_index)
        return Head(None, 0, -1)

    def _save(self) -> Head:
        parent, session, step = self._head
        if step + 1 == STEPS:
            parent, session, step = None, session + 1, -1
        step += 1
        if step % 4 == 3:
            return self._save_with_notes(parent, session, step)
        saved = self._client.save(
            self._agent,
            execution_state=state_at(self._agent, step),
            session_id=str(session),
            parent_id=parent,
            step_index=step,
        )
        return Head(saved, session, step)

    def _save_with_notes(self, parent: str | None, session: int, step: int) -> Head:
        commit = make_commit(
            state_at(self._agent, step),
            agent_id=self._agent,
            session_id=str(session),
            parent_id=parent,
            step_index=step,
        )
        head = Head(commit.info.checkpoint_id, session, step)
        added = self._notes(head, "with")
        chunks = {**commit.chunks, **added.chunks}
        self._client.store.commit(replace(commit, chunks=chunks, notes=added.notes))
        self._report([NOTED, head.checkpoint_id, "with"])
        return head

    def _notes(self, head: Head, when: str) -> NoteBatch:
        """One at the checkpoint and one in the log: both are there, or none."""
        assert head.checkpoint_id is not None
        value = noted_at(head.checkpoint_id, head.step)
        written = NoteBatch()
        written.add(self._client.runtime.engine, head.checkpoint_id, when, value)
        key = f"{when} {head.checkpoint_id}"
        written.add(self._client.runtime.engine, log_of(self._agent), key, value)
        return written


def patiently(work: Callable[[], T], failed: Callable[[], object] = lambda: None) -> T:
    """Do it again while the server cannot be reached; no other error is expected.

    The test has a limit, which follows its progress.
    """
    while True:
        try:
            return work()
        except StoreConnectionError:
            time.sleep(0.02)
            failed()


def save_until_killed(url: str, agent: str, point: str | None = None, time: int = 1) -> None:
    """Go on where the one before was killed."""
    with patiently(lambda: SyncClient.open(url)) as client:
        saver = Saver(client, agent, tell)
        if point is not None:
            crash_points.kill_at(point, time)
        while True:
            saver.step()


def save_until_over(url: str, agent: str, over: str) -> None:
    """Live through everything with one client, which has to work to the end."""
    with patiently(lambda: SyncClient.open(url)) as client:
        saver = Saver(client, agent, tell)
        while not os.path.exists(over):
            saver.step()
        for _ in range(3):
            saver.step()


def collect_until_killed(url: str) -> None:
    """Collect garbage that was just made, over and over."""
    with patiently(lambda: SyncClient.open(url)) as client:
        while True:
            collected = patiently(lambda: client.gc(grace_seconds=0))
            tell([COLLECTED, "", collected.chunks])
