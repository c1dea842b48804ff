"""One more event in a session: refused where the session was changed since it was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import Session

from holdfast.adapters.google_adk import records


class AlreadyKeptError(Exception):
    """The event is there already; ``state`` has it."""

    def __init__(self, state: Any) -> None:
        self.state = state


class Added:
    """Makes the next state of a session of the one before: with an event, and what it changed."""

    def __init__(self, session: Session, event: Event, delta: Mapping[str, Any]) -> None:
        self.session = session
        self.event = event
        self.delta = delta

    def is_in(self, state: Any) -> bool:
        """Return whether the event is kept already; an error if it may not be added."""
        if state is None:  # deleted meanwhile
            raise SessionNotFoundError(f"Session {self.session.id} not found.")
        if any(
            each.get("id") == self.event.id and Event.model_validate(each) == self.event
            for each in reversed(state["events"])
        ):
            return True
        _check_fresh(self.session, state)
        return False

    def __call__(self, state: Any) -> dict[str, Any]:
        if self.is_in(state):
            raise AlreadyKeptError(state)
        return {
            **state,
            "app_name": self.session.app_name,
            "user_id": self.session.user_id,
            "id": self.session.id,
            "state": {**state.get("state", {}), **self.delta},
            "events": [*state["events"], records.dumped(self.event)],
            "last_update_time": self.event.timestamp,
        }


def _last_id(state: Mapping[str, Any]) -> str:
    """Return what tells one state of a session from another: the id of its last event."""
    return str(state["events"][-1].get("id")) if state["events"] else "created"


def mark(session: Session, state: Mapping[str, Any]) -> None:
    """Let a session know the state of which it is a copy, where ADK's own services note it."""
    session._storage_update_marker = _last_id(state)


def _check_fresh(session: Session, state: Mapping[str, Any]) -> None:
    """Refuse an event for a session that was changed, or rolled back, since it was read."""
    marker = session._storage_update_marker
    stored = state.get("last_update_time", 0.0)
    is_stale = stored > session.last_update_time if marker is None else marker != _last_id(state)
    if is_stale:
        raise StaleSessionError(
            f"Session {session.id} was changed or rolled back since it was read: get it again "
            "(get_session), then append the event."
        )
