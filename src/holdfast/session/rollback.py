"""Going back: compensations newest first, a new checkpoint on the old place, and the files.

What is to be done is noted on the checkpoint from which a rollback starts, and each compensation
when it is done. So a rollback that was cut off is finished when the session is opened again. The
checkpoint that ends it has the target as its parent; the way that is left stays in the tree, and
``undo`` leads back to it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.errors import InvalidArgumentError, RollbackRefusedError, RunError
from holdfast.model import Checkpoint, CheckpointInfo
from holdfast.session.core import ROLLBACK, Core
from holdfast.session.effects import Effect, effects_in
from holdfast.stores.base import NoteExists
from holdfast.stores.crashpoints import reach
from holdfast.verbs import notes, plan
from holdfast.verbs.plan import Plan
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


def rollback(
    core: Core, to: str | None, steps: int, scope: Collection[str], accept_irreversible: bool
) -> Plan[RolledBack]:
    """Go back to a checkpoint of the run, and undo what can be undone since."""
    wanted = (scope,) if isinstance(scope, str) else tuple(scope)
    if not wanted or not set(wanted) <= set(SCOPES):
        raise InvalidArgumentError(f"scope is some of {', '.join(SCOPES)}, not {scope!r}")
    target = yield from core.find(to, steps)
    kept = yield from restore(core.engine, target.checkpoint_id, True, "raise")
    standing = [effect for effect in _since(core, kept) if effect.stands()]
    _check_allowed(standing, accept_irreversible)
    _functions(core, standing)
    before = yield from core.checkpoint("before rollback", parent_id=_head_id(core))
    intent = {"target": target.checkpoint_id, "scope": list(wanted)}
    written = notes.Written()
    written.add(core.engine, before, ROLLBACK, intent)
    yield from written.write()
    reach("run:rollback_begun")
    return (yield from carry_out(core, intent))


def _head_id(core: Core) -> str:
    assert core.head is not None
    return core.head.checkpoint_id


def carry_out(core: Core, intent: dict[str, Any]) -> Plan[RolledBack]:
    """Do what a rollback still has to do, from the checkpoint it was begun at."""
    before = _head_id(core)
    target = yield from get_info(intent["target"])
    kept = yield from restore(core.engine, target.checkpoint_id, True, "raise")
    later = _since(core, kept)
    standing = [effect for effect in later if effect.stands()]
    functions = _functions(core, standing)
    compensated, problems = yield from _compensate(core, before, standing, functions)
    reach("run:compensated")
    left = [
        replace(effect, compensated=True) if effect.id in compensated else effect
        for effect in later
    ]
    log = [*kept.effects, *_left(left)]
    if "state" in intent["scope"]:
        core._take(kept)
    core.log = log
    files = kept.workspace if "files" in intent["scope"] else None
    name = target.step_name or target.checkpoint_id[:13]
    now = yield from core.checkpoint(
        f"rolled back to {name}",
        parent_id=target.checkpoint_id,
        workspace=files,
        rolled_back_from=before,
    )
    reach("run:rolled_back")
    if core.files is not None and files is not None:
        yield from core.files.put_back(files)
    core.pending_rollback = None
    return RolledBack(
        now,
        target.checkpoint_id,
        [effect for effect in left if effect.id in compensated],
        [effect for effect in left if effect.stands()],
        problems,
    )


def _left(effects: list[Effect]) -> Iterator[dict[str, Any]]:
    for effect in effects:
        yield {**effect.as_dict(), "abandoned": True}


def _since(core: Core, kept: Checkpoint) -> list[Effect]:
    """What was done after a checkpoint, the oldest first."""
    known = {entry["id"] for entry in kept.effects if "id" in entry}
    every = (*effects_in(core.log), *core.journal.calls)
    return [effect for effect in every if effect.id not in known]


def _check_allowed(standing: list[Effect], accept_irreversible: bool) -> None:
    lasting = [effect for effect in standing if effect.kind == "irreversible"]
    if lasting and not accept_irreversible:
        listed = "\n".join(f"  {effect}" for effect in lasting)
        raise RollbackRefusedError(
            f"this would go back past what cannot be undone:\n{listed}\n"
            "To go back all the same and leave it done, pass accept_irreversible=True",
            lasting,
        )


def _functions(core: Core, standing: list[Effect]) -> dict[str, Callable[..., Any]]:
    """The functions that undo these, all of them, before any is called."""
    found: dict[str, Callable[..., Any]] = {}
    for effect in standing:
        if effect.kind != "reversible" or effect.compensate is None:
            continue
        function = core.functions.get(effect.compensate) or find_function(effect.compensate)
        if function is None:
            raise RunError(
                f"{effect} is undone by {effect.compensate}, which this program has not loaded: "
                "import it, or open the session with tools=[that function]"
            )
        found[effect.compensate] = function
    return found


def find_function(path: str) -> Callable[..., Any] | None:
    """The function of that path if its module is imported already; nothing is imported."""
    module, _, name = path.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def _compensate(
    core: Core, before: str, standing: list[Effect], functions: dict[str, Callable[..., Any]]
) -> Plan[tuple[set[str], dict[str, str]]]:
    """Undo what can be, the newest first; returns which, and what went wrong."""
    noted = {note.key for note in (yield from plan.notes([before]))}
    done = {key.removeprefix("undone/") for key in noted if key.startswith("undone/")}
    problems: dict[str, str] = {}
    for effect in reversed(standing):
        if effect.compensate is None or effect.kind != "reversible" or effect.id in done:
            continue
        reach("run:before_compensation")
        try:
            function = functions[effect.compensate]
            yield from plan.call(function, effect.output, *effect.args, **effect.kwargs)
        except Exception as error:
            problems[effect.id] = f"{type(error).__name__}: {error}"
            continue
        reach("run:after_compensation")
        written = notes.Written()
        written.add(core.engine, before, f"undone/{effect.id}", {"effect": effect.id})
        try:
            yield from written.write()
        except NoteExists:
            pass
        done.add(effect.id)
    return done, problems


def undo(core: Core) -> Plan[str]:
    """Go back to where the last rollback (or undo) was begun; what it undid stays undone."""
    assert core.head is not None
    chain: list[CheckpointInfo] = [core.head, *(yield from ancestors(core.head.checkpoint_id))]
    left = next((info for info in chain if "rolled_back_from" in info.metadata), None)
    if left is None:
        raise RunError("there is no rollback to undo in this run")
    source = yield from restore(core.engine, left.metadata["rolled_back_from"], True, "raise")
    before = yield from core.checkpoint("before undo", parent_id=_head_id(core))
    compensated = [each.id for each in effects_in(core.log) if each.compensated]
    core._take(source)
    core.log += [{"undone": effect_id} for effect_id in compensated]
    now = yield from core.checkpoint(
        "rollback undone",
        parent_id=source.checkpoint_id,
        workspace=source.workspace,
        rolled_back_from=before,
    )
    if core.files is not None and source.workspace is not None:
        yield from core.files.put_back(source.workspace)
    return now
