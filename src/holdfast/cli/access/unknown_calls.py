"""Calls of unknown end: which one is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.access.questions import SHORT, check_call
from holdfast.cli.exits import Ambiguous, NotFound
from holdfast.cli.parsing import close_to
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.session.unknown import UnknownCall

NOT_DONE = "it did not take place"
"""What the program is told of a call that failed, where nobody says more."""


def find_unknown(client: SyncClient, given: str) -> UnknownCall:
    """Return the call of unknown end that is meant by the beginning of its id."""
    from holdfast.session.unknown import unknown_calls

    check_call(given)
    waiting = client.runtime.run(unknown_calls(client.runtime.engine, also_held=True))
    found = [call for call in waiting if call.effect_id.startswith(given)]
    if len(found) > 1:
        listed = ", ".join(f"{call.effect_id[:SHORT]} ({call})" for call in found)
        raise Ambiguous(f"{given!r} fits several calls: {clean(listed)}")
    if not found:
        raise NotFound(
            f"no call {given!r} is of unknown end (holdfast status lists them)",
            close_to(given[:SHORT], [call.effect_id[:SHORT] for call in waiting]),
        )
    return found[0]
