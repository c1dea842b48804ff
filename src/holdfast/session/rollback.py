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
from holdfast.session.effects import Block, Effect
from holdfast.session.open_session import OpenSession
from holdfast.session.recorded import Parted
from holdfast.system.crash_points import reach
from holdfast.verbs import notes
from holdfast.verbs.read import ancestors, get_info, nearest, walk

SCOPES = ("state", "files")
ROLLBACK = "rollback"
"""The note on a checkpoint from which a rollback was begun."""
ROLLED_BACK_FROM = "rolled_back_from"
"""The tag of a checkpoint that ended a rollback: where that was begun."""


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


def check_begun(session: OpenSession, intent: Any) -> Plan[None]:
    """Refuse a note of a rollback that none of this session's can be, or that cannot be ended."""
    here = session.head_id
    checked_intent(here, intent)
    target = yield from get_info(intent["target"])
    if (target.agent_id, target.session_id) != session.options.session:
        before = yield from ancestors(here)
        if target.checkpoint_id not in {info.checkpoint_id for info in before}:
            raise CheckpointIntegrityError(here, "its note of a rollback leads to another session")
    if "state" in intent["scope"]:
        kept = yield from session.restored(target.checkpoint_id)
        since = yield from session.history.since(kept.effects)
        _functions(session, _standing(since.later))


def checked_intent(checkpoint_id: str, intent: Any) -> dict[str, Any]:
    """Return what a note says of a rollback that was begun at a checkpoint."""
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
    session: OpenSession,
    to: str | None,
    steps: int,
    scope: Collection[str],
    accept_irreversible: bool,
) -> Plan[RolledBack]:
    """Go back to a checkpoint of the run, and undo what can be undone since."""
    wanted = (scope,) if isinstance(scope, str) else tuple(scope)
    if not wanted or not set(wanted) <= set(SCOPES):
        raise InvalidArgumentError(f"scope is some of {', '.join(SCOPES)}, not {scope!r}")
    session.checkpointer.check_held()
    target = yield from _find(session, to, steps)
    name = f"rolled back to {target.step_name or target.checkpoint_id[:13]}"
    return (yield from _begin(session, target, wanted, name, accept_irreversible))


def _find(session: OpenSession, to: str | None, steps: int) -> Plan[CheckpointInfo]:
    """Return the checkpoint that a rollback leads to: by id, by name, or so many steps back."""
    if to is None:
        return (yield from _steps_back(session, steps))
    checked_name("to", to)
    chain = yield from _chain(session, lambda found: _is_named(session, found[-1], to))
    if _is_named(session, chain[-1], to):
        return chain[-1]
    try:
        found = yield from get_info(to)
    except CheckpointNotFoundError:
        own = [info for info in chain if _is_own(session, info)]
        names = ", ".join(str(info.step_name) for info in own[:20] if info.step_name)
        raise RunError(f"no checkpoint is called {to!r}; there are {names}") from None
    known = {info.checkpoint_id for info in chain}
    if found.checkpoint_id not in known and not _is_own(session, found):
        raise RunError(
            f"checkpoint {to!r} is of session {found.session_id!r}: to go on from there, "
            "use run.adopt(...)"
        )
    return found


def _is_own(session: OpenSession, info: CheckpointInfo) -> bool:
    return (info.agent_id, info.session_id) == session.options.session


def _is_named(session: OpenSession, info: CheckpointInfo, name: str) -> bool:
    return info.step_name == name and _is_own(session, info)


Chain = list[CheckpointInfo]


def _chain(session: OpenSession, is_enough: Callable[[Chain], bool]) -> Plan[Chain]:
    """Return the checkpoints that led to where a session stands, the newest first.

    As far as needed: where what was read is enough, no older ones are.
    """
    head = session.checkpointer.head
    if is_enough([head]):
        return [head]
    return [head, *(yield from walk(head, lambda found: bool(found) and is_enough(found)))]


def _steps_back(session: OpenSession, steps: int) -> Plan[CheckpointInfo]:
    """Return the one so many steps before; one that ended a rollback is where its parent is."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise InvalidArgumentError(f"steps is a number from 0, not {steps!r}")
    head = session.checkpointer.head
    if steps == 0:
        return head
    limit = steps + 1
    while True:
        chain = [head, *(yield from nearest(head, limit))]
        parents = [*chain[1:], None] if len(chain) <= limit else chain[1:]
        steps_back = [
            info
            for info, parent in zip(chain, parents, strict=False)
            if _is_own(session, info) and _is_step(session, info, parent)
        ]
        if steps < len(steps_back):
            return steps_back[steps]
        if None in parents:
            raise RunError(f"there are only {len(steps_back) - 1} checkpoints before this one")
        limit *= 2


def _is_step(session: OpenSession, info: CheckpointInfo, parent: CheckpointInfo | None) -> bool:
    """Return whether going back leads to a checkpoint as well as to its parent."""
    is_rollback = info.metadata.get(ROLLED_BACK_FROM) not in (None, info.parent_id)
    return not is_rollback or parent is None or not _is_own(session, parent)


def undo(session: OpenSession, accept_irreversible: bool) -> Plan[RolledBack]:
    """Go to where the last rollback (or undo) was begun; what it compensated stays undone."""
    session.checkpointer.check_held()
    chain = yield from _chain(session, lambda found: ROLLED_BACK_FROM in found[-1].metadata)
    left = chain[-1]
    if ROLLED_BACK_FROM not in left.metadata:
        raise RunError("there is no rollback to undo in this run")
    target = yield from get_info(checked_name(ROLLED_BACK_FROM, left.metadata[ROLLED_BACK_FROM]))
    noted = yield from notes.read(
        session.engine, [target.checkpoint_id], on_unknown=session.options.on_unknown
    )
    begun = next((value for note, value in noted if note.key == ROLLBACK), None)
    scope = checked_intent(target.checkpoint_id, begun)["scope"]
    return (yield from _begin(session, target, scope, "rollback undone", accept_irreversible))


def _begin(
    session: OpenSession,
    target: CheckpointInfo,
    scope: Collection[str],
    name: str,
    accept_irreversible: bool,
) -> Plan[RolledBack]:
    kept = yield from session.restored(target.checkpoint_id)
    if "state" in scope:
        standing = _standing((yield from session.history.since(kept.effects)).later)
        _check_allowed(standing, accept_irreversible)
        _functions(session, standing)
    intent = {"target": target.checkpoint_id, "scope": list(scope), "name": name}
    yield from session.checkpointer.checkpoint(
        "before rollback",
        beside={ROLLBACK: intent},
        going_to=kept.workspace if "files" in scope else None,
    )
    reach("run:rollback_begun")
    return (yield from _carry_out(session, intent, is_running=True))


def finish(session: OpenSession, intent: dict[str, Any]) -> Plan[None]:
    """Finish a rollback that was cut off, before the program begins."""
    yield from _carry_out(session, intent, is_running=False)
    session.history.begin_again()


def _carry_out(session: OpenSession, intent: dict[str, Any], is_running: bool) -> Plan[RolledBack]:
    """Do what a rollback still has to do, from the checkpoint it was begun at.

    A program that is running stays in the tasks that it is in.
    """
    before = session.head_id
    target = yield from get_info(intent["target"])
    kept = yield from session.restored(target.checkpoint_id)
    undone, problems = set[str](), dict[str, str]()
    since = yield from session.history.since(kept.effects)
    later = since.later
    if "state" in intent["scope"]:
        undone, problems = yield from _compensate(session, before, _standing(later))
        reach("run:compensated")
        yield from _go_back(session, kept, since, undone, is_running)
    files = kept.workspace if "files" in intent["scope"] else None
    if session.files is not None and files is not None:
        files = session.files.as_own(files)
        session.files.fall_behind()
    now = yield from session.checkpointer.checkpoint(
        intent["name"],
        parent_id=target.checkpoint_id if "state" in intent["scope"] else before,
        workspace=files,
        tags={ROLLED_BACK_FROM: before},
    )
    reach("run:rolled_back")
    if session.files is not None and files is not None:
        yield from session.files.put_back(files)
    after = [replace(each, compensated=each.id in undone or each.compensated) for each in later]
    return RolledBack(
        now,
        target.checkpoint_id,
        [each for each in after if each.id in undone],
        [each for each in after if each.stands()] if "state" in intent["scope"] else [],
        problems,
    )


def _go_back(
    session: OpenSession,
    kept: Checkpoint,
    since: Parted,
    undone: set[str],
    is_running: bool,
) -> Plan[None]:
    """Stand where a checkpoint stands, and know of what was done since on the way that is left."""
    blocks: list[Block] = []
    if is_running:
        blocks = session.state.jump(kept)
    else:
        session.state.load(kept)
    yield from session.history.go_back(kept.effects, since, undone, kept.checkpoint_id)
    session.history.jump(blocks)


def _standing(later: list[Effect]) -> list[Effect]:
    """Return what of these is still done; what was left before counts no more."""
    return [each for each in later if each.stands() and not each.abandoned]


def _check_allowed(standing: list[Effect], accept_irreversible: bool) -> None:
    lasting = [each for each in standing if each.is_final or each.is_unknown]
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


def _functions(session: OpenSession, standing: list[Effect]) -> dict[str, Callable[..., Any]]:
    """Return the functions that undo these, all of them, before any is called."""
    found: dict[str, Callable[..., Any]] = {}
    for effect in standing:
        if effect.compensate is None or effect.is_unknown:
            continue
        found[effect.id] = session.functions.find(effect)
    return found


def _compensate(
    session: OpenSession, before: str, standing: list[Effect]
) -> Plan[tuple[set[str], dict[str, str]]]:
    """Undo what can be, the newest first; returns which, and what went wrong."""
    functions = _functions(session, standing)
    noted = {note.key for note in (yield from steps.notes([before]))}
    done = {key.removeprefix("undone/") for key in noted if key.startswith("undone/")}
    problems: dict[str, str] = {}
    for effect in reversed(standing):
        if effect.is_unknown and effect.compensate is not None:
            problems[effect.id] = "nobody knows whether it took place"
        if effect.id not in functions or effect.id in done:
            continue
        reach("run:before_compensation")
        undo = functions[effect.id]
        try:
            yield from session.call(undo, effect.output, *effect.args, **effect.kwargs)
        except Exception as error:
            problems[effect.id] = f"{type(error).__name__}: {error}"
            continue
        reach("run:after_compensation")
        yield from _note_undone(session, before, effect.id)
        done.add(effect.id)
    return done, problems


def _note_undone(session: OpenSession, before: str, effect_id: str) -> Plan[None]:
    try:
        yield from session.checkpointer.note(f"undone/{effect_id}", {"effect": effect_id}, before)
    except NoteExistsError:
        return
