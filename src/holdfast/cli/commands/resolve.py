"""``holdfast resolve``: decide of a call of unknown end."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from holdfast.cli.access.opening import open_client
from holdfast.cli.access.unknown_calls import NOT_DONE, find_unknown
from holdfast.cli.access.waiting import call_json
from holdfast.cli.exits import OK, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "A call was begun and its process was cut off before it was known how it ended: it may "
        "have taken\nplace or not. Look, then say which. The program finds that when it is "
        "resumed; nothing is called now.\n`holdfast status` lists these calls.",
        "holdfast resolve 3f9a12bc --done '{\"id\": 17}'",
        'holdfast resolve 3f9a12bc --failed "the bank knows nothing of it"',
        "holdfast resolve 3f9a12bc --retry",
    )
    parser.add_argument("call", metavar="ID", help="the call, as holdfast status names it")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--done", metavar="VALUE", help="it took place and gave this: JSON, or else a text"
    )
    which.add_argument(
        "--failed",
        nargs="?",
        const=NOT_DONE,
        metavar="REASON",
        help="it did not take place; the program gets an error that says why",
    )
    which.add_argument(
        "--retry", action="store_true", help="have it made again, with the same idempotency key"
    )
    parser.add_argument(
        "--takeover",
        action="store_true",
        help="take the session from a process that was not heard of for long",
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Record how the call ended."""
    said: dict[str, Any] = {"retry": True}
    outcome = "retry"
    if options.done is not None:
        outcome, said = "done", {"done": value_of(options.done)}
    elif options.failed is not None:
        outcome, said = "failed", {"failed": options.failed}
    with open_client(options) as client:
        call = find_unknown(client, options.call)
        client.resolve(call.effect_id, takeover=options.takeover, **said)
    if terminal.json:
        terminal.emit({"call": call_json(call), "outcome": outcome})
        return OK
    told = {"done": "is done", "failed": "failed", "retry": "is made again"}[outcome]
    terminal.line(f"{clean(str(call))} {terminal.paint(told, 'good')}, when its program goes on")
    return OK


def value_of(text: str) -> Any:
    """Return what a user gave as a value: JSON, or the text itself where it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise UsageError("--done: that nests too deep") from None
    except ValueError:
        return text
