"""Going back: compensations newest first, a new checkpoint on the old place, and the files.

What is to be done is noted with the checkpoint from which a rollback starts, and each compensation
when it is done. So a rollback that was cut off is finished when the session is opened again. The
checkpoint that ends it has the target as its parent; the way that is left stays in the tree, and
``undo`` leads back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.errors import (
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    InvalidArgumentError,
    NoteExistsError,
    RollbackRefusedError,
    RunError,
)
from holdfast.model import Checkpoint, CheckpointInfo, checked_name
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan
from holdfast.session import recovery
from holdfast.session.core import ROLLBACK, ROLLED_BACK_FROM, SESSION, Core
from holdfast.session.effects import Effect
from holdfast.session.log import Entry, Log, turned
from holdfast.system.crash_points import reach
from holdfast.verbs import notes
from holdfast.verbs.read import ancestors, get_info, restore

SCOPES = ("state", "files")


@dataclass(frozen=True)
class RolledBack:
    """What a rollback did, and what it could not undo."""

    checkpoint_id: str
    """Where the run stands now."""
    target_id: str
    compensated: list[Effect] = field(default_factory=list)
    remaining: list[Effect] = field(default_factory=list)
    """Calls that stay done: what cannot be undone, and what failed to be."""
    problems: dict[str, str] = field(default_factory=dict)
    """Compensations that failed, by the id of the effect."""

    def __str__(self) -> str:
        lines = [f"rolled back to {self.target_id}"]
        lines += [f"  undone: {effect}" for effect in self.compensated]
        for effect in self.remaining:
            why = self.problems.get(effect.id)
            lines.append(f"  stays done ({effect.kind}): {effect}" + (f": {why}" if why else ""))
        return "\n".join(lines)


def opened(core: Core) -> Plan[None]:
    """Open a run, see to its files, and finish a rollback that was cut off.

    Where what is needed for that is missing, nothing is changed.
    """
    yield from core.open()
    intent = core.pending_rollback
    if intent is not None:
        yield from _check_pending(core, intent)
    yield from recovery.settle(core)
    if intent is not None:
        yield from _carry_out(core, intent)


def _check_pending(core: Core, intent: dict[str, Any]) -> Plan[None]:
    """Refuse a note of a rollback that none of this session's can be, or that cannot be ended."""
    here = core.at.checkpoint_id
    checked_intent(here, intent)
    target = yield from get_info(intent["target"])
    if (target.agent_id, target.session_id) != core.session:
        before = yield from ancestors(here)
        if target.checkpoint_id not in {info.checkpoint_id for info in before}:
            raise CheckpointIntegrityError(here, "its note of a rollback leads to another session")
    if "state" in intent["scope"]:
        kept = yield from restore(core.engine, target.checkpoint_id, True, core.options.on_unknown)
        _functions(core, _standing(core, kept))


def checked_intent(checkpoint_id: str, intent: Any) -> dict[str, Any]:
    """What a note says of a rollback that was begun at a checkpoint."""
    try:
        scope, names = intent["scope"], (intent["target"], intent["name"])
        fits = type(scope) is list and all(each in SCOPES for each in scope)
        fits = fits and all(type(each) is str for each in names)
    except (KeyError, TypeError):
        fits = False
    if not fits:
        raise CheckpointIntegrityError(checkpoint_id, "its note of a rollback is of another shape")
    return dict(intent)


def rollback(
    core: Core, to: str | None, steps: int, scope: Collection[str], accept_irreversible: bool
) -> Plan[RolledBack]:
    """Go back to a checkpoint of the run, and undo what can be undone since."""
    wanted = (scope,) if isinstance(scope, str) else tuple(scope)
    if not wanted or not set(wanted) <= set(SCOPES):
        raise InvalidArgumentError(f"scope is some of {', '.join(SCOPES)}, not {scope!r}")
    core.held()
    target = yield from _find(core, to, steps)
    name = f"rolled back to {target.step_name or target.checkpoint_id[:13]}"
    return (yield from _begin(core, target, wanted, name, accept_irreversible))


def _find(core: Core, to: str | None, steps: int) -> Plan[CheckpointInfo]:
    """The checkpoint that a rollback leads to: by id, by name, or so many steps back."""
    chain = [core.at, *(yield from ancestors(core.at.checkpoint_id))]
    own = [info for info in chain if (info.agent_id, info.session_id) == core.session]
    if to is None:
        return _steps_back(own, steps)
    checked_name("to", to)
    named = [info for info in own if info.step_name == to]
    if named:
        return named[0]
    try:
        found = yield from get_info(to)
    except CheckpointNotFoundError:
        names = ", ".join(str(info.step_name) for info in own[:20] if info.step_name)
        raise RunError(f"no checkpoint is called {to!r}; there are {names}") from None
    known = {info.checkpoint_id for info in chain}
    if found.checkpoint_id not in known and (found.agent_id, found.session_id) != core.session:
        raise RunError(
            f"checkpoint {to!r} is of session {found.session_id!r}: to go on from there, "
            "use run.adopt(...)"
        )
    return found


def _steps_back(own: list[CheckpointInfo], steps: int) -> CheckpointInfo:
    """So many steps before the first of these; one that ended a rollback is where its parent is."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise InvalidArgumentError(f"steps is a number from 0, not {steps!r}")
    if steps == 0:
        return own[0]
    there = {info.checkpoint_id for info in own}
    counted = [
        info
        for info in own
        if info.metadata.get(ROLLED_BACK_FROM) in (None, info.parent_id)
        or info.parent_id not in there
    ]
    if steps >= len(counted):
        raise RunError(f"there are only {len(counted) - 1} checkpoints before this one")
    return counted[steps]


def undo(core: Core, accept_irreversible: bool) -> Plan[RolledBack]:
    """Go to where the last rollback (or undo) was begun; what it compensated stays undone."""
    core.held()
    chain: list[CheckpointInfo] = [core.at, *(yield from ancestors(core.at.checkpoint_id))]
    left = next((info for info in chain if ROLLED_BACK_FROM in info.metadata), None)
    if left is None:
        raise RunError("there is no rollback to undo in this run")
    target = yield from get_info(checked_name(ROLLED_BACK_FROM, left.metadata[ROLLED_BACK_FROM]))
    noted = yield from notes.read(
        core.engine, [target.checkpoint_id], on_unknown=core.options.on_unknown
    )
    begun = next((value for note, value in noted if note.key == ROLLBACK), None)
    scope = checked_intent(target.checkpoint_id, begun)["scope"]
    return (yield from _begin(core, target, scope, "rollback undone", accept_irreversible))


def _begin(
    core: Core,
    target: CheckpointInfo,
    scope: Collection[str],
    name: str,
    accept_irreversible: bool,
) -> Plan[RolledBack]:
    kept = yield from restore(core.engine, target.checkpoint_id, True, core.options.on_unknown)
    if "state" in scope:
        standing = _standing(core, kept)
        _check_allowed(standing, accept_irreversible)
        _functions(core, standing)
    intent = {"target": target.checkpoint_id, "scope": list(scope), "name": name}
    yield from core.checkpoint("before rollback", beside={ROLLBACK: intent})
    reach("run:rollback_begun")
    return (yield from _carry_out(core, intent, core.entered))


def _carry_out(
    core: Core, intent: dict[str, Any], entered: Collection[str] | None = None
) -> Plan[RolledBack]:
    """Do what a rollback still has to do, from the checkpoint it was begun at.

    ``entered`` are the tasks that the program is in; None if it has not begun.
    """
    before = core.at.checkpoint_id
    target = yield from get_info(intent["target"])
    kept = yield from restore(core.engine, target.checkpoint_id, True, core.options.on_unknown)
    undone, problems = set[str](), dict[str, str]()
    later = _since(core, kept)
    if "state" in intent["scope"]:
        standing = _standing(core, kept)
        undone, problems = yield from _compensate(core, before, standing)
        reach("run:compensated")
        _turn(core, kept, [replace(each, abandoned=True) for each in later], undone, entered)
    files = kept.workspace if "files" in intent["scope"] else None
    if core.files is not None and files is not None:
        core.files.fall_behind()
    now = yield from core.checkpoint(
        intent["name"],
        parent_id=target.checkpoint_id if "state" in intent["scope"] else before,
        workspace=files,
        tags={ROLLED_BACK_FROM: before},
    )
    reach("run:rolled_back")
    if core.files is not None and files is not None:
        yield from core.files.put_back(files)
    core.pending_rollback = None
    if entered is None:
        core.begin_journal([])
    after = [replace(each, compensated=each.id in undone or each.compensated) for each in later]
    return RolledBack(
        now,
        target.checkpoint_id,
        [each for each in after if each.id in undone],
        [each for each in after if each.stands()] if "state" in intent["scope"] else [],
        problems,
    )


def _turn(
    core: Core,
    kept: Checkpoint,
    later: list[Effect],
    undone: set[str],
    entered: Collection[str] | None,
) -> None:
    """Stand where a checkpoint stands, and know of what was done since on the way that is left."""
    was, tasks = core.log, core.tasks
    core.take(kept)
    core.journal.forget()
    marks: list[Entry] = [each.as_dict() for each in later]
    marks += [{"undone": each} for each in undone]
    known = {each.id for each in core.log.effects if each.compensated}
    marks += [
        {"undone": each.id} for each in was.effects if each.compensated and each.id not in known
    ]
    if entered is None:
        core.log.extend([*marks, turned([])])
        return
    for task in entered:  # the program is in them, and goes on there
        record = core.tasks.again(tasks.get(task))
        if record.status != "in_progress":
            core.tasks.put(record.begun())
    core.turns += 1
    core.log.extend([*marks, turned([SESSION, *map(core.block_of, entered)])])


def _since(core: Core, kept: Checkpoint) -> list[Effect]:
    """What was done after a checkpoint on the way to here, the oldest first."""
    known = {entry["id"] for entry in kept.effects if "id" in entry}
    every = Log([*core.log.entries, *(call.as_dict() for call in core.journal.calls)]).effects
    return [effect for effect in every if effect.id not in known]


def _standing(core: Core, kept: Checkpoint) -> list[Effect]:
    """What was done since and is still done; what was left before counts no more."""
    return [each for each in _since(core, kept) if each.stands() and not each.abandoned]


def _check_allowed(standing: list[Effect], accept_irreversible: bool) -> None:
    lasting = [each for each in standing if each.kind == "irreversible" or each.is_unknown]
    if lasting and not accept_irreversible:
        listed = "\n".join(
            f"  {effect}" + (" (its end is unknown)" if effect.is_unknown else "")
            for effect in lasting
        )
        raise RollbackRefusedError(
            f"this would go back past what cannot be undone:\n{listed}\n"
            "To go back all the same and leave it done, pass accept_irreversible=True",
            lasting,
        )


def _functions(core: Core, standing: list[Effect]) -> dict[str, Callable[..., Any]]:
    """The functions that undo these, all of them, before any is called."""
    found: dict[str, Callable[..., Any]] = {}
    for effect in standing:
        if effect.compensate is None or effect.is_unknown:
            continue
        found[effect.id] = core.functions.find(effect)
    return found


def _compensate(
    core: Core, before: str, standing: list[Effect]
) -> Plan[tuple[set[str], dict[str, str]]]:
    """Undo what can be, the newest first; returns which, and what went wrong."""
    functions = _functions(core, standing)
    noted = {note.key for note in (yield from steps.notes([before]))}
    done = {key.removeprefix("undone/") for key in noted if key.startswith("undone/")}
    problems: dict[str, str] = {}
    for effect in reversed(standing):
        if effect.is_unknown and effect.compensate is not None:
            problems[effect.id] = "nobody knows whether it took place"
        if effect.id not in functions or effect.id in done:
            continue
        reach("run:before_compensation")
        function = core.wrap(functions[effect.id])
        try:
            yield from steps.call(function, effect.output, *effect.args, **effect.kwargs)
        except Exception as error:
            problems[effect.id] = f"{type(error).__name__}: {error}"
            continue
        reach("run:after_compensation")
        yield from _note_undone(core, before, effect.id)
        done.add(effect.id)
    return done, problems


def _note_undone(core: Core, before: str, effect_id: str) -> Plan[None]:
    written = notes.NoteBatch()
    written.add(core.engine, before, f"undone/{effect_id}", {"effect": effect_id})
    try:
        yield from core.note(written)
    except NoteExistsError:
        return
