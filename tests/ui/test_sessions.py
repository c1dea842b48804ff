"""Sessions are listed, searched and paged, each with what is to be said of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.ui.shapes import CONDITIONS
from tests.ui import stories
from tests.ui.kit import Api
from tests.ui.stories import AGENT, SESSION

NEWEST_FIRST = [SESSION, stories.HOSTILE, "order-7", "news"]


@pytest.fixture
def many(tmp_path: Path) -> Iterator[SyncClient]:
    """A store with sessions `s0` to `s9`, saved in this order."""
    with SyncClient.sqlite(tmp_path / "many.db") as client:
        for number in range(10):
            client.save("agent", execution_state={}, session_id=f"s{number}")
        yield client


def named(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["session_id"] for each in answer["sessions"]]


def test_sessions_come_newest_first_with_their_conditions(api: Api) -> None:
    found = {each["session_id"]: each for each in api.get("sessions")["sessions"]}

    assert list(found)[:4] == NEWEST_FIRST
    assert found["news"]["conditions"] == ["waiting"]
    assert "unknown" in found["order-7"]["conditions"]
    assert found[SESSION]["progress"] == {"done": 2, "total": 4}
    assert found[stories.HOSTILE]["agent_id"] == "hostile"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"search": "ORDER"}, ["order-7"]),
        ({"search": "rewrite"}, ["bolder"]),
        ({"search": "team=core"}, [SESSION]),
        ({"agent": "mailer"}, ["news"]),
        ({"tag": "team=core"}, [SESSION]),
        ({"tag": ["team=core", "team=other"]}, []),
        ({"framework": "langgraph"}, []),
        ({"since": "2999-01-01"}, []),
        ({"until": "2000-01-01T00:00Z"}, []),
        ({"condition": "waiting"}, ["news"]),
        ({"condition": "unknown"}, ["order-7"]),
        ({"condition": "handed off"}, [SESSION]),
        ({"condition": "running"}, []),
        ({"condition": "rolled back"}, []),
    ],
)
def test_sessions_are_found_by_what_is_said_of_them(
    api: Api, asked: dict[str, str], expected: list[str]
) -> None:
    assert named(api.get("sessions", **asked)) == expected


def test_a_session_in_use_is_running_and_says_who_holds_it(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "held.db") as client, client.session("coder", "busy") as run:
        run.checkpoint("first")
        api = Api(client)

        assert named(api.get("sessions", condition="running")) == ["busy"]
        assert api.get("session", session="busy")["session"]["holder"]


def test_a_session_that_went_back_says_so_until_it_goes_on(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "back.db") as client:
        with client.session("coder", "s") as run:
            run.checkpoint("first")
            run.checkpoint("second")
            run.rollback(to="first")
        api = Api(client)
        assert api.get("session", session="s")["session"]["undo"]["kind"] == "rollback"
        assert "rolled back" not in api.get("session", session="s")["session"]["conditions"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_condition_can_be_asked_for(api: Api, condition: str) -> None:
    for each in api.get("sessions", condition=condition)["sessions"]:
        assert condition in each["conditions"]


def test_a_condition_that_there_is_not_is_refused(api: Api) -> None:
    assert "condition is one of" in api.refused("sessions", 400, condition="happy")["message"]


def test_pages_hold_every_session_once(many: SyncClient) -> None:
    api, found, cursor = Api(many), [], None
    while True:
        page = api.get("sessions", limit=3, cursor=cursor)
        found += named(page)
        cursor = page["next"]
        if cursor is None:
            break

    assert found == [f"s{number}" for number in range(9, -1, -1)]
    assert page["total"] == 10


def test_a_session_that_is_touched_between_pages_hides_no_other(many: SyncClient) -> None:
    api = Api(many)
    first = api.get("sessions", limit=3)
    many.save("agent", execution_state={}, session_id="s7")  # the last of the page

    second = api.get("sessions", limit=3, cursor=first["next"])

    assert named(second) == ["s6", "s5", "s4"]


@pytest.mark.parametrize("cursor", ["x", "e30", "WzFd", "W10", "bnVsbA", "é", "WyJhIiwgImIiXQ"])
def test_a_forged_cursor_is_refused(many: SyncClient, cursor: str) -> None:
    assert "cursor" in Api(many).refused("sessions", 400, cursor=cursor)["message"]


def test_where_a_session_came_from_is_told(api: Api) -> None:
    found = api.get("session", agent=AGENT, session="bolder")["session"]

    assert found["origin"]["session_id"] == SESSION
    assert api.get("session", agent=AGENT, session=SESSION)["session"]["origin"] is None


def test_a_session_that_is_not_there_is_said(api: Api) -> None:
    error = api.refused("session", 404, agent=AGENT, session="fix-43")

    assert "fix-43" in error["message"]


def test_strategies_of_an_exploration_are_known_as_such(api: Api) -> None:
    names = [each for each in named(api.get("sessions")) if each.startswith("trip.")]

    assert len(names) == 2
    for name in names:
        found = api.get("session", agent="traveller", session=name)["session"]
        assert found["exploration"]["name"] in ("train", "plane")


def test_a_tag_is_asked_for_by_its_name_alone_too(many: SyncClient) -> None:
    many.save("agent", execution_state={}, session_id="tagged", team="core")
    api = Api(many)

    assert named(api.get("sessions", tag="team")) == ["tagged"]
    assert named(api.get("sessions", tag="team=core")) == ["tagged"]
    assert named(api.get("sessions", tag="team=other")) == []
