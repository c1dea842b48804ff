"""``holdfast replay``: what was recorded, step by step."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.short_ids import ShortIds
from holdfast.cli.commands.diff import diff_lines
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import checkpoint_json, step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age
from holdfast.cli.output.values import short
from holdfast.cli.parsing import Parser, add_session
from holdfast.core.json_form import to_json
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.session.replay import ReplayedStep


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "For every checkpoint that led to the head: the calls with what they returned, and what "
        "changed\nin the state. Nothing is executed.",
        "holdfast replay fix-42",
    )
    add_session(parser, positional=True)
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Show the steps of a session."""
    with open_client(options) as client:
        session = Names(client).session(options.session)
        steps = list(client.replay(session.session_id, agent_id=session.agent_id))
        name = ShortIds(client.store, [step.checkpoint for step in steps])
    if terminal.json:
        terminal.emit({"session_id": session.session_id, "steps": [_json(each) for each in steps]})
        return OK
    for step in steps:
        info = step.checkpoint
        terminal.line(
            f"{terminal.paint(name(info.checkpoint_id), 'id')}  "
            f"{terminal.paint(step_of(info), 'name')}  "
            f"{terminal.paint(age(info.created_at), 'dim')}"
            f"{', then (not in a checkpoint yet)' if step.is_unfinished else ''}"
        )
        for call in step.calls:
            ended = call.output if call.error is None else call.error
            result = "not known" if call.status == "started" else short(ended, 60)
            terminal.line(f"   {clean(str(call))} -> {result}")
        if step.changes is not None:
            for line in diff_lines(step.changes, terminal):
                terminal.line(f"   {line}")
    return OK


def _json(step: ReplayedStep) -> dict[str, Any]:
    changes = None
    if step.changes is not None:
        changes = {
            "added": {path: to_json(value) for path, value in step.changes.added.items()},
            "removed": {path: to_json(value) for path, value in step.changes.removed.items()},
            "changed": {
                path: {"old": to_json(old), "new": to_json(new)}
                for path, (old, new) in step.changes.changed.items()
            },
            "moved": dict(step.changes.moved),
        }
    return {
        "checkpoint": checkpoint_json(step.checkpoint),
        "calls": [to_json(call.as_dict()) for call in step.calls],
        "changes": changes,
        "tree_id": step.tree_id,
        "unfinished": step.is_unfinished,
    }
