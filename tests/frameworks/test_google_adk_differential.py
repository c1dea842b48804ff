"""The same operations on Holdfast's session service and on ADK's own give the same."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from holdfast.adapters.google_adk import HoldfastSessionService

APPS, USERS, IDS = ("shop", "a/b"), ("ann", "bob%2F"), ("s1", "s2", "ü 3")


@pytest.fixture
async def ours(tmp_path: Path) -> AsyncIterator[HoldfastSessionService]:
    async with HoldfastSessionService(url=f"sqlite:///{tmp_path / 'h.db'}") as service:
        yield service


@pytest.fixture(params=["in memory", "sqlite"])
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> BaseSessionService:
    if request.param == "sqlite":
        return SqliteSessionService(str(tmp_path / "adk.db"))
    return InMemorySessionService()


def shown(session: Session | None) -> Any:
    """Return what is to be the same of a session: all but when it was created."""
    if session is None:
        return None
    return {
        "names": (session.app_name, session.user_id, session.id),
        "state": session.state,
        "events": [event.model_dump(mode="json", exclude_none=True) for event in session.events],
        "last_update_time": session.last_update_time if session.events else None,
    }


class Pair:
    """Two services that are asked the same, in the same order."""

    def __init__(self, one: BaseSessionService, other: BaseSessionService) -> None:
        self.services = (one, other)
        self.clock = 1_700_000_000.0

    async def both(self, method: str, **arguments: Any) -> Any:
        """Ask both, and return what both say, or the kind of error that both raise."""
        answers = []
        for service in self.services:
            try:
                answers.append(await getattr(service, method)(**arguments))
            except (AlreadyExistsError, SessionNotFoundError) as error:
                answers.append(type(error))
        plain = [_plain(answer) for answer in answers]
        assert plain[0] == plain[1], (method, arguments)
        return plain[0]

    async def append(self, names: dict[str, str], event: Event) -> None:
        """Append an event to a session that is read from each, and compare what is then there."""
        for service in self.services:
            session = await service.get_session(**names)
            if session is None:
                session = Session(**_renamed(names), last_update_time=self.clock)
                if not event.partial:
                    with pytest.raises(SessionNotFoundError):
                        await service.append_event(session, event.model_copy(deep=True))
            else:
                await service.append_event(session, event.model_copy(deep=True))
                stored = await service.get_session(**names)
                assert stored is not None
                kept = {k: v for k, v in session.state.items() if not k.startswith("temp:")}
                assert kept == stored.state
        await self.both("get_session", **names)


def _renamed(names: dict[str, str]) -> dict[str, str]:
    return {"app_name": names["app_name"], "user_id": names["user_id"], "id": names["session_id"]}


def _plain(answer: Any) -> Any:
    if isinstance(answer, Session):
        return shown(answer)
    if hasattr(answer, "sessions"):
        # Those without events are ordered by when they were created, which differs by a moment.
        return sorted((shown(each)["names"], shown(each)["state"]) for each in answer.sessions)
    return answer


def an_event(draw: random.Random, clock: float) -> Event:
    delta = {
        f"{draw.choice(['', 'app:', 'user:', 'temp:'])}k{draw.randrange(3)}": draw.choice(
            [1, "ü", [1, {"a": None}], {"deep": [1]}, True, None, 0.5]
        )
        for _ in range(draw.randrange(3))
    }
    parts = draw.choice(
        [
            [types.Part(text="hello ✓")],
            [types.Part(function_call=types.FunctionCall(id="c1", name="f", args={"x": [1]}))],
            [types.Part(inline_data=types.Blob(data=b"\xff\xfe\xfb", mime_type="image/png"))],
            [types.Part(text="hm", thought=True, thought_signature=b"\xfb\xff")],
        ]
    )
    return Event(
        invocation_id=f"e-{draw.randrange(4)}",
        author=draw.choice(["user", "clerk"]),
        content=None if draw.random() < 0.2 else types.Content(role="model", parts=parts),
        actions=EventActions(state_delta=delta),
        timestamp=clock,
        partial=draw.random() < 0.1 or None,
    )


@pytest.mark.parametrize("seed", range(6))
async def test_what_adk_does_with_its_own_services_it_does_with_ours(
    ours: HoldfastSessionService, theirs: BaseSessionService, seed: int
) -> None:
    draw, pair = random.Random(seed), Pair(ours, theirs)
    for _ in range(60):
        pair.clock += 1
        who = {"app_name": draw.choice(APPS), "user_id": draw.choice(USERS)}
        names = {**who, "session_id": draw.choice(IDS)}
        does = draw.choice(["create", "append", "append", "append", "get", "list", "user", "del"])
        if does == "create":
            given = an_event(draw, pair.clock).actions.state_delta
            await pair.both("create_session", **names, state=given)
        elif does == "append":
            await pair.append(names, an_event(draw, pair.clock))
        elif does == "get":
            config = GetSessionConfig(
                num_recent_events=draw.choice([None, 0, 1, 3]),
                after_timestamp=draw.choice([None, pair.clock - 10]),
            )
            await pair.both("get_session", **names, config=config)
        elif does == "list":
            await pair.both("list_sessions", **who)
            await pair.both("list_sessions", app_name=who["app_name"])
        elif does == "user":
            await pair.both("get_user_state", **who)
        elif draw.random() < 0.3:
            await pair.both("delete_session", **names)


async def test_sessions_are_listed_by_when_they_were_touched(
    ours: HoldfastSessionService, theirs: BaseSessionService
) -> None:
    for service in (ours, theirs):
        for own_id in ("b", "a", "c"):
            await service.create_session(app_name="shop", user_id="ann", session_id=own_id)
        for at, own_id in ((3e9, "b"), (4e9, "c"), (5e9, "a")):
            session = await service.get_session(app_name="shop", user_id="ann", session_id=own_id)
            assert session is not None
            await service.append_event(session, Event(author="user", timestamp=at))

        listed = await service.list_sessions(app_name="shop", user_id="ann")

        assert [session.id for session in listed.sessions] == ["b", "c", "a"]
        assert all(session.events == [] for session in listed.sessions)
