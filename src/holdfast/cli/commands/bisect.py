"""``holdfast bisect``: the first checkpoint that is bad, found by looking at few."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.short_ids import ShortIds
from holdfast.cli.exits import OK, CommandError, UsageError
from holdfast.cli.output.checkpoints import checkpoint_json, step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, add_session

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import Checkpoint, CheckpointInfo

Verdict = Literal["good", "bad", "skip"]
_SKIP, _FIRST_ABORT = 125, 128


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "--python is an expression of state, context, tasks, effects, messages and checkpoint "
        "that is true\nwhile all is well. --run is a shell command that gets the state as typed "
        "JSON on its input and\nHOLDFAST_CHECKPOINT in its environment, in a directory with the "
        "files of the checkpoint if it has\nany; it says good with 0, bad with 1 to 124, skip "
        "with 125, and ends the search with 126 or more,\nas git bisect run has it.",
        "holdfast bisect --python 'state[\"balance\"] >= 0'",
        "holdfast bisect fix-42 --run 'pytest -q'",
    )
    add_session(parser, positional=True)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--python", metavar="EXPR", help="true while all is well")
    how.add_argument("--run", dest="command", metavar="CMD", help="ends with 0 while all is well")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Search a session."""
    tested: list[dict[str, Any]] = []
    with open_client(options) as client:
        session = Names(client).session(options.session)
        chain = [*client.ancestors(session.head.checkpoint_id)[::-1], session.head]
        short = ShortIds(client.store, chain)
        judge = _by_expression(options.python) if options.python else _by_command(options.command)

        def named(info: CheckpointInfo) -> str:
            return f"{short(info.checkpoint_id)}  {step_of(info)}"

        def look(info: CheckpointInfo) -> Verdict:
            verdict = judge(client, info)
            tested.append({"checkpoint_id": info.checkpoint_id, "verdict": verdict})
            if not terminal.json:
                terminal.line(f"{verdict:<4}  {named(info)}")
            return verdict

        first, suspects = search(chain, look)
    if terminal.json:
        terminal.emit(
            {
                "session_id": session.session_id,
                "first_bad": None if first is None else checkpoint_json(first),
                "suspects": [info.checkpoint_id for info in suspects],
                "tested": tested,
            }
        )
    elif suspects:
        terminal.line("the first bad one is one of these; the others could not be tested:")
        for info in suspects:
            terminal.line(f"  {named(info)}")
    elif first is None:
        terminal.line("the newest checkpoint is good")
    else:
        terminal.line(f"the first bad checkpoint is {first.checkpoint_id}")
        terminal.line(f"  {named(first)}; holdfast diff {short(first.checkpoint_id)} shows it")
    return OK


def search(
    chain: list[CheckpointInfo], look: Callable[[CheckpointInfo], Verdict]
) -> tuple[CheckpointInfo | None, list[CheckpointInfo]]:
    """Return the first bad one of a chain, or several where some cannot be tested."""
    if look(chain[-1]) == "good":
        return None, []
    low, high = 0, len(chain) - 1  # what is before low is good, high is bad
    skipped: set[int] = set()
    while True:
        open_ = [index for index in range(low, high) if index not in skipped]
        if not open_:
            break
        middle = open_[len(open_) // 2]
        verdict = look(chain[middle])
        if verdict == "skip":
            skipped.add(middle)
        elif verdict == "good":
            low = middle + 1
        else:
            high = middle
    suspects = [chain[index] for index in range(low, high + 1)]
    return (suspects[0], []) if len(suspects) == 1 else (None, suspects)


def _by_expression(text: str) -> Callable[[SyncClient, CheckpointInfo], Verdict]:
    try:
        code = compile(text, "--python", "eval")
    except SyntaxError as error:
        raise UsageError(f"--python is no expression: {error.msg}") from error

    def judge(client: SyncClient, info: CheckpointInfo) -> Verdict:
        from holdfast.cli.output.messages import messages_of
        from holdfast.session.recorded import entries_in

        kept = client.restore(info.checkpoint_id, on_unknown="raw")
        names = {
            "state": kept.execution_state,
            "context": kept.agent_context,
            "tasks": kept.tasks,
            "messages": messages_of(kept),
            "checkpoint": kept,
        }
        if "effects" in code.co_names:
            plan = entries_in(client.runtime.engine, kept.effects)
            names["effects"] = client.runtime.run(plan)
        try:
            return "good" if eval(code, names) else "bad"  # noqa: S307  (the user's own expression)
        except Exception as error:
            raise CommandError(
                f"--python failed on {info.checkpoint_id}: {type(error).__name__}: {error}"
            ) from error

    return judge


def _by_command(command: str) -> Callable[[SyncClient, CheckpointInfo], Verdict]:
    def judge(client: SyncClient, info: CheckpointInfo) -> Verdict:
        kept = client.restore(info.checkpoint_id, on_unknown="raw")
        with tempfile.TemporaryDirectory(prefix="holdfast-bisect-") as directory:
            where = _with_files(client, info, kept, directory)
            code = _exit_code(command, info, kept, where)
        if code == 0:
            return "good"
        if code == _SKIP:
            return "skip"
        if code < _SKIP:
            return "bad"
        raise CommandError(f"the command ended with {code} on {info.checkpoint_id}: search ended")

    return judge


def _with_files(
    client: SyncClient, info: CheckpointInfo, kept: Checkpoint, directory: str
) -> str | None:
    """Return a directory with the files of a checkpoint; None if it has none."""
    if kept.workspace is None:
        return None
    from pathlib import Path

    from holdfast.cli.access.trees import unpack
    from holdfast.workspace import Snapshot

    place = Path(directory, "files")
    unpack(client, Snapshot.from_value(kept.workspace), place)
    return str(place)


def _exit_code(command: str, info: CheckpointInfo, kept: Checkpoint, where: str | None) -> int:
    from holdfast.core.json_form import to_json

    done = subprocess.run(  # noqa: S602  (the user's own command)
        command,
        shell=True,
        cwd=where,
        env={**os.environ, "HOLDFAST_CHECKPOINT": info.checkpoint_id},
        input=json.dumps(to_json(kept.execution_state)),
        text=True,
        stdout=2,  # what it says does not mix with the answer
    )
    return done.returncode if done.returncode >= 0 else _FIRST_ABORT - done.returncode
