"""What the children do that test_crash kills: save without end, and tell of every save."""

import asyncio
from dataclasses import replace
from typing import Any

from holdfast import Client, SyncClient
from holdfast.testing import crash_points
from holdfast.testing.samples import make_commit
from holdfast.verbs.notes import NoteBatch
from tests.integration.fork_server import tell

AGENT = "agent"
NOTED = "noted"
LOG = "/log"
TASKS = 8


def state_at(session: str, step: int) -> dict[str, Any]:
    """The state of a session at a step: it grows, and a little of it changes."""
    return {
        "messages": [f"{session} {i}: " + "said and done " * (20 + i % 7) for i in range(step + 1)],
        "plan": {"step": step, "notes": f"at {step} " * 200},
        "kept": (step, b"\x00\xff"),
    }


def save_until_killed(url: str, point: str | None = None, time: int = 1) -> None:
    """One session, goes on where the one before was killed; cleans up in between."""
    if point is not None:
        crash_points.kill_at(point, time)
    with SyncClient.open(url) as client:
        head = client.latest(AGENT, "main")
        step = 0 if head is None else head.step_index + 1
        while True:
            saved = client.save(
                AGENT, execution_state=state_at("main", step), session_id="main", step_index=step
            )
            tell([saved, "main", step])
            if step % 5 == 4:
                scratch = client.save("scratch", execution_state=state_at("scratch", step))
                client.expire(scratch)
                client.gc(grace_seconds=0)
            step += 1


def save_with_notes_until_killed(url: str, point: str | None = None, time: int = 1) -> None:
    """Every step is saved with notes in two scopes; then come notes of two scopes, and of one."""
    if point is not None:
        crash_points.kill_at(point, time)
    with SyncClient.open(url) as client:
        head = client.latest(AGENT, NOTED)
        parent, step = (None, 0) if head is None else (head.checkpoint_id, head.step_index + 1)
        while True:
            commit = make_commit(
                state_at(NOTED, step),
                agent_id=AGENT,
                session_id=NOTED,
                parent_id=parent,
                step_index=step,
            )
            parent = commit.info.checkpoint_id
            added = _notes(client, parent, "with", step)
            chunks = {**commit.chunks, **added.chunks}
            client.store.commit(replace(commit, chunks=chunks, notes=added.notes))
            tell([parent, NOTED, step])
            client.runtime.run(_notes(client, parent, "after", step).write())
            tell([parent, "after", step])
            alone = NoteBatch()
            alone.add(client.runtime.engine, LOG, f"alone {step}", noted_at(parent, step))
            client.runtime.run(alone.write())
            tell([parent, "alone", step])
            if step % 5 == 4:
                client.gc(grace_seconds=0)
            step += 1


def noted_at(checkpoint_id: str, step: int) -> dict[str, Any]:
    """What is written down about a step."""
    return {"of": checkpoint_id, "step": step, "said": [f"{i} " * 200 for i in range(40)]}


def _notes(client: SyncClient, checkpoint_id: str, when: str, step: int) -> NoteBatch:
    written = NoteBatch()
    for scope, key in ((checkpoint_id, when), (LOG, f"{when} {step}")):
        written.add(client.runtime.engine, scope, key, noted_at(checkpoint_id, step))
    return written


def save_in_tasks_until_killed(url: str) -> None:
    """Many sessions at once, committed in groups."""

    async def work(client: Client, session: str) -> None:
        head = await client.latest(AGENT, session)
        step = 0 if head is None else head.step_index + 1
        while True:
            saved = await client.save(
                AGENT, execution_state=state_at(session, step), session_id=session, step_index=step
            )
            tell([saved, session, step])
            step += 1

    async def main() -> None:
        async with Client.open(url) as client:
            await asyncio.gather(*(work(client, f"task-{i}") for i in range(TASKS)))

    asyncio.run(main())
