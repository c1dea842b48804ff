"""Calls that wait for approval: which one is meant, and what is said of it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import OK, Ambiguous, NotFound, Refused, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, close_to
from holdfast.core.json_form import from_json, to_json
from holdfast.errors import HoldfastError
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.session.approval import Question

SHORT = 8
SHORTEST = 6


def add_question(parser: Parser) -> None:
    parser.add_argument("call", metavar="ID", help="the call, as holdfast pending names it")
    parser.add_argument("-m", "--reason", metavar="TEXT", help="why")


def check_call(given: str) -> None:
    """Refuse the beginning of an id that is so short that it may mean any call."""
    if len(given) < SHORTEST:
        raise UsageError(f"give at least {SHORTEST} characters of the id, not {given!r}")


def find_question(client: SyncClient, given: str) -> Question:
    """Return the call that waits for approval and is meant by the beginning of its id."""
    check_call(given)
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
        terminal.emit(decided_json(asked, allowed, options.reason))
    else:
        word = terminal.paint("allowed", "good") if allowed else terminal.paint("refused", "bad")
        terminal.line(f"{word}: {clean(str(asked))}")
    return OK


def decided_json(asked: Question, allowed: bool, reason: str | None) -> dict[str, Any]:
    """Return what was decided of a call, in JSON."""
    return {"call": question_json(asked), "allowed": allowed, "reason": reason}


def replaced(values: list[Any]) -> dict[str, Any]:
    """Return the arguments that replace those of a call: by place, by name, or both.

    They are in the typed form of JSON.
    """
    found: dict[str, Any] = {}
    for each in values:
        try:
            value = from_json(each, on_unknown="raw")
        except (ValueError, RecursionError, HoldfastError) as error:
            raise UsageError(f"other arguments: {error}") from None
        if isinstance(value, list) and "args" not in found:
            found["args"] = tuple(value)
        elif isinstance(value, dict) and all(map(is_name, value)) and "kwargs" not in found:
            found["kwargs"] = value
        else:
            raise UsageError(
                "give one list for arguments by place, or one object for arguments by name"
            )
    return found


def is_name(key: object) -> bool:
    """Return whether a function can have an argument of that name."""
    return isinstance(key, str) and key.isidentifier()


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
