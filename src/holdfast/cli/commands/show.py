"""``holdfast show``: one checkpoint, readable without any of the classes it holds."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.calls import calls_since
from holdfast.cli.access.langgraph_threads import asked_at, asked_json, asked_lines
from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import checkpoint_json
from holdfast.cli.output.messages import message_lines, messages_of
from holdfast.cli.output.tasks import progress_of, task_line, tasks_json
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, size
from holdfast.cli.output.values import at_path, outline
from holdfast.cli.output.workspaces import workspace_json
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.core.json_form import dumps, to_json
from holdfast.core.short_repr import brief
from holdfast.errors import AdapterError, CheckpointIntegrityError
from holdfast.system.terminal_text import clean, cut, indented

if TYPE_CHECKING:
    from holdfast.core.conversation.said import Said
    from holdfast.model import Checkpoint, CheckpointInfo
    from holdfast.session.effects import Effect

_FEW = 6


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Without options: who and when, the plan, the calls since the checkpoint before, the last "
        "messages\nand an outline of the state.",
        "holdfast show",
        "holdfast show @~2 --messages",
        "holdfast show fix-42@ --state plan[0].name",
    )
    add_checkpoint(parser)
    add_session(parser)
    parser.add_argument(
        "--state",
        nargs="?",
        const="$",
        metavar="PATH",
        help="only the state, or what is at a path of it such as plan[0].name, as typed JSON",
    )
    parser.add_argument("--messages", action="store_true", help="only the messages, all of them")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Show the checkpoint that is asked for."""
    with open_client(options) as client:
        info = Names(client).checkpoint(options.checkpoint, options.session)
        checkpoint = client.restore(info.checkpoint_id, on_unknown="raw")
        if options.state is not None:
            part = to_json(at_path(checkpoint.execution_state, options.state))
            answer: dict[str, Any] = {"path": options.state, "value": part}
            lines = dumps(part).splitlines()
        elif options.messages:
            found = messages_of(checkpoint)
            answer = {"messages": [message.as_dict() for message in found]}
            lines = [line for message in found for line in message_lines(message, terminal)]
        else:
            calls: list[Effect] = []
            try:
                calls = calls_since(client, info)
            except CheckpointIntegrityError as error:  # all the rest can be read
                terminal.hint(f"its calls are not shown: {error.reason}")
            said: list[Said] = []
            try:
                said = messages_of(checkpoint)
            except AdapterError as error:  # a state can be shown that is no conversation
                terminal.hint(f"its messages are not shown: {error}")
            answer = _json(info, checkpoint, calls, said)
            lines = _lines(info, checkpoint, calls, said, terminal)
            asked = asked_at(client, info)
            answer["interrupts"] = asked_json(asked)
            if asked:
                questions = asked_lines(asked, terminal)
                lines += ["", "waits for an answer", *(f"  {line}" for line in questions)]
    if terminal.json:
        head = {"checkpoint_id": info.checkpoint_id}
        terminal.emit(answer if "checkpoint" in answer else {**head, **answer})
    else:
        for line in lines or ["no messages"]:
            terminal.line(line)
    return OK


def _json(
    info: CheckpointInfo, checkpoint: Checkpoint, calls: list[Effect], said: list[Said]
) -> dict[str, Any]:
    progress = progress_of(checkpoint.tasks)
    return {
        "checkpoint": checkpoint_json(info),
        "progress": None if progress is None else progress.as_dict(),
        "state": to_json(checkpoint.execution_state),
        "context": to_json(checkpoint.agent_context),
        "tasks": tasks_json(checkpoint.tasks),
        "effects": [to_json(call.as_dict()) for call in calls],
        "workspace": workspace_json(checkpoint.workspace),
        "messages": [message.as_dict() for message in said],
    }


def _lines(
    info: CheckpointInfo,
    checkpoint: Checkpoint,
    calls: list[Effect],
    messages: list[Said],
    terminal: Terminal,
) -> list[str]:
    lines = _header(info, terminal)
    if isinstance(checkpoint.tasks, (list, tuple)) and checkpoint.tasks:
        lines += ["", f"plan ({progress_of(checkpoint.tasks)})"]
        lines += [f"  {task_line(task, terminal)}" for task in checkpoint.tasks]
    if calls:
        lines += ["", "calls since the checkpoint before"]
        lines += [f"  {clean(str(call))}  {call.kind}, {call.status}" for call in calls]
    files = workspace_json(checkpoint.workspace)
    if files is not None:
        lines += ["", f"files  {files['files']} ({size(files['bytes'])}), tree {files['tree_id']}"]
    if messages:
        lines += ["", _counted(len(messages))]
        for message in messages[-_FEW:]:
            lines += [indented(line) for line in message_lines(message, terminal, brief=True)]
    for title, part in (
        ("state", checkpoint.execution_state),
        ("context", checkpoint.agent_context),
    ):
        if part or title == "state":
            lines += ["", title]
            lines += [f"  {line}" for line in outline(part, min(terminal.width, 200) - 2)]
    return lines


def _counted(number: int) -> str:
    return f"messages ({number})" if number <= _FEW else f"messages (the last {_FEW} of {number})"


def _header(info: CheckpointInfo, terminal: Terminal) -> list[str]:
    name = f" ({clean(info.step_name)})" if info.step_name else ""
    rows = [
        ("checkpoint", terminal.paint(info.checkpoint_id, "id")),
        ("agent", clean(info.agent_id)),
        ("session", terminal.paint(clean(info.session_id), "session")),
        ("step", f"{info.step_index}{name}"),
        ("parent", info.parent_id or "none"),
        ("made", f"{info.created_at:%Y-%m-%d %H:%M:%S} UTC ({age(info.created_at)})"),
        ("size", size(info.size)),
    ]
    if info.framework.value != "custom":
        rows.append(("framework", info.framework.value))
    if info.handoff_target is not None:
        rows.append(("handed off to", clean(info.handoff_target)))
    if info.expires_at is not None:
        rows.append(("expires", f"{info.expires_at:%Y-%m-%d %H:%M:%S} UTC"))
    if info.metadata:
        tags = ", ".join(f"{key}={brief(value)}" for key, value in info.metadata.items())
        rows.append(("tags", cut(clean(tags), 200)))
    return [f"{name + ':':<14} {value}" for name, value in rows]
