"""Who may ask: the link, the cookie and the key, names of the server, origins, and headers."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from holdfast import SyncClient
from holdfast.ui import app
from holdfast.ui.application import ROUTES
from holdfast.ui.entrance import Entrance
from holdfast.ui.guard import Guard, Hosts, Visitors
from holdfast.ui.pages import STATIC
from tests.connections import IS_ROOT, OTHER, connection
from tests.ui.kit import BASE, Http

TOKEN, KEY = "the-token-of-the-link", "the-key-of-programs"
HOST = "http://127.0.0.1:8642"


def page(read_only: bool = False, **options: Any) -> Http:
    """The page over an empty store, asked from the browser of its user."""
    made = app(SyncClient.open("memory://"), read_only=read_only, **options)
    return Http(made, HOST, client=("127.0.0.1", 40000))


def entered(**options: Any) -> Http:
    """The same, let in with the link."""
    found = page(token=TOKEN, **options)
    assert found.get(f"/?token={TOKEN}").status_code == 303
    return found


def test_the_link_leaves_a_cookie_and_leads_to_the_same_address_without_it() -> None:
    http = page(token=TOKEN)

    answer = http.get(f"/session?token={TOKEN}&id=a%20b")

    assert (answer.status_code, answer.headers["location"]) == (303, "/session?id=a+b")
    assert re.fullmatch(
        r"holdfast_8642=[\w-]{43}; HttpOnly; SameSite=Lax; Path=/", answer.headers["set-cookie"]
    )
    assert TOKEN not in answer.headers["set-cookie"]
    assert http.get(BASE + "about").status_code == 200


def test_the_cookie_goes_over_https_alone_where_the_link_did() -> None:
    made = app("memory://", token=TOKEN, allowed_hosts=["runs.example"])

    answer = Http(made, "https://runs.example").get(f"/?token={TOKEN}")

    assert answer.headers["set-cookie"].endswith("; Secure")
    assert answer.headers["set-cookie"].startswith("holdfast_443=")


def test_the_link_works_once() -> None:
    http = page(token=TOKEN)
    http.get(f"/?token={TOKEN}")
    http.cookies.clear()

    assert http.get(f"/?token={TOKEN}").status_code == 401


def test_of_many_who_open_the_link_at_once_one_is_let_in() -> None:
    made = app("memory://", token=TOKEN)

    async def somebody() -> int:
        transport = httpx.ASGITransport(made)
        async with httpx.AsyncClient(transport=transport, base_url=HOST) as http:
            return (await http.get(f"/?token={TOKEN}")).status_code

    async def everybody() -> list[int]:
        return await asyncio.gather(*(somebody() for _ in range(20)))

    assert sorted(asyncio.run(everybody())) == [303] + [401] * 19


def test_the_link_opened_again_with_its_cookie_leads_to_the_page() -> None:
    answer = entered().get(f"/inbox?token={TOKEN}")

    assert (answer.status_code, answer.headers["location"]) == (303, "/inbox")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_only_a_get_uses_the_link_up(method: str) -> None:
    http = page(token=TOKEN)

    assert http.request(method, f"/?token={TOKEN}").status_code == 401
    assert http.get(f"/?token={TOKEN}").status_code == 303


@pytest.mark.parametrize("address", ["/", "/static/main.js", BASE + "about", BASE + "events", "/x"])
@pytest.mark.parametrize(
    "token", ["", "?token=", "?token=wrong", "?token=%ff%00", f"?Token={TOKEN}"]
)
def test_without_the_link_there_is_nothing(address: str, token: str) -> None:
    http = page(token=TOKEN)

    answer = http.get(address + token)

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert http.get(f"/?token={TOKEN}").status_code == 303  # which was not used up


def test_a_link_leads_nowhere_else() -> None:
    http = page(token=TOKEN)

    answer = http.get(f"{HOST}//elsewhere.example/%0d%0aset-cookie:x?token={TOKEN}")

    assert answer.headers["location"] == "/elsewhere.example/%0D%0Aset-cookie%3Ax"


@pytest.mark.parametrize("cookie", ["", "x", "holdfast_8642=", "holdfast_8642=é", "holdfast_80=x"])
def test_another_cookie_is_none(cookie: str) -> None:
    http = page(token=TOKEN)

    answer = http.get(BASE + "about", headers={"cookie": cookie.encode()})

    assert answer.status_code == 401


def test_programs_show_a_key() -> None:
    http = page(token=TOKEN, key=KEY)

    def asked(said: str) -> int:
        return http.get(BASE + "about", headers={"authorization": said}).status_code

    assert asked(f"Bearer {KEY}") == asked(f"bearer  {KEY}") == 200
    for wrong in (KEY, f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer {TOKEN}", "Bearer", ""):
        assert asked(wrong) == 401


def test_the_token_is_no_key_where_there_is_none() -> None:
    http = page(token=TOKEN)

    assert http.get(BASE + "about", headers={"authorization": "Bearer None"}).status_code == 401


def asking(host: str, port: int) -> dict[str, Any]:
    """What a server is told of a connection that is not of this machine, or closed."""
    return {"client": (host, port), "server": ("127.0.0.1", 8642)}


def test_a_browser_is_started_with_a_link_that_is_for_this_user_alone() -> None:
    entrance = Entrance(TOKEN)
    own = entrance.own_token()

    assert not entrance.admits(own, asking("127.0.0.1", 1))
    assert not entrance.admits(own, {"client": None})
    if IS_ROOT:
        with connection(user=OTHER) as made:
            assert not entrance.admits(own, made.request)
    with connection() as made:
        assert entrance.admits(own, made.request)


def test_each_link_works_once_and_ends_no_other() -> None:
    entrance = Entrance(TOKEN)
    own = entrance.own_token()

    with connection() as made:
        assert entrance.admits(own, made.request)
        assert not entrance.admits(own, made.request)
    assert entrance.admits(TOKEN, asking("127.0.0.1", 1))
    assert not entrance.admits(TOKEN, asking("127.0.0.1", 1))


def test_the_cookie_counts_for_the_users_of_this_machine_who_were_let_in() -> None:
    visitors = Visitors()
    with connection() as made:
        visitors.let_in(made.request)
        assert visitors.knows(made.request)

    assert not visitors.knows(made.request)  # the connection was closed
    with connection() as made:
        assert visitors.knows(made.request)
    assert not visitors.knows(asking("192.0.2.1", 4000))
    assert not visitors.knows({})
    if IS_ROOT:
        with connection(user=OTHER) as made:
            assert not visitors.knows(made.request)


def test_where_nobody_can_say_who_was_let_in_the_cookie_is_enough() -> None:
    visitors = Visitors()
    visitors.let_in(asking("192.0.2.1", 4000))

    assert visitors.knows(asking("192.0.2.1", 4001))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:8642", "LOCALHOST:8642", "localhost", "[::1]:8642", "localhost:80"),
    ],
)
def test_a_server_of_this_machine_is_asked_by_its_names(host: str) -> None:
    http = page(token=TOKEN)

    assert http.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 303


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8642", "localhost.:8642", "127.0.0.1.evil.example:8642"),
        *("localhost:8642@evil.example", "evil@localhost:8642", "localhost:x", "localhost:", ""),
        *("::1", "[::1", "[::2]:8642", "127.0.0.2:8642", "0.0.0.0:8642", "localhost, evil.example"),
        *("localhost:8642:8642", "localhost/", "é", "x" * 5000),
    ],
)
def test_another_host_is_refused(host: str) -> None:
    http = page(token=TOKEN)

    answer = http.get(f"/?token={TOKEN}", headers={"host": host.encode()})

    assert answer.status_code == 403
    assert len(answer.text) < 1000
    assert http.get(f"/?token={TOKEN}").status_code == 303


@pytest.mark.parametrize("hosts", [[], [b"127.0.0.1", b"evil.example"], [b"127.0.0.1"] * 2])
def test_no_host_or_two_are_refused(hosts: list[bytes]) -> None:
    assert answered(page(token=TOKEN), "GET", "/", [(b"host", each) for each in hosts]) == 403


def test_a_server_on_every_address_is_asked_by_any_but_by_no_other_name() -> None:
    hosts = Hosts(["0.0.0.0:8642", "localhost:8642"])

    assert all(map(hosts.admit, ["192.168.0.7:8642", "[fe80::1]:8642", "localhost:8642"]))
    assert not any(map(hosts.admit, ["evil.example:8642", "192.168.0.7", "192.168.0.7:80", ""]))


ELSEWHERE = [
    {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "http://127.0.0.1"},
    {"origin": "http://localhost:8642"},
    {"origin": "null"},
    {"origin": "null", "sec-fetch-site": "same-origin"},
    {"origin": "file://"},
    {"origin": "http://[::1"},
    {"origin": ""},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "origin": HOST},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_a_write_from_another_site_is_refused(headers: dict[str, str]) -> None:
    answer = entered().post(BASE + "gc", json={"dry_run": True}, headers=headers)

    assert answer.status_code == 403
    assert answer.json()["error"]["kind"] == "refused"


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": HOST}, {"origin": HOST, "sec-fetch-site": "same-origin"}],
)
def test_a_write_of_the_page_or_of_a_program_is_let_through(headers: dict[str, str]) -> None:
    answer = entered().post(BASE + "gc", json={"dry_run": True}, headers=headers)

    assert answer.status_code not in (401, 403)


def test_behind_a_proxy_that_names_the_server_otherwise_the_browser_says_where_it_is() -> None:
    http = Http(app("memory://"), "http://backend:9000")
    said = {"origin": "https://runs.example", "sec-fetch-site": "same-origin"}

    assert http.post(BASE + "gc", json={"dry_run": True}, headers=said).status_code != 403


@pytest.mark.parametrize(
    "kind",
    [*("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"), "", "x/json"],
)
def test_what_a_form_of_another_site_could_send_is_no_write(kind: str) -> None:
    answer = page().post(BASE + "gc", content=b"{}", headers={"content-type": kind})

    assert answer.status_code == 415


WRITES = [route.path for route in ROUTES if route.writes]
OTHER_METHODS = ["POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get"]


@pytest.mark.parametrize("path", WRITES)
def test_a_read_only_page_has_no_verb_that_writes(path: str) -> None:
    http = page(read_only=True)

    assert http.post(BASE + path, json={}).status_code == 403
    override = {"x-http-method-override": "POST", "x-http-method": "POST"}
    assert http.get(f"{BASE}{path}?_method=POST", headers=override).status_code == 405
    assert http.request("HEAD", BASE + path, headers=override).status_code == 405


@pytest.mark.parametrize("method", OTHER_METHODS)
def test_a_read_only_page_is_only_read(method: str) -> None:
    for address in ("/", "/static/main.js", BASE + "about", BASE + "gc", BASE + "nothing"):
        assert answered(page(read_only=True), method, address) == 403


def test_nothing_that_is_asked_with_get_writes() -> None:
    client = SyncClient.open("memory://")
    client.save("agent", session_id="s", execution_state={})
    before = client.store.stats()
    http = Http(app(client))

    for route in ROUTES:
        if not route.writes:
            given = dict.fromkeys(route.parameters, "s@") | {"limit": "1"}
            assert http.get(BASE + route.path, params=given).status_code < 500, route.path

    assert client.store.stats() == before
    assert client.store.notes(None) == []


EVERYWHERE = ["/", "/session", "/static/main.js", "/static/none", "/x", BASE + "about", BASE + "x"]


@pytest.mark.parametrize("address", EVERYWHERE)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_every_answer_has_safe_headers(address: str, method: str, token: str | None) -> None:
    answer = page(token=token).request(method, address)

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self';" in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in answer.headers
    if address.startswith(BASE):
        assert answer.headers["cache-control"] == "no-store"


def test_what_has_not_changed_has_safe_headers_too() -> None:
    http = page()
    tag = http.get("/static/main.js").headers["etag"]

    answer = http.get("/static/main.js", headers={"if-none-match": f'"x", W/{tag}'})

    assert (answer.status_code, answer.content) == (304, b"")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_document_has_no_script_and_no_style_of_its_own() -> None:
    text = page(title="</title><script>alert(1)</script>{settings}").get("/").text

    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|javascript:", text)
    assert "&lt;/title&gt;&lt;script&gt;" in text
    assert "{settings}</title>" in text


@pytest.mark.parametrize(
    "name",
    [
        *("../pages.py", "%2e%2e/pages.py", "..%2fpages.py", "..%5cpages.py", "%2e%2e%2fguard.py"),
        *("/etc/passwd", "%2fetc%2fpasswd", "main.js%00", "%00", "main.js/", "", "index.html"),
        *("x" * 5000, "main.js%20", "MAIN.JS", "./main.js%2f..%2fmain.js"),
    ],
)
def test_no_name_leads_out_of_the_files_of_the_page(name: str) -> None:
    answer = page().get(f"{HOST}/static/{name}")

    assert answer.status_code == 404
    assert "def " not in answer.text


def test_every_file_of_the_page_is_given_as_what_it_is() -> None:
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    http = page()

    for path in sorted(Path(STATIC).rglob("*")):
        if path.suffix in kinds:
            answer = http.get(f"/static/{path.relative_to(STATIC).as_posix()}")
            assert answer.content == path.read_bytes()
            assert answer.headers["content-type"].startswith(kinds[path.suffix])


@pytest.mark.parametrize("prefix", ["/holdfast", "/a/b%20c"])
def test_mounted_below_another_address_all_is_found_there(prefix: str) -> None:
    host = Starlette(routes=[Mount(prefix.replace("%20", " "), app("memory://", token=TOKEN))])
    http = Http(host, HOST)

    answer = http.get(f"{prefix}/inbox?token={TOKEN}")

    assert answer.headers["location"] == f"{prefix}/inbox"
    assert answer.headers["set-cookie"].endswith(f"; Path={prefix}/")
    assert f'href="{prefix.replace("%20", " ")}/"' in http.get(f"{prefix}/inbox").text
    assert http.get(f"{prefix}/static/main.js").status_code == 200
    assert http.get(f"{prefix}{BASE}about").json()["store"] == "the memory store"
    described = http.get(f"{prefix}{BASE}openapi.json").json()
    assert described["servers"] == [{"url": f"{prefix}/api/v1"}]
    assert http.get(f"{prefix}{BASE}nothing").json()["error"]["kind"] == "not_found"
    assert http.get(f"{BASE}about").status_code == 404


def test_a_websocket_is_refused() -> None:
    sent: list[Any] = []

    async def refused() -> None:
        scope = {"type": "websocket", "path": "/", "headers": []}
        await Guard(app("memory://"))(scope, _told({"type": "websocket.connect"}), _kept(sent))

    asyncio.run(refused())

    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_fault_is_told_without_what_the_error_says() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("the password is hunter2")

    answer = Http(Guard(broken), HOST).get(BASE + "about")

    assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "error")
    assert "RuntimeError" in answer.text
    assert "hunter2" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def answered(
    http: Http, method: str, path: str, headers: list[tuple[bytes, bytes]] | None = None
) -> int:
    """The status of an answer to a request that no client would make."""
    sent: list[Any] = []
    scope = {
        **{"type": "http", "method": method, "path": path, "raw_path": path.encode()},
        **{"query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1"},
        "headers": [(b"host", b"127.0.0.1:8642")] if headers is None else headers,
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 8642),
    }
    asyncio.run(http.application(scope, _told({"type": "http.request"}), _kept(sent)))
    return int(sent[0]["status"])


def _told(message: dict[str, Any]) -> Any:
    async def receive() -> dict[str, Any]:
        return message

    return receive


def _kept(sent: list[Any]) -> Any:
    async def send(message: Any) -> None:
        sent.append(message)

    return send
