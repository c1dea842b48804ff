"""Calls that wait for approval: which one is meant, and what is said of it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import OK, Ambiguous, NotFound, Refused
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, close_to
from holdfast.core.json_form import to_json
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.session.approval import Question

SHORT = 8


def add_question(parser: Parser) -> None:
    parser.add_argument("call", metavar="ID", help="the call, as holdfast pending names it")
    parser.add_argument("-m", "--reason", metavar="TEXT", help="why")


def find_question(client: SyncClient, given: str) -> Question:
    waiting = client.pending()
    found = [each for each in waiting if each.effect_id.startswith(given)]
    if len(found) > 1:
        listed = ", ".join(f"{each.effect_id[:SHORT]} ({each})" for each in found)
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
    ids = [each.effect_id[:SHORT] for each in waiting]
    raise NotFound(
        f"no call {given!r} waits for approval (holdfast pending lists them)",
        close_to(given[:SHORT], ids),
    )


def tell_decision(asked: Question, allowed: bool, options: Namespace, terminal: Terminal) -> int:
    if terminal.json:
        terminal.emit({"call": question_json(asked), "allowed": allowed, "reason": options.reason})
    else:
        word = terminal.paint("allowed", "good") if allowed else terminal.paint("refused", "bad")
        terminal.line(f"{word}: {clean(str(asked))}")
    return OK


def question_json(asked: Question) -> dict[str, Any]:
    """Return a call that waits for approval, in JSON."""
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
