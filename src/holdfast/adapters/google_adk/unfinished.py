"""Which invocation of a session was cut off, so that it is gone on with and not begun anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.events import Event
from google.genai import types


def invocation(
    events: Sequence[Event], message: types.Content | None = None, *, root: str | None = None
) -> str | None:
    """Return the id of the last invocation if it did not come to its end; None if it did.

    With a message only if that one began it. ``root`` is the agent at whose end an invocation ends,
    where that is not the last word of any.
    """
    live = _not_rewound(events)
    if not live:
        return None
    last = live[-1].invocation_id
    own = [event for event in live if event.invocation_id == last]
    prompt = next((e.content for e in own if e.content is not None and _is_user(e)), None)
    if prompt is None or (message is not None and not is_same(prompt, message)):
        return None
    return None if _has_ended(own, root) else last


def _has_ended(events: Sequence[Event], root: str | None) -> bool:
    if root is not None:
        return any(event.actions.end_of_agent and event.author == root for event in events)
    said = [event for event in events if event.content is not None or event.error_code]
    return bool(said) and not _is_user(said[-1]) and said[-1].is_final_response()


def _is_user(event: Event) -> bool:
    """Return whether a person said it; what came from another framework is authored by the user."""
    return event.author == "user" and (event.content is None or event.content.role != "model")


def _not_rewound(events: Sequence[Event]) -> list[Event]:
    """Return the events that no later rewind took back."""
    live: list[Event] = []
    for event in events:
        before = event.actions.rewind_before_invocation_id
        if before is None:
            live.append(event)
        else:
            at = next((i for i, each in enumerate(live) if each.invocation_id == before), len(live))
            del live[at:]
    return live


def is_same(first: types.Content, second: types.Content) -> bool:
    """Return whether two messages say the same, whatever role the caller wrote."""
    return [_plain(part) for part in first.parts or []] == [
        _plain(part) for part in second.parts or []
    ]


def _plain(part: types.Part) -> Any:
    return part.model_dump(mode="json", exclude_none=True)


class Resumed:
    """The prompts that runs go on with, which ADK is about to add a second time."""

    def __init__(self) -> None:
        self._prompts: dict[str, tuple[str, types.Content]] = {}

    def expect(self, record: str, invocation_id: str, prompt: types.Content) -> None:
        """Know that a session goes on with an invocation that this prompt began."""
        self._prompts[record] = (invocation_id, prompt)

    def is_prompt(self, record: str, event: Event) -> bool:
        """Return whether an event is such a prompt, that is there already; told once."""
        expected = self._prompts.get(record)
        if expected is None or event.author != "user" or event.content is None:
            return False
        del self._prompts[record]
        return expected[0] == event.invocation_id and is_same(expected[1], event.content)

    def forget(self, record: str) -> None:
        """Know that the run is over."""
        self._prompts.pop(record, None)
