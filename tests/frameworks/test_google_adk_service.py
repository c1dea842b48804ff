"""The session service for ADK: what is kept, when it refuses, and what Holdfast does with it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.cli import service_registry
from google.adk.cli.utils.service_factory import create_session_service_from_options
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.sessions import Session
from google.genai import types

from holdfast import AdapterError, Client, InvalidArgumentError, SerializationError, SyncClient
from holdfast.adapters.google_adk import HoldfastSessionService, session_service
from holdfast.adapters.portable import conversation
from tests.frameworks.commands import command

WHO: dict[str, Any] = {"app_name": "shop", "user_id": "ann"}
S1: dict[str, Any] = {**WHO, "session_id": "s1"}
RECORD = "shop/ann/s1"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'h.db'}"


@pytest.fixture
async def service(url: str) -> AsyncIterator[HoldfastSessionService]:
    async with HoldfastSessionService(url=url) as opened:
        yield opened


def said(text: str, author: str = "user", delta: dict[str, Any] | None = None) -> Event:
    role = "user" if author == "user" else "model"
    return Event(
        invocation_id="e-1",
        author=author,
        content=types.Content(role=role, parts=[types.Part(text=text)]),
        actions=EventActions(state_delta=delta or {}),
    )


async def got(service: HoldfastSessionService, **names: Any) -> Session:
    session = await service.get_session(**{**S1, **names})
    assert session is not None
    return session


def texts(session: Session) -> list[Any]:
    return [event.content.parts[0].text for event in session.events if event.content]


# Sessions


async def test_a_session_id_is_of_one_user_of_one_app(service: HoldfastSessionService) -> None:
    names = [("shop", "ann"), ("shop", "bob"), ("shop/ann", "x"), ("shop", "ann/x")]
    for app, user in names:
        session = await service.create_session(app_name=app, user_id=user, session_id="s1")
        await service.append_event(session, said(f"{app} {user}"))

    with pytest.raises(InvalidArgumentError, match="several sessions are called 's1'"):
        conversation("s1", service.client)
    told = conversation("shop/bob/s1", service.client)
    assert told is not None
    assert told.messages[0]["parts"][0]["content"] == "shop bob"
    for app, user in names:
        assert texts(await got(service, app_name=app, user_id=user)) == [f"{app} {user}"]
        listed = await service.list_sessions(app_name=app, user_id=user)
        assert [session.id for session in listed.sessions] == ["s1"]


async def test_an_event_that_comes_again_is_kept_once(service: HoldfastSessionService) -> None:
    session, event = await service.create_session(**S1), said("one", delta={"count": 1})
    await service.append_event(session, event)
    await service.append_event(session, event)
    again = await got(service)
    await service.append_event(again, event.model_copy(deep=True))

    assert texts(await got(service)) == texts(again) == texts(session) == ["one"]
    await service.append_event(again, said("two"))
    assert texts(await got(service)) == ["one", "two"]


async def test_whoever_holds_an_older_session_is_told(service: HoldfastSessionService) -> None:
    first = await service.create_session(**S1)
    second = await got(service)
    await service.append_event(first, said("one"))

    with pytest.raises(StaleSessionError, match="get it again"):
        await service.append_event(second, said("two", delta={"app:n": 1}))

    assert texts(await got(service)) == ["one"]
    assert (await got(service)).state == {}


async def test_a_session_that_was_rolled_back_is_an_older_one(
    service: HoldfastSessionService,
) -> None:
    session = await service.create_session(**S1)
    await service.append_event(session, said("one"))
    await service.append_event(session, said("two"))
    with service.client.session("google_adk", RECORD) as run:
        run.rollback()

    with pytest.raises(StaleSessionError):
        await service.append_event(session, said("three"))

    fresh = await got(service)
    assert texts(fresh) == ["one"]
    await service.append_event(fresh, said("other"))
    assert texts(await got(service)) == ["one", "other"]


async def test_events_that_come_at_once_are_all_kept(service: HoldfastSessionService) -> None:
    session = await service.create_session(**S1)
    events = [said(str(n)) for n in range(20)]

    await asyncio.gather(*(service.append_event(session, event) for event in events))

    assert sorted(texts(await got(service)), key=int) == [str(n) for n in range(20)]
    assert [event.id for event in session.events] == [e.id for e in (await got(service)).events]


async def test_what_sessions_share_is_lost_by_no_writer(url: str) -> None:
    async def work(number: int) -> None:
        async with HoldfastSessionService(url=url) as service:
            session = await service.create_session(**WHO, session_id=f"s{number}")
            for n in range(5):
                delta = {f"app:a{number}{n}": n, f"user:u{number}{n}": n}
                await service.append_event(session, said("x", delta=delta))

    await asyncio.gather(*(work(number) for number in range(4)))

    async with HoldfastSessionService(url=url) as service:
        session = await got(service)
        assert sum(key.startswith("app:") for key in session.state) == 20
        assert len(await service.get_user_state(**WHO)) == 20
        assert "user:u00" not in await service.get_user_state(**WHO)
        assert await service.get_user_state(app_name="shop", user_id="bob") == {}


async def test_a_session_that_was_deleted_elsewhere_is_not_brought_back(url: str) -> None:
    async with HoldfastSessionService(url=url) as one, HoldfastSessionService(url=url) as other:
        session = await one.create_session(**S1)
        await one.append_event(session, said("secret"))
        await other.delete_session(**S1)

        with pytest.raises(SessionNotFoundError):
            await one.append_event(session, said("more"))

        assert await other.get_session(**S1) is None


async def test_state_is_kept_as_adk_keeps_it(service: HoldfastSessionService) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    session = await service.create_session(**S1, state={"at": at, "temp:x": 1, "app:n": 1})
    assert session.state == {"at": "2026-01-02T00:00:00Z", "app:n": 1}

    await service.append_event(session, said("one", delta={"temp:y": 1, "k": None}))
    assert session.state["temp:y"] == 1

    kept = await got(service)
    assert kept.state == {"at": "2026-01-02T00:00:00Z", "k": None, "app:n": 1}
    assert kept.events[0].actions.state_delta == {"k": None}


async def test_what_cannot_be_kept_is_named_and_nothing_is_written(
    service: HoldfastSessionService,
) -> None:
    session = await service.create_session(**S1)

    with pytest.raises(SerializationError, match=r"\$\.state\.tool"):
        await service.append_event(session, said("one", delta={"tool": print}))

    assert (await got(service)).events == []


async def test_bad_input_is_refused_in_words(service: HoldfastSessionService) -> None:
    with pytest.raises(InvalidArgumentError, match="session_id is a text, not int"):
        await service.get_session(**WHO, session_id=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="app_name is a text"):
        await service.create_session(app_name="", user_id="ann")
    with pytest.raises(InvalidArgumentError, match="a client or a url, not both"):
        HoldfastSessionService(service.client, url="memory://")
    with pytest.raises(InvalidArgumentError, match="Client"):
        HoldfastSessionService(7)  # type: ignore[arg-type]
    assert await service.get_session(**WHO, session_id="none") is None
    await service.delete_session(**WHO, session_id="none")
    assert (await service.create_session(**WHO)).id
    await service.create_session(**WHO, session_id=" s1 ")
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**S1)


async def test_a_session_of_another_framework_is_refused(service: HoldfastSessionService) -> None:
    service.client.save("google_adk", "strands", {"entries": {}}, session_id=RECORD)
    service.client.save("google_adk", "google_adk", {"other": 1}, session_id="shop/ann/s2")

    with pytest.raises(AdapterError, match="is of strands, not of google_adk"):
        await service.get_session(**S1)
    with pytest.raises(AdapterError, match="holds no events"):
        await service.get_session(**WHO, session_id="s2")


async def test_a_damaged_event_is_named(service: HoldfastSessionService) -> None:
    state = {"app_name": "shop", "user_id": "ann", "id": "s1", "state": {}, "events": [{"id": 7}]}
    service.client.save("google_adk", "google_adk", state, session_id=RECORD)

    with pytest.raises(AdapterError, match=r"\$\.events\[0\] of session 'shop/ann/s1'"):
        await service.get_session(**S1)


async def test_a_store_that_fails_is_an_error_that_is_seen(url: str) -> None:
    client = Client.open(url)
    service = HoldfastSessionService(client)
    session = await service.create_session(**S1)
    await client.close()

    with pytest.raises(Exception, match="closed"):
        await service.append_event(session, said("one"))

    assert session.events == []


async def test_a_service_works_on_a_client_and_leaves_it_open() -> None:
    async with Client.memory() as client:
        async with HoldfastSessionService(client) as service:
            await service.create_session(**S1)
        assert len(await client.sessions()) == 1


# What Holdfast does with them


async def test_every_event_is_a_checkpoint_that_says_what_it_is(
    service: HoldfastSessionService,
) -> None:
    session = await service.create_session(**S1)
    await service.append_event(session, said("hello"))
    await service.append_event(session, said("hi", "clerk"))

    steps = service.client.timeline("google_adk", RECORD)
    assert [step.step_name for step in steps] == ["model", "user prompt", "created"]
    assert steps[0].metadata["native_session_id"] == "s1"
    assert steps[0].metadata["app_name"] == "shop"
    assert steps[0].metadata["user_id"] == "ann"
    assert "$.events[1]" in str(service.client.diff(steps[1].checkpoint_id, steps[0].checkpoint_id))
    found = conversation("s1", service.client)
    assert found is not None
    assert [message["role"] for message in found.messages] == ["user", "assistant"]


async def test_a_fork_goes_on_under_the_id_it_was_given(service: HoldfastSessionService) -> None:
    session = await service.create_session(**S1)
    await service.append_event(session, said("one"))
    await service.append_event(session, said("two"))
    steps = service.client.timeline("google_adk", RECORD)
    service.client.fork(steps[1].checkpoint_id, session_id="try-2")

    told = conversation("s1", service.client)  # not the fork
    assert told is not None
    assert len(told.messages[0]["parts"]) == 2
    fork = await got(service, session_id="try-2")
    assert texts(fork) == ["one"]
    await service.append_event(fork, said("other"))

    assert texts(await got(service, session_id="try-2")) == ["one", "other"]
    assert texts(await got(service)) == ["one", "two"]
    assert await service.get_session(app_name="shop", user_id="bob", session_id="try-2") is None
    listed = await service.list_sessions(**WHO)
    assert [each.id for each in listed.sessions] == ["s1", "try-2"]
    await service.delete_session(**WHO, session_id="try-2")
    assert await service.get_session(**WHO, session_id="try-2") is None


async def test_the_command_line_rolls_a_session_back(url: str) -> None:
    async with HoldfastSessionService(url=url) as service:
        session = await service.create_session(**S1)
        await service.append_event(session, said("one"))
        await service.append_event(session, said("two"))

    command("rollback", "@-", "--store", url, "--session", RECORD, "--yes")

    async with HoldfastSessionService(url=url) as service:
        assert texts(await got(service)) == ["one"]
        await service.append_event(await got(service), said("three"))
        assert texts(await got(service)) == ["one", "three"]


async def test_files_go_with_events(url: str, tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()
    async with HoldfastSessionService(url=url, workspace=place) as service:
        session = await service.create_session(**S1)
        for text in ("one", "two"):
            (place / "notes.txt").write_text(text)
            await service.append_event(session, said(text, delta={"app:n": text}))

    with (
        SyncClient.open(url) as client,
        client.session("google_adk", RECORD, workspace=place) as run,
    ):
        run.rollback()

    assert (place / "notes.txt").read_text() == "one"


# services.yaml


async def test_adk_finds_the_service_by_its_services_yaml(tmp_path: Path, url: str) -> None:
    (tmp_path / "services.yaml").write_text(
        "services:\n  - scheme: holdfast\n    type: session\n"
        "    class: holdfast.adapters.google_adk.session_service\n"
    )
    service_registry.load_services_module(str(tmp_path))

    service = create_session_service_from_options(
        base_dir=tmp_path, session_service_uri=f"holdfast:{url}"
    )

    assert isinstance(service, HoldfastSessionService)
    assert service.client.url == url
    await service.create_session(**S1)
    await service.close()


def test_a_uri_that_names_no_store_of_ours_is_refused(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    with pytest.raises(InvalidArgumentError, match="holdfast:sqlite"):
        session_service("sqlite:///x.db")
    monkeypatch.setenv("HOLDFAST_URL", url)
    for uri in ("holdfast:", "holdfast://", f"holdfast+{url}", f"holdfast://{url}"):
        assert session_service(uri, agents_dir="x").client.url == url
