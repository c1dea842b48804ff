"""Forks of a run, and taking one over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import InvalidArgumentError, RunError
from holdfast.model import Checkpoint, CheckpointInfo, checked_name
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.session.core import SESSION, Core
from holdfast.session.exploration import Outcome
from holdfast.session.log import Entry, Log, turned
from holdfast.stores.base import Query
from holdfast.system.crash_points import reach
from holdfast.verbs import save
from holdfast.verbs.read import get_info, restore


def forked(core: Core, count: int, names: Sequence[str] | None) -> Plan[list[str]]:
    """New sessions that begin where the run stands; returns their names."""
    if names is None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidArgumentError(f"fork takes a number from 1, not {count!r}")
        names = [str(number) for number in range(1, count + 1)]
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise InvalidArgumentError(f"names are a list of names, not {names!r}")
    here = yield from core.checkpoint("fork", block=core.block)
    sessions = []
    for name in names:
        session_id = yield from _free(core, f"{core.options.session_id}.{name}")
        yield from save.fork(core.engine, here, session_id, None, None)
        reach("run:forked")
        sessions.append(session_id)
    return sessions


def _free(core: Core, wanted: str) -> Plan[str]:
    """A name for a session that is not taken."""
    number, name = 1, wanted
    while (yield from steps.query(Query(agent_id=core.options.agent_id, session_id=name, limit=1))):
        number += 1
        name = f"{wanted}-{number}"
    return name


Adoptable = str | Checkpoint | CheckpointInfo | Outcome
"""The name of a session, the id of a checkpoint, a checkpoint, or what came of a strategy."""


def adopted(core: Core, other: Adoptable) -> Plan[str]:
    """Go on from the head of another session, or from a checkpoint, as this session's own."""
    name = _name_of(other)
    query = Query(agent_id=core.options.agent_id, session_id=name, limit=1)
    found = yield from steps.query(query)
    info = found[0] if found else (yield from get_info(name))
    if (info.agent_id, info.session_id) == core.session:
        raise RunError("a run cannot adopt itself: use rollback to go back")
    theirs = yield from restore(core.engine, info.checkpoint_id, True, core.options.on_unknown)
    yield from core.checkpoint("before adopting", block=core.block)
    reach("run:adopting")
    own, tasks = core.log, core.tasks
    core.take(theirs)
    core.log = own
    core.log.extend(_joined(own, Log(theirs.effects)))
    for task in core.entered:  # the program is in them, and goes on there
        record = core.tasks.again(tasks.get(task))
        if record.status != "in_progress":
            core.tasks.put(record.begun())
    core.turns += 1
    core.log.extend([turned([SESSION, *map(core.block_of, core.entered)])])
    if core.files is not None and theirs.workspace is not None:
        core.files.fall_behind()
    now: str = yield from core.checkpoint(
        f"adopted {info.session_id}",
        parent_id=info.checkpoint_id,
        workspace=theirs.workspace,
        tags={"adopted": info.session_id},
    )
    if core.files is not None and theirs.workspace is not None:
        yield from core.files.put_back(theirs.workspace)
    return now


def _name_of(other: Adoptable) -> str:
    if isinstance(other, (Checkpoint, CheckpointInfo)):
        return other.checkpoint_id
    if isinstance(other, Outcome):
        return other.session_id
    return checked_name("what is adopted", other)


def _joined(own: Log, theirs: Log) -> list[Entry]:
    """What another branch did, for the log of this one.

    A resumed program does not make it again, so it is not of any block here.
    """
    joined: list[Entry] = []
    for effect in theirs.effects:
        known = own.get(effect.id)
        if known is None:
            joined.append(replace(effect, task=f"adopted:{effect.task or ''}").as_dict())
        elif effect.compensated and not known.compensated:
            joined.append({"undone": effect.id})
    return joined


def workspace_of(core: Core) -> Plan[Any]:
    """The files as the head of the run has them."""
    kept = yield from restore(core.engine, core.at.checkpoint_id, True, "raw")
    return kept.workspace
