"""What the page costs on a large store: ``python -m benchmarks.page``.

100,000 checkpoints in 5,000 sessions, one of which has 10,000. Each answer is asked for by turns,
as after something was written: nothing that is remembered for a moment helps. With Chromium (and
the package playwright) the page itself is opened, until its rows are drawn.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from holdfast import SyncClient

BAR = 500.0
"""Milliseconds to open the list, or a session."""
LONG = "long"
AGENTS, MESSAGE = 50, "words of a message " * 4
_OF_LONG = {"agent": "agent-0", "session": LONG}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=5_000)
    parser.add_argument("--long", type=int, default=10_000, help="checkpoints of the longest")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--store", help="a store that is there, instead of a new one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-page-") as place:
        url = options.store or f"sqlite:///{place}/holdfast.db"
        if options.store is None:
            _fill(url, options.checkpoints, options.sessions, options.long)
        with SyncClient.open(url) as client, _served(url) as served:
            address, key, pid = served
            print(f"{'answer':<34}{'ms':>8}{'kB':>8}")
            for name, path in _addresses(client).items():
                took, size = _asked(client, address, key, path, options.repeat)
                print(f"{name:<34}{took:>8.0f}{size / 1000:>8.0f}")
            _in_browser(client, address, options.repeat)
            print(f"{'memory of the server, MB':<34}{_resident(pid):>8.0f}")


def _fill(url: str, checkpoints: int, sessions: int, long: int) -> None:
    others = max(sessions - 1, 1)
    each = max((checkpoints - long) // others, 1)
    with SyncClient.open(f"{url}?durability=normal" if url.startswith("sqlite") else url) as client:
        for number in range(others):
            _steps(client, f"agent-{number % AGENTS}", f"session-{number}", each)
        _steps(client, _OF_LONG["agent"], LONG, long)


def _steps(client: SyncClient, agent: str, session: str, count: int) -> None:
    said = [{"role": "user", "content": f"{MESSAGE} {session}"}]
    for step in range(count):
        said = [*said[-20:], {"role": "assistant", "content": f"{MESSAGE} {step}"}]
        client.save(
            agent,
            execution_state={"messages": said, "step": step},
            session_id=session,
            step_index=step,
            step_name=f"step {step}",
            team="core",
        )


@contextmanager
def _served(url: str) -> Iterator[tuple[str, str, int]]:
    command = [sys.executable, "-m", "holdfast", "ui", "--no-browser", "--json", "--print-key"]
    process = subprocess.Popen([*command, "--store", url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    try:
        yield told["url"], told["key"], process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _addresses(client: SyncClient) -> dict[str, str]:
    newest = client.timeline(_OF_LONG["agent"], LONG, limit=1)[0].checkpoint_id
    of_long, at = urlencode(_OF_LONG), urlencode({"id": newest})
    return {
        "sessions": "sessions",
        "sessions, searched": "sessions?search=session-42",
        "sessions, running": "sessions?condition=running",
        f"session of {LONG}": f"session?{of_long}",
        f"log of {LONG}, 200 rows": f"log?{of_long}&limit=200",
        "checkpoint": f"checkpoint?{at}",
        "messages": f"messages?{at}",
        "state": f"state?{at}",
        "inbox": "inbox",
        "storage": "storage",
    }


def _asked(client: SyncClient, address: str, key: str, path: str, repeat: int) -> tuple[float, int]:
    where = urlsplit(address)
    request = urllib.request.Request(
        f"{where.scheme}://{where.netloc}/api/v1/{path}", headers={"Authorization": f"Bearer {key}"}
    )
    took, size = [], 0
    for number in range(repeat):
        client.save("other", execution_state={"n": number}, session_id="beside")
        began = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            size = len(answer.read())
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took), size


_WATCH = """
addEventListener("DOMContentLoaded", () => {
  const wanted = '[data-test="session-row"], [data-test="message"]';
  new MutationObserver((_, watch) => {
    if (location.pathname.length > 1 && !document.querySelector('[data-test="message"]')) return;
    if (!document.querySelector(wanted)) return;
    watch.disconnect();
    window.drawn = performance.now();
  }).observe(document, { subtree: true, childList: true });
});
"""
"""Notes when the list, or the conversation of a session, is drawn."""


def _in_browser(client: SyncClient, address: str, repeat: int) -> None:
    chromium = shutil.which("chromium")
    if chromium is None or find_spec("playwright") is None:
        print("Chromium, or playwright, is not there: the page itself was not opened")
        return
    from playwright.sync_api import sync_playwright

    where = urlsplit(address)
    base = f"{where.scheme}://{where.netloc}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.add_init_script(_WATCH)
        page.goto(address)
        views = {"the list drawn": "", f"{LONG} drawn": f"session?{urlencode(_OF_LONG)}"}
        for name, there in views.items():
            took = []
            for number in range(repeat):
                client.save("other", execution_state={"n": number}, session_id="beside")
                took.append(_drawn(page, base + there))
            median = statistics.median(took)
            print(f"{name:<34}{median:>8.0f}{'' if median < BAR else '  over the bar'}")
        took = [_until_seen(client, page, base, number) for number in range(repeat)]
        median = statistics.median(took)
        print(f"{'a save of another process, seen':<34}{median:>8.0f}")
        heap = page.evaluate("() => performance.memory.usedJSHeapSize") / 1e6
        print(f"{'memory of the page, MB':<34}{heap:>8.0f}")
        browser.close()


def _drawn(page: Any, address: str) -> float:
    """Return how many milliseconds the page needed until it was drawn, by its own clock."""
    page.goto("about:blank")
    page.goto(address, wait_until="commit")
    page.wait_for_function("() => window.drawn !== undefined")
    return float(page.evaluate("() => window.drawn"))


def _until_seen(client: SyncClient, page: Any, address: str, number: int) -> float:
    """Return how many milliseconds after a save its session is in the list that is open."""
    name = f"seen-{number}-{time.time_ns()}"
    page.goto(address)
    page.wait_for_selector('[data-test="session-row"]', state="attached")
    client.save("other", execution_state={"n": number}, session_id=name)
    began = time.perf_counter()
    page.wait_for_selector(f'[data-session="{name}"]', state="attached")
    return 1000 * (time.perf_counter() - began)


def _resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


if __name__ == "__main__":
    main()
