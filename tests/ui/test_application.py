"""The HTTP interface as programs meet it: bodies, errors, what is opened and what is closed."""

import asyncio
import gc
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, InvalidArgumentError, StoreClosedError, SyncClient
from holdfast.stores import MemoryStore, WrappedStore
from holdfast.ui import app, application
from holdfast.ui.application import LARGEST_BODY, ROUTES
from holdfast.ui.routes import Content, Route
from tests.clients import url_of
from tests.redis_servers import PASSWORD, RedisServer
from tests.ui.kit import BASE, Api, Http

JSON = {"content-type": "application/json"}


@pytest.fixture
def client() -> Iterator[SyncClient]:
    with SyncClient.open("memory://") as client:
        client.save("agent", session_id="s", execution_state={"x": 1})
        yield client


@pytest.fixture
def told() -> list[Any]:
    """What was given to the route ``told``."""
    return []


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch, client: SyncClient, told: list[Any]) -> Http:
    """The application, with a route that keeps what it is given."""

    def keep(_: SyncClient, given: Any) -> dict[str, Any]:
        told.append(given.raw("x"))
        return {}

    route = Route("told", keep, "keeps what it is told", {"x": "anything"}, {}, writes=True)
    monkeypatch.setattr(application, "ROUTES", (*ROUTES, route))
    return Http(app(client))


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"nothing", b'{"x": NaN}', b'{"x": -Infinity}', b'{"x": 1e999}', b"\xff\xfe"),
        *(b'{"x": "\\ud800"}', b'{"\\udfff": 1}', b'{"x": ' + b"9" * 5000 + b"}"),
        b'{"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"x": ' + b'{"y": ' * 100_000 + b"1" + b"}" * 100_001,
        *(b"[]", b'"x"', b"1", b"null", b'{"x": 1, "x": 2}', b'{"x": {"y": 1, "y": 1}}'),
    ],
)
def test_a_body_that_is_no_plain_object_is_refused(
    http: Http, told: list[Any], body: bytes
) -> None:
    answer = http.post(BASE + "told", content=body, headers=JSON)

    assert answer.status_code == 400
    assert answer.json()["error"]["kind"] == "usage"
    assert told == []


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_a_body_of_json_is_read(http: Http, told: list[Any], kind: str) -> None:
    body = json.dumps({"x": ["é", 1.5, None]}).encode()

    answer = http.post(BASE + "told", content=body, headers={"content-type": kind})

    assert (answer.status_code, told) == (200, [["é", 1.5, None]])


def test_a_body_that_is_too_large_is_not_read_to_its_end(http: Http, told: list[Any]) -> None:
    read = 0

    async def parts() -> Any:
        nonlocal read
        for _ in range(1000):
            read += 100_000
            yield b" " * 100_000

    answer = http.post(BASE + "told", content=parts(), headers=JSON)

    assert answer.status_code == 413
    assert told == []
    assert LARGEST_BODY < read <= LARGEST_BODY + 200_000 or read == 100_000_000


def test_the_largest_body_is_read(http: Http, told: list[Any]) -> None:
    body = json.dumps({"x": "y" * (LARGEST_BODY - 9)}).encode()
    assert len(body) == LARGEST_BODY

    assert http.post(BASE + "told", content=body, headers=JSON).status_code == 200
    assert http.post(BASE + "told", content=body + b" ", headers=JSON).status_code == 413


def test_a_client_that_goes_in_the_middle_of_a_body_is_no_fault(
    http: Http, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    messages = iter(
        [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        pytest.fail("nobody is there to be answered")

    scope = {
        **{"type": "http", "method": "POST", "path": BASE + "told", "query_string": b""},
        "headers": [(b"host", b"x"), (b"content-type", b"application/json")],
    }
    asyncio.run(http.application(scope, receive, send))

    assert told == []
    assert caplog.records == []


@pytest.mark.parametrize(
    "path", ["", "nothing", "sessions/", "sessions/x", "%2e%2e", "%00", "x" * 5000]
)
def test_an_unknown_address_of_the_interface_says_so_in_json(client: SyncClient, path: str) -> None:
    said = Api(client).refused(path, 404)

    assert said == {"code": 3, "kind": "not_found", "message": "there is nothing at this address"}


def test_an_unknown_page_says_so_to_people(client: SyncClient) -> None:
    answer = Http(app(client)).get("/nothing")

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_an_address_that_is_asked_otherwise_says_so_in_json(
    client: SyncClient, method: str
) -> None:
    answer = Http(app(client)).request(method, BASE + "about")

    assert (answer.status_code, answer.json()["error"]["kind"]) == (405, "usage")
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize("path", ["about", "sessions", "openapi.json"])
def test_what_can_be_asked_can_be_asked_for_its_head(client: SyncClient, path: str) -> None:
    answer = Http(app(client)).request("HEAD", BASE + path)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"


def test_about_says_what_this_is_and_what_may_be_done(client: SyncClient) -> None:
    about = Api(client).get("about")

    assert about["store"] == "the memory store"
    assert about["verbs"] == sorted(route.path for route in ROUTES if route.writes)
    assert Api(client, read_only=True).get("about")["verbs"] == []


def test_a_given_client_stays_open(client: SyncClient) -> None:
    made = app(client)
    Http(made).get(BASE + "about")
    _live(made)

    assert client.find()


def test_a_page_over_an_async_client_asks_the_same_store() -> None:
    async def saved() -> Any:
        client = Client.open("memory://")
        await client.save("agent", session_id="s", execution_state={})
        return app(client)

    rows = Http(asyncio.run(saved())).get(BASE + "sessions").json()["sessions"]

    assert [row["session_id"] for row in rows] == ["s"]


@pytest.mark.parametrize("given", [None, 1, MemoryStore(), b"memory://"])
def test_what_is_no_client_and_no_url_is_refused(given: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="app\\(\\) takes a client or the URL"):
        app(given)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[SyncClient]:
    """Every client that is opened by a URL meanwhile."""
    found = []
    really = SyncClient.open

    def kept(url: str | None = None) -> SyncClient:
        found.append(really(url))
        return found[-1]

    monkeypatch.setattr(SyncClient, "open", kept)
    return found


def _is_closed(client: SyncClient) -> bool:
    try:
        client.store.heads()
    except StoreClosedError:
        return True
    return False


def _live(made: Any) -> None:
    """Begin and end an application, as a server does."""

    async def lived() -> None:
        async with made.router.lifespan_context(made):
            pass

    asyncio.run(lived())


def test_a_url_is_opened_when_it_is_needed_and_closed_at_the_end(opened: list[SyncClient]) -> None:
    made = app("memory://")
    assert opened == []

    Http(made).get(BASE + "about")
    Http(made).get(BASE + "sessions")
    assert [_is_closed(each) for each in opened] == [False]

    _live(made)
    assert _is_closed(opened[0])


def test_what_a_mounted_page_has_opened_is_closed_with_it(opened: list[SyncClient]) -> None:
    made = app("memory://")
    Http(made).get(BASE + "about")
    assert not _is_closed(opened[0])

    del made
    gc.collect()

    assert _is_closed(opened[0])


class Broken(WrappedStore):
    """A store whose lists fail with an error that nobody has thought of."""

    def heads(self, agent_id: str | None = None, **_: Any) -> Any:
        raise RuntimeError("password=hunter2")


def test_a_fault_says_its_kind_and_nothing_that_the_error_holds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = Api(SyncClient(Broken(MemoryStore())))

    said = api.refused("sessions", 500)

    assert said["message"].startswith("RuntimeError. This is a fault of holdfast")
    assert "sessions failed" in caplog.text  # with all that led to it, for who runs the server


def test_a_store_that_cannot_be_reached_is_503_and_its_password_is_not_told() -> None:
    server = RedisServer()
    with closing(SyncClient.open(f"{server.url}?timeout=1")) as client:
        api = Api(client)
        server.kill()

        for path in ("sessions", "storage", "inbox"):
            said = api.refused(path, 503)
            assert said["kind"] == "unreachable"
            assert PASSWORD not in str(said)

        server.start()
        assert api.get("sessions")["sessions"] == []
        assert PASSWORD not in json.dumps(api.get("about"))
        assert "***" in api.get("about")["store"]


def test_a_store_that_cannot_be_opened_is_503_until_it_can(tmp_path: Path) -> None:
    server = RedisServer()
    server.kill()
    http = Http(app(f"{server.url}?timeout=1"))

    answer = http.get(BASE + "sessions")
    assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "unreachable")
    assert PASSWORD not in answer.text

    server.start()
    assert http.get(BASE + "sessions").status_code == 200


def test_a_store_that_is_removed_is_503_and_one_that_replaces_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with SyncClient.sqlite(path) as client:
        client.save("agent", execution_state={}, session_id="old")
    made = app(f"sqlite:///{path}")
    http = Http(made)

    def listed() -> list[str]:
        found = http.get(BASE + "sessions").json()["sessions"]
        return [each["session_id"] for each in found]

    assert listed() == ["old"]
    for each in tmp_path.glob("agents.db*"):
        each.unlink()
    assert http.get(BASE + "sessions").status_code == 503
    assert http.post(BASE + "fork", json={"id": "old@"}).status_code == 503
    assert not path.exists()

    with SyncClient.sqlite(path) as client:
        client.save("agent", execution_state={}, session_id="new")
    assert listed() == ["new"]
    _live(made)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("image/png", True),
        ("text/plain; charset=utf-8", True),
        ("text/html", False),
        ("image/svg+xml", False),
        ("application/pdf", False),
        ("text/javascript", False),
    ],
)
def test_content_is_shown_only_where_it_can_do_nothing(
    monkeypatch: pytest.MonkeyPatch, client: SyncClient, kind: str, shown: bool
) -> None:
    found = Content(b"<script>alert(1)</script>", kind, None if shown else 'a"\r\nb/ö.html')
    monkeypatch.setattr(application, "ROUTES", (Route("content", lambda *_: found, "bytes"),))

    answer = Http(app(client)).get(BASE + "content")

    assert answer.content == found.body
    policy = "sandbox; default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["content-security-policy"] == policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    named = "attachment; filename*=UTF-8''a%22%0D%0Ab%2F%C3%B6.html"
    assert answer.headers.get("content-disposition") == (None if shown else named)


ODD = [
    *(
        "",
        "x",
        "s@",
        "0",
        "-1",
        "\0",
        "a\0b",
        "é\u202e",
        "\ud800",
        "%",
        "'; DROP TABLE notes",
        "{}",
    ),
    *("9" * 400, "1e999", "/../..", "a" * 5000, "null", "💥", "9999-12-31T23:59:59+00:00", "s@{1}"),
]


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres", "redis"])
def test_no_odd_parameter_is_a_fault(store: str, tmp_path: Path) -> None:
    with SyncClient.open(url_of(store, tmp_path)) as client:
        client.save("agent", session_id="s", execution_state={"x": 1})
        http = Http(app(client))

        faults = set()
        for route in ROUTES:
            for name in route.parameters if not route.writes else ():
                for odd in ODD:
                    others = {each: "s@" for each in route.parameters if each != name}
                    for given in ({name: odd}, {**others, "limit": "1", name: odd}):
                        written = {
                            each: value.encode("utf-8", "surrogatepass")
                            for each, value in given.items()
                        }
                        answer = http.get(BASE + route.path, params=written)
                        if answer.status_code >= 500:
                            faults.add((route.path, name, odd[:20], answer.text[:200]))

    assert faults == set()
