"""The page in a real browser: a server in a process of its own, and somebody who looks at it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    Route,
)
from playwright.sync_api import expect as expect

from tests.servers import free_port
from tests.waiting import wait_until

PROGRAM = "/usr/bin/chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AXE = Path(os.environ.get("HOLDFAST_AXE", "axe.min.js"))
WIDE, NARROW = (1280, 800), (400, 800)
TABS = ("conversation", "state", "files", "tasks", "effects", "about")
SECONDS = 20
"""How long something may take to appear on a busy machine."""
expect.set_options(timeout=SECONDS * 1000)


class Server:
    """`holdfast ui` in a process of its own."""

    def __init__(self, store: str, *options: str) -> None:
        self.store = store
        self._options = options
        self.port = free_port()
        self.login: Any = None
        self.start()

    def start(self) -> None:
        """Start it, again at the same port."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "holdfast", "ui", "--no-browser", "--json"),
                *("--port", str(self.port), "--store", self.store, *self._options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"it ended with {self._process.wait()}"
        self.address = str(json.loads(line)["url"])
        self.origin = f"http://{urlsplit(self.address).netloc}"

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process.poll() is None:
            self.stop()


class Viewer:
    """Somebody at the page, who minds whatever goes wrong in the browser."""

    def __init__(
        self,
        browser: Browser,
        server: Server,
        size: tuple[int, int] = WIDE,
        scheme: Any = "light",
    ) -> None:
        self.server = server
        self.faults: list[str] = []
        self._meant: tuple[str, ...] = ()
        self.context: BrowserContext = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            reduced_motion="reduce",
            storage_state=server.login,
        )
        self.page: Page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", self._asked)
        self._asked_for: set[Request] = set()
        self.page.on("request", self._requested)
        self.page.on("requestfinished", self._is_over)
        self.page.on("requestfailed", self._is_over)
        if server.login is None:
            self.page.goto(server.address)
            server.login = self.context.storage_state()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def _asked(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        self._asked_for.add(request)
        if not request.url.startswith((self.server.origin + "/", "data:", "blob:", "about:")):
            self.faults.append(f"asked elsewhere: {request.url}")

    def _is_over(self, request: Request) -> None:
        self._asked_for.discard(request)

    def go(self, where: str = "", /, **query: str) -> Self:
        """Open an address of the page."""
        asked = f"?{urlencode(query)}" if query else ""
        self.page.goto(f"{self.server.origin}/{where}{asked}")
        return self

    def session(self, agent: str, session: str, /, **query: str) -> Self:
        """Open a session, with its checkpoints drawn."""
        self.go("session", agent=agent, session=session, **query)
        expect(self.find("checkpoint-row").first).to_be_visible()
        return self

    def find(self, name: str, text: str | None = None) -> Locator:
        """What the page calls so, and what of it holds a text."""
        found = self.page.locator(f'[data-test="{name}"]')
        return found if text is None else found.filter(has_text=text)

    def tab(self, name: str) -> None:
        """Turn to a tab of the chosen checkpoint."""
        self.find(f"tab-{name}").click()

    def press(self, *keys: str) -> None:
        """Type outside of any field."""
        for key in keys:
            self.page.keyboard.press(key)

    def shows(self, text: str) -> None:
        """See that a text is somewhere on the page."""
        expect(self.page.locator("body")).to_contain_text(text)

    def rest(self) -> None:
        """Wait until nothing is loaded any more."""
        self.page.wait_for_function(
            "() => document.readyState === 'complete' && "
            "!document.querySelector('[aria-busy=\"true\"]')"
        )

    def quiet(self, *, but: Request | None = None) -> None:
        """Wait until all that was asked for is answered, but what follows the events."""

        def is_quiet() -> bool:
            self.page.wait_for_timeout(10)
            return all(each == but or _follows(each) for each in self._asked_for)

        wait_for(is_quiet, "the page to be quiet")

    def hold(self, asked: re.Pattern[str]) -> list[Route]:
        """Keep the first request that is asked so from being answered, until it is continued."""
        held: list[Route] = []

        def hold(route: Route) -> None:
            if held:
                route.continue_()
            else:
                held.append(route)

        self.page.route(asked, hold)
        return held

    @property
    def follows(self) -> bool:
        """Whether the page holds a connection for what happens."""
        return any(map(_follows, self._asked_for))

    def seen(self, size: tuple[int, int], scheme: Any) -> None:
        """Look at the same in another window."""
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.rest()

    def axe(self) -> list[str]:
        """What the checker of accessibility finds serious or critical."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:4]]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than its window."""
        return bool(
            self.page.evaluate(
                "() => document.scrollingElement.scrollWidth > window.innerWidth + 1"
            )
        )

    def picture(self, name: str, *, written: Mapping[str, str] | None = None) -> None:
        """Keep a picture for the documentation, where one is wanted.

        :param written: what stands in the picture instead of what only this machine has.
        """
        place = os.environ.get("HOLDFAST_PICTURES")
        if place:
            Path(place).mkdir(exist_ok=True)
            self.rest()
            for what, text in (written or {}).items():
                self.find(what).evaluate("(it, text) => { it.textContent = text }", text)
            self.page.evaluate("() => document.getElementById('main').scrollTo(0, 0)")
            self.page.screenshot(path=Path(place) / f"ui-{name}.png")

    def forgive(self, *words: str) -> None:
        """Do not mind what is said with one of these words: it is meant to go wrong."""
        self._meant += words

    def close(self) -> None:
        """Leave, with nothing to complain of."""
        self.context.close()
        faults = [each for each in self.faults if not any(word in each for word in self._meant)]
        assert not faults, faults


def _follows(request: Request) -> bool:
    return request.url.endswith("/api/v1/events")


def wait_for(condition: Any, what: str) -> None:
    """Wait for something outside of the browser."""
    wait_until(condition, what)
