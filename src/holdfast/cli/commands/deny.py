"""``holdfast deny``: refuse a call that waits."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.opening import open_client
from holdfast.cli.access.questions import add_question, find_question, tell_decision
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "The program gets ApprovalDeniedError, with the reason.",
        'holdfast deny 3f9a12bc -m "wrong account"',
    )
    add_question(parser)
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Refuse the call that is meant."""
    with open_client(options) as client:
        asked = client.deny(find_question(client, options.call).effect_id, options.reason)
    return tell_decision(asked, False, options, terminal)
