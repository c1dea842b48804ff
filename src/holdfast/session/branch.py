"""Forks of a run, and taking one over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidArgumentError, RunError
from holdfast.model import Checkpoint, CheckpointInfo, checked_name
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.session.exploration import Outcome
from holdfast.session.files import Files
from holdfast.session.open_session import OpenSession
from holdfast.session.options import SessionOptions
from holdfast.stores.base import Query
from holdfast.system.crash_points import reach
from holdfast.verbs import save
from holdfast.verbs.read import get_info, restore


@dataclass(frozen=True)
class Fork:
    """A session that was forked, to be opened: its options, and its own copy of the files."""

    options: SessionOptions
    files: Files | None


def fork(
    session: OpenSession,
    count: int,
    names: Sequence[str] | None,
    paths: Sequence[str | Path] | None,
) -> Plan[list[Fork]]:
    """Make new sessions that begin where one stands, each with files of its own."""
    if paths is not None and len(paths) != (count if names is None else len(names)):
        raise InvalidArgumentError("give a path for each fork")
    if names is None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidArgumentError(f"fork takes a number from 1, not {count!r}")
        names = [str(number) for number in range(1, count + 1)]
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise InvalidArgumentError(f"names are a list of names, not {names!r}")
    here = yield from session.checkpointer.checkpoint("fork", block=session.state.block)
    forks = []
    for name in names:
        session_id = yield from _free(session, f"{session.options.session_id}.{name}")
        yield from save.fork(session.engine, here, session_id, None, None)
        reach("run:forked")
        forks.append(replace(session.options, session_id=session_id))
    if session.files is None:
        return [Fork(options, None) for options in forks]
    captured = (yield from restore(session.engine, here, True, "raw")).workspace
    made: list[Fork] = []
    places: Sequence[str | Path | None] = paths or [None] * len(forks)
    for options, path in zip(forks, places, strict=True):
        files = yield from _copied(session, session.files, captured, options, path)
        made.append(Fork(options, files))
    return made


def _copied(
    session: OpenSession,
    files: Files,
    captured: Any,
    options: SessionOptions,
    path: str | Path | None,
) -> Plan[Files]:
    """Return a copy of captured files for a fork: at a path, or beside the workspace."""
    workspace = files.workspace
    if path is None:
        name = options.session_id.removeprefix(session.options.session_id).replace("/", "_")
        path = f"{workspace.path}{name}"
    place = Path(path)
    made = yield from steps.do(lambda: workspace.fork_captured(captured, place))
    return Files(lambda: made)


def _free(session: OpenSession, wanted: str) -> Plan[str]:
    """Return a name for a session that is not taken."""
    number, name, agent_id = 1, wanted, session.options.agent_id
    while (yield from steps.query(Query(agent_id=agent_id, session_id=name, limit=1))):
        number += 1
        name = f"{wanted}-{number}"
    return name


Adoptable = str | Checkpoint | CheckpointInfo | Outcome
"""The name of a session, the id of a checkpoint, a checkpoint, or what came of a strategy."""


def adopt(session: OpenSession, other: Adoptable) -> Plan[str]:
    """Go on from the head of another session, or from a checkpoint, as this session's own."""
    name = _name_of(other)
    query = Query(agent_id=session.options.agent_id, session_id=name, limit=1)
    found = yield from steps.query(query)
    info = found[0] if found else (yield from get_info(name))
    if (info.agent_id, info.session_id) == session.options.session:
        raise RunError("a run cannot adopt itself: use rollback to go back")
    theirs = yield from session.restored(info.checkpoint_id)
    yield from session.checkpointer.checkpoint("before adopting", block=session.state.block)
    reach("run:adopting")
    blocks = session.state.jump(theirs)
    yield from session.history.join(theirs.effects)
    session.history.jump(blocks)
    files = session.files if theirs.workspace is not None else None
    captured = theirs.workspace
    if files is not None:
        captured = files.as_own(captured)
        files.fall_behind()
    now: str = yield from session.checkpointer.checkpoint(
        f"adopted {info.session_id}",
        parent_id=info.checkpoint_id,
        workspace=captured,
        tags={"adopted": info.session_id},
    )
    if files is not None:
        yield from files.put_back(captured)
    return now


def _name_of(other: Adoptable) -> str:
    if isinstance(other, (Checkpoint, CheckpointInfo)):
        return other.checkpoint_id
    if isinstance(other, Outcome):
        return other.session_id
    return checked_name("what is adopted", other)
