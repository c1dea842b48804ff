"""``holdfast continue``: go on with a session in another framework."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict, replace

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.cli.tool_names import add_tool_names, tool_names_of
from holdfast.core.conversation.settling import RESTS
from holdfast.system.terminal_text import clean, cut

_ROOM = 200


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "The new session has the conversation in the other framework's own state, and the plan and "
        "files of\nthe checkpoint; open it with that framework's adapter. The old one is left as "
        "it is. What could not\nbe carried is said.",
        "holdfast continue langgraph",
        "holdfast continue pydantic_ai fix-42@ --as fix-42-b",
        "holdfast continue claude_agent_sdk @~2 --tool search=mcp__web__search",
    )
    parser.add_argument("framework", metavar="FRAMEWORK", help="such as langgraph or pydantic_ai")
    add_checkpoint(parser)
    add_session(parser)
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help="the new session (default: an id)"
    )
    parser.add_argument(
        "--agent", metavar="NAME", help="the agent whose session it is (default: the framework)"
    )
    add_tool_names(parser)
    parser.add_argument(
        "--rest", choices=RESTS, help="what becomes of calls that nothing recorded an end of"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Begin the session."""
    with open_client(options) as client:
        source = Names(client).checkpoint(options.checkpoint, options.session)
        made = client.continue_in(
            source.checkpoint_id,
            options.framework,
            session_id=options.name,
            agent_id=options.agent,
            tool_names=tool_names_of(options),
            rest=options.rest,
        )
    if terminal.json:
        unknown = [call.id for call in made.unknown]
        told = asdict(replace(made, unknown=[]))
        terminal.emit({**told, "parent_id": source.checkpoint_id, "unknown": unknown})
        return OK
    where = f"{clean(made.agent_id)}/{clean(made.session_id)}"
    terminal.line(f"session {where} goes on from {step_of(source)} ({made.checkpoint_id})")
    for each in made.lost:
        terminal.line(f"  lost: {cut(clean(each), _ROOM)}")
    for call in made.unknown:
        terminal.line(f"  nobody knows whether it took place: {cut(clean(str(call)), _ROOM)}")
    return OK
