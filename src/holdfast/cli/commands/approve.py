"""``holdfast approve``: allow a call that waits."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from holdfast.cli.access.opening import open_client
from holdfast.cli.access.questions import add_question, find_question, replaced, tell_decision
from holdfast.cli.exits import UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "The decision is bound to the exact call, and is kept: the program that asked may be "
        "restarted.\nWith --args it is made with other arguments: a list replaces those given by "
        "place, an object those\ngiven by name. They are written as `holdfast pending --json` "
        "shows them.",
        "holdfast approve 3f9a12bc",
        'holdfast approve 3f9a12bc -m "checked the amount"',
        "holdfast approve 3f9a12bc --args '[\"anna\", 20]'",
    )
    add_question(parser)
    parser.add_argument(
        "--args",
        action="append",
        default=[],
        metavar="JSON",
        help="make it with these arguments: a list, or an object; both may be given",
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Allow the call that is meant."""
    with open_client(options) as client:
        question = find_question(client, options.call)
        asked = client.approve(question.effect_id, options.reason, **edited(options.args))
    return tell_decision(asked, True, options, terminal)


def edited(given: list[str]) -> dict[str, Any]:
    """Return the arguments that replace those of a call: by place, by name, or both."""
    values = []
    for text in given:
        try:
            values.append(json.loads(text))
            replaced(values)
        except (ValueError, RecursionError, UsageError) as error:
            raise UsageError(f"--args {text[:60]}: {error}") from None
    return replaced(values)
