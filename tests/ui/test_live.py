"""What changes in a store is told to every page, whoever changes it and on whatever store."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.ui import app
from holdfast.ui.live import EventStream, Live, Subscription
from tests.clients import EVERYWHERE, url_of
from tests.redis_servers import RedisServer
from tests.servers import PostgresServer
from tests.ui import stories
from tests.ui.kit import Api
from tests.waiting import achieved

SECONDS = 60


@pytest.fixture(params=EVERYWHERE)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def client(url: str) -> Iterator[SyncClient]:
    with SyncClient.open(url) as client:
        client.save("walker", execution_state={"count": 0}, session_id="walk")
        yield client


@pytest.fixture
def beside(url: str, client: SyncClient) -> Iterator[SyncClient]:
    """What another process has: a client of its own, but for memory, which has no other."""
    if url == "memory://":
        yield client
        return
    with SyncClient.open(url) as other:
        yield other


class Page:
    """A page that is told what changes."""

    def __init__(self, told: Subscription) -> None:
        self._told = told

    async def until(self, wanted: Callable[[str, dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for an event."""
        while True:
            event = await self._told.next(SECONDS)
            assert event is not None
            achieved()
            if wanted(*event):
                return event[1]

    async def until_silent(self) -> int:
        """How much more is told before nothing comes for a while."""
        count = 0
        while True:
            try:
                await self._told.next(1.5)
            except TimeoutError:
                return count
            count += 1

    async def changed(self, *session: str) -> dict[str, Any]:
        """Wait until a session is said to have changed."""

        def wanted(kind: str, told: dict[str, Any]) -> bool:
            named = told.get("sessions", ())
            return kind == "changed" and (named is None or list(session) in named)

        return await self.until(wanted)


@asynccontextmanager
async def looking(client: SyncClient) -> AsyncIterator[Page]:
    """Somebody who looks at the page, which has read what there is."""
    live = Live(lambda: client)
    told = live.subscribe()
    page = Page(told)
    try:
        await page.changed()
        yield page
    finally:
        live.leave(told)


def do(client: SyncClient, page_does: Callable[[Page], Any]) -> None:
    async def looked() -> None:
        async with looking(client) as page:
            await page_does(page)

    asyncio.run(looked())


def test_a_save_is_told_with_its_session(client: SyncClient, beside: SyncClient) -> None:
    async def look(page: Page) -> None:
        for number in range(3):
            await asyncio.to_thread(
                beside.save, "walker", execution_state={"count": number}, session_id="walk"
            )
            told = await page.changed("walker", "walk")
            assert told["sessions"] == [["walker", "walk"]]

    do(client, look)


def test_calls_questions_and_leases_are_told(client: SyncClient, beside: SyncClient) -> None:
    async def look(page: Page) -> None:
        with beside.session("mailer", "news", approval="wait", approval_timeout=0.01) as run:
            await page.changed("mailer", "news")
            run.call(stories.look, "main.py", effect="read")
            await page.changed("mailer", "news")
        await asyncio.to_thread(stories.ask, beside, "news")
        await page.until(lambda kind, told: kind == "changed" and told["inbox"])
        while not client.pending():
            await page.changed("mailer", "news")

    do(client, look)


@pytest.mark.parametrize("url", [each for each in EVERYWHERE if each != "memory"], indirect=True)
def test_a_process_that_dies_is_noticed_though_it_writes_nothing(
    url: str, client: SyncClient
) -> None:
    held = (
        "import sys; from holdfast import SyncClient\n"
        f"run = SyncClient.open({url!r}).session('walker', 'held').__enter__()\n"
        "print('held', flush=True); sys.stdin.read()"
    )

    async def look(page: Page) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            await page.changed("walker", "held")
            while not await asyncio.to_thread(held_sessions, client):
                await page.changed("walker", "held")
            process.kill()
            process.wait()
            while await asyncio.to_thread(held_sessions, client):
                await page.changed("walker", "held")

    do(client, look)


def held_sessions(client: SyncClient) -> list[str]:
    found = Api(client).get("sessions", condition="running")["sessions"]
    return [each["session_id"] for each in found]


def test_what_is_removed_is_told(client: SyncClient, beside: SyncClient) -> None:
    async def look(page: Page) -> None:
        head = client.latest("walker", "walk")
        assert head is not None
        await asyncio.to_thread(beside.expire, head.checkpoint_id)
        await page.changed("walker", "walk")

    do(client, look)


def test_more_than_a_page_of_saves_at_once_says_that_anything_may_have_changed(
    client: SyncClient, beside: SyncClient
) -> None:
    async def look(page: Page) -> None:
        def save_many() -> None:
            for number in range(120):
                beside.save("many", execution_state={}, session_id=str(number))

        await asyncio.to_thread(save_many)
        for number in (0, 60, 119):
            await page.changed("many", str(number))
            await asyncio.to_thread(
                beside.save, "many", execution_state={}, session_id=str((number + 60) % 180)
            )

    do(client, look)


def test_nothing_is_told_while_nothing_changes(tmp_path: Path) -> None:
    """The lease of a run that waits is renewed, which nobody sees."""
    with (
        SyncClient.sqlite(tmp_path / "a.db") as client,
        client.session("walker", "held", lease_seconds=0.5) as run,
    ):

        async def look(page: Page) -> None:
            await asyncio.to_thread(run.checkpoint, "one")
            await page.changed("walker", "held")
            assert await page.until_silent() <= 1  # the end of what was told above

        do(client, look)


def test_nobody_looks_while_there_is_no_page(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "a.db") as client:

        async def look() -> None:
            live = Live(lambda: client)
            assert not following()
            told = [live.subscribe() for _ in range(3)]
            assert len(following()) == 1  # one for all of them
            for page in told:
                live.leave(page)

        asyncio.run(look())
        for thread in following():
            thread.join(SECONDS)
        assert not following()


def following() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "holdfast-ui-follower"]


def test_whoever_comes_later_is_told_that_anything_may_have_changed(tmp_path: Path) -> None:
    """What was written between its reading and its coming, only those were told who were there."""
    with SyncClient.sqlite(tmp_path / "a.db") as client:

        async def look() -> None:
            live = Live(lambda: client)
            pages = []
            for _ in range(3):
                pages.append(live.subscribe())
                told = await Page(pages[-1]).changed("any", "session")
                assert told["sessions"] is None
            for page in pages:
                live.leave(page)

        asyncio.run(look())


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_lost_store_is_told_once_and_when_it_is_back(kind: str) -> None:
    server: Any = RedisServer() if kind == "redis" else PostgresServer()
    url = f"{server.url}?timeout=1" if kind == "redis" else f"{server.dsn}?timeout=1"
    with closing(SyncClient.open(url)) as client:
        client.save("walker", execution_state={}, session_id="walk")

        async def look(page: Page) -> None:
            await asyncio.to_thread(server.kill)
            told = await page.until(lambda kind, _: kind == "lost")
            assert "password" not in str(told).lower()
            await asyncio.to_thread(server.start if kind == "redis" else server.restart)
            await page.until(lambda kind, _: kind == "back")
            await asyncio.to_thread(client.save, "walker", execution_state={}, session_id="new")
            await page.changed("walker", "new")

        do(client, look)
    server.stop()


def test_a_file_that_is_replaced_is_lost_and_back(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with SyncClient.sqlite(path) as client:
        client.save("walker", execution_state={}, session_id="walk")
    made = app(f"sqlite:///{path}")

    async def look() -> None:
        told = made.state.live.subscribe()
        page = Page(told)
        await page.changed()
        for each in tmp_path.glob("agents.db*"):
            each.unlink()
        said = await page.until(lambda kind, _: kind == "lost")
        assert "removed or replaced" in said["message"]
        with SyncClient.sqlite(path) as client:
            client.save("walker", execution_state={}, session_id="anew")
        await page.until(lambda kind, _: kind == "back")
        made.state.live.leave(told)

    asyncio.run(look())


def test_a_page_that_does_not_listen_is_told_that_anything_may_have_changed() -> None:
    async def look() -> None:
        page = Subscription(asyncio.get_running_loop())
        for number in range(100):
            page.tell(("changed", {"sessions": [["a", str(number)]], "inbox": False, "at": ""}))
        page.tell(("lost", {"message": "gone"}))
        page.tell(None)
        await asyncio.sleep(0)

        told = []
        while (event := await page.next(SECONDS)) is not None:
            told.append(event)

        assert len(told) < 20
        assert ("changed", None) in [(kind, said.get("sessions", 0)) for kind, said in told]
        assert ("lost", {"message": "gone"}) in told

    asyncio.run(look())


class Browser:
    """Reads the stream of events as a browser does."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.gone = asyncio.Event()
        self._parts: asyncio.Queue[bytes] = asyncio.Queue()

    async def open(self) -> asyncio.Task[None]:
        scope = {
            **{"type": "http", "method": "GET", "path": "/api/v1/events", "query_string": b""},
            "headers": [(b"host", b"testserver")],
        }

        async def receive() -> Any:
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            elif message.get("body"):
                self._parts.put_nowait(message["body"])

        return asyncio.create_task(self._application(scope, receive, send))

    async def event(self) -> tuple[str, Any]:
        """The next event of the stream."""
        lines: dict[str, str] = {}
        while not lines:
            part = await asyncio.wait_for(self._parts.get(), SECONDS)
            for line in part.decode().splitlines():
                name, _, value = line.partition(": ")
                if name in ("event", "data"):
                    lines[name] = value
        return lines["event"], json.loads(lines["data"])


def test_the_stream_begins_with_hello_and_ends_with_the_page(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "a.db") as client:

        async def look() -> None:
            made = app(client)
            browser = Browser(made)
            stream = await browser.open()
            kind, told = await browser.event()
            assert (kind, browser.status) == ("hello", 200)
            assert set(told) >= {"version"}
            assert browser.headers["content-type"].startswith("text/event-stream")
            assert browser.headers["cache-control"] == "no-store"
            assert made.state.live.pages == 1
            browser.gone.set()
            await stream
            assert made.state.live.pages == 0

        asyncio.run(look())


def test_a_server_that_ends_ends_all_streams(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "a.db") as client:

        async def look() -> None:
            made = app(client)
            browsers = [Browser(made) for _ in range(3)]
            streams = [await each.open() for each in browsers]
            for each in browsers:
                assert (await each.event())[0] == "hello"
            made.state.live.end()
            await asyncio.wait_for(asyncio.gather(*streams), SECONDS)

        asyncio.run(look())


def test_a_silent_stream_says_that_it_lives() -> None:
    async def look() -> None:
        live = Live(lambda: SyncClient.open("memory://"))
        sent: list[bytes] = []
        heard = asyncio.Event()

        async def receive() -> Any:
            await heard.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))
            if sent[-1].startswith(b"event: ping"):
                heard.set()

        await EventStream(live, ping=0.01)({"type": "http", "method": "GET"}, receive, send)
        assert any(each.startswith(b"event: ping") for each in sent)

    asyncio.run(look())


def test_the_end_of_one_server_is_not_that_of_another() -> None:
    async def look() -> None:
        live = Live(lambda: SyncClient.open("memory://"))
        live.begin()
        live.begin()
        page = live.subscribe()

        assert not live.end()
        assert await page.next(5) is not None
        assert live.end()
        while (event := await page.next(5)) is not None:
            assert event[0] == "changed"

    asyncio.run(look())
