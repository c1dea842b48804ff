"""``holdfast pending``, ``approve`` and ``deny``: calls that wait for a decision."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.langgraph_threads import asked_json, asked_lines
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK, Ambiguous, NotFound, Refused, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age
from holdfast.cli.parsing import Parser, close_to
from holdfast.core.json_form import from_json, to_json
from holdfast.errors import HoldfastError
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.session.approval import Question

_SHORT = 8


def pending(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "Calls of runs that wait for approval, and questions that LangGraph threads stopped at, "
        "each with\nwhat answers it.",
        "holdfast pending",
        "holdfast pending --agent coder --json",
    )
    parser.add_argument("--agent", metavar="NAME", help="only those of this agent")
    parser.set_defaults(run=_pending)


def _pending(options: Namespace, terminal: Terminal) -> int:
    with open_client(options) as client:
        found = client.pending(options.agent)
        asked = client.interrupts(options.agent)
    if terminal.json:
        pending = [question_json(each) for each in found]
        terminal.emit({"pending": pending, "interrupts": asked_json(asked)})
        return OK
    for each in found:
        until = "" if each.expires_at is None else f", until {each.expires_at:%H:%M:%S} UTC"
        terminal.line(
            f"{terminal.paint(each.effect_id[:_SHORT], 'id')}  {each.kind:<12}  "
            f"{terminal.paint(clean(str(each)), 'name')}  "
            f"{clean(each.session_id)}, {age(each.asked_at)}{until}"
        )
    if found:
        terminal.line("holdfast approve ID, or holdfast deny ID -m REASON")
    for line in asked_lines(asked, terminal):
        terminal.line(line)
    if not found and not asked:
        terminal.line("no call waits for approval")
    return OK


def approve(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "The decision is bound to the exact call, and is kept: the program that asked may be "
        "restarted.\nWith --args it is made with other arguments: a list replaces those given by "
        "place, an object those\ngiven by name. They are written as `holdfast pending --json` "
        "shows them.",
        "holdfast approve 3f9a12bc",
        'holdfast approve 3f9a12bc -m "checked the amount"',
        "holdfast approve 3f9a12bc --args '[\"anna\", 20]'",
    )
    _add_question(parser)
    parser.add_argument(
        "--args",
        action="append",
        default=[],
        metavar="JSON",
        help="make it with these arguments: a list, or an object; both may be given",
    )
    parser.set_defaults(run=_approve)


def deny(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "The program gets ApprovalDeniedError, with the reason.",
        'holdfast deny 3f9a12bc -m "wrong account"',
    )
    _add_question(parser)
    parser.set_defaults(run=_deny)


def _add_question(parser: Parser) -> None:
    parser.add_argument("call", metavar="ID", help="the call, as holdfast pending names it")
    parser.add_argument("-m", "--reason", metavar="TEXT", help="why")


def _approve(options: Namespace, terminal: Terminal) -> int:
    with open_client(options) as client:
        question = _question(client, options.call)
        asked = client.approve(question.effect_id, options.reason, **edited(options.args))
    return _decided(asked, True, options, terminal)


def _deny(options: Namespace, terminal: Terminal) -> int:
    with open_client(options) as client:
        asked = client.deny(_question(client, options.call).effect_id, options.reason)
    return _decided(asked, False, options, terminal)


def edited(given: list[str]) -> dict[str, Any]:
    """The arguments that replace those of a call: by place, by name, or both."""
    found: dict[str, Any] = {}
    for text in given:
        try:
            value = from_json(json.loads(text), on_unknown="raw")
        except (ValueError, RecursionError, HoldfastError) as error:
            raise UsageError(f"--args {text[:60]}: {error}") from None
        if isinstance(value, list) and "args" not in found:
            found["args"] = tuple(value)
        elif isinstance(value, dict) and all(map(is_name, value)) and "kwargs" not in found:
            found["kwargs"] = value
        else:
            raise UsageError(
                f"--args {text[:60]}: give one list for arguments by place, or one object for "
                "arguments by name"
            )
    return found


def is_name(key: object) -> bool:
    """Whether a function can have an argument of that name."""
    return isinstance(key, str) and key.isidentifier()


def _question(client: SyncClient, given: str) -> Question:
    waiting = client.pending()
    found = [each for each in waiting if each.effect_id.startswith(given)]
    if len(found) > 1:
        listed = ", ".join(f"{each.effect_id[:_SHORT]} ({each})" for each in found)
        raise Ambiguous(f"{given!r} fits several calls: {clean(listed)}")
    if found:
        return found[0]
    from holdfast.session.approval import questions

    known = [
        q
        for q in client.runtime.run(questions(client.runtime.engine))
        if q.effect_id.startswith(given)
    ]
    if known:
        raise Refused(
            f"{clean(str(known[0]))} does not wait any more: it was decided of, or expired"
        )
    ids = [each.effect_id[:_SHORT] for each in waiting]
    raise NotFound(
        f"no call {given!r} waits for approval (holdfast pending lists them)",
        close_to(given[:_SHORT], ids),
    )


def _decided(asked: Question, allowed: bool, options: Namespace, terminal: Terminal) -> int:
    if terminal.json:
        terminal.emit({"call": question_json(asked), "allowed": allowed, "reason": options.reason})
    else:
        word = terminal.paint("allowed", "good") if allowed else terminal.paint("refused", "bad")
        terminal.line(f"{word}: {clean(str(asked))}")
    return OK


def question_json(asked: Question) -> dict[str, Any]:
    """A call that waits for approval, in JSON."""
    return {
        "id": asked.effect_id,
        "agent_id": asked.agent_id,
        "session_id": asked.session_id,
        "tool": asked.tool,
        "kind": asked.kind,
        "args": to_json(list(asked.args)),
        "kwargs": to_json(asked.kwargs),
        "asked_at": asked.asked_at.isoformat(),
        "expires_at": None if asked.expires_at is None else asked.expires_at.isoformat(),
    }
