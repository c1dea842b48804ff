"""How sessions of ADK, and the state that they share, are named and laid out in the store.

One session is ``{"app_name", "user_id", "id", "state", "events", "last_update_time"}``, its events
in ADK's own JSON. What ``app:`` and ``user:`` keys hold is shared, so it is a session of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.state import State
from pydantic_core import PydanticSerializationError, to_jsonable_python

from holdfast.adapters.kept import Kept
from holdfast.core.value_paths import child_path
from holdfast.errors import AdapterError, SerializationError

Shared = dict[str, dict[str, Any]]
"""What was set of a state, by what shares it: ``app``, ``user`` and ``session``."""


def session_record(app_name: str, user_id: str, session_id: str) -> str:
    """Return the name of a session, which other users and apps may call alike."""
    return "/".join(map(_quoted, (app_name, user_id, session_id)))


def app_record(app_name: str) -> str:
    """Return the name of the state that all sessions of an app share."""
    return f"app:{_quoted(app_name)}"


def user_record(app_name: str, user_id: str) -> str:
    """Return the name of the state that all sessions of a user share."""
    return f"user:{_quoted(app_name)}/{_quoted(user_id)}"


def _quoted(part: str) -> str:
    """Return a part of a name: what parts names is not in it."""
    return part.replace("%", "%25").replace("/", "%2F")


def is_of(kept: Kept, app_name: str, user_id: str) -> bool:
    """Return whether a session may be gone on with by a user of an app.

    One that came from another framework belongs to nobody yet.
    """
    owner = (field(kept, "app_name", None), field(kept, "user_id", None))
    return owner in ((app_name, user_id), (None, None))


def field(kept: Kept, name: str, default: Any) -> Any:
    """Return a field of a session as it is kept; an AdapterError if it is no session."""
    state = kept.state
    if not isinstance(state, dict) or not isinstance(state.get("events"), list):
        raise AdapterError(
            f"session {kept.info.session_id!r} holds no events of google_adk at "
            f"{kept.checkpoint_id}: roll it back to a checkpoint that does, or delete it"
        )
    return state.get(name, default)


def divided(state: Mapping[str, Any] | None) -> Shared:
    """Return a state, or what changed of one, by what shares it; ``temp:`` keys are not kept."""
    found: Shared = {"app": {}, "user": {}, "session": {}}
    for key, value in (state or {}).items():
        if key.startswith(State.TEMP_PREFIX):
            continue
        plain = _plain(key, value)
        if key.startswith(State.APP_PREFIX):
            found["app"][key.removeprefix(State.APP_PREFIX)] = plain
        elif key.startswith(State.USER_PREFIX):
            found["user"][key.removeprefix(State.USER_PREFIX)] = plain
        else:
            found["session"][key] = plain
    return found


def _plain(key: str, value: Any) -> Any:
    """Return a value as JSON, as ADK's own services keep it; what has no such form is an error."""
    try:
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        path = child_path("$.state", key)
        raise SerializationError(
            path, f"{error}; ADK keeps state as JSON: give it plain data"
        ) from error


def merged(
    own: Mapping[str, Any], app: Mapping[str, Any], user: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the state of a session as agents see it."""
    return {
        **own,
        **{State.APP_PREFIX + key: value for key, value in app.items()},
        **{State.USER_PREFIX + key: value for key, value in user.items()},
    }


def dumped(event: Event) -> dict[str, Any]:
    """Return an event in ADK's own JSON."""
    kept: dict[str, Any] = event.model_dump(mode="json", exclude_none=True)
    return kept


def loaded(kept: Kept, index: int, event: Any) -> Event:
    """Return an event that was kept; an AdapterError names where it is, if it is none."""
    try:
        return Event.model_validate(event)
    except ValueError as error:
        raise AdapterError(
            f"$.events[{index}] of session {kept.info.session_id!r} is no event of google_adk, at "
            f"checkpoint {kept.checkpoint_id}: {error}"
        ) from error


def chosen(events: list[Event], config: GetSessionConfig | None) -> list[Event]:
    """Return the events that were asked for."""
    if config is None:
        return events
    if config.after_timestamp:
        events = [event for event in events if event.timestamp >= config.after_timestamp]
    if config.num_recent_events is not None:
        events = (
            events[len(events) - config.num_recent_events :] if config.num_recent_events else []
        )
    return events


def tags_of(session: Session) -> dict[str, Any]:
    """Return by what a session is found: its own id, its app and its user."""
    return {
        "native_session_id": session.id,
        "app_name": session.app_name,
        "user_id": session.user_id,
    }


def step_name(event: Event) -> str:
    """Return what an event is, in the user's words."""
    if event.actions.rewind_before_invocation_id:
        return "rewind"
    if event.actions.compaction:
        return "compaction"
    if event.get_function_responses():
        return "tools"
    if event.content is None:
        return "end of agent" if event.actions.end_of_agent else "state"
    return "user prompt" if event.author == "user" else "model"
