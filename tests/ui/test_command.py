"""`holdfast ui` as people and programs start it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast, environment
from tests.ui import stories
from tests.waiting import wait_until

SECONDS = 30
ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> str:
    with SyncClient.sqlite(tmp_path / "agents.db") as client:
        client.save("agent", execution_state={"x": 1}, session_id="s")
    return f"sqlite:///{tmp_path / 'agents.db'}"


class Serving:
    """The command, which serves until it is told to end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.first = process.stdout.readline()

    @property
    def told(self) -> dict[str, Any]:
        return dict(json.loads(self.first))

    def end(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        """How it ended, and what else it printed."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err


@contextmanager
def serving(
    *options: str, program: tuple[str, ...] = ("-m", "holdfast", "ui"), **variables: str
) -> Iterator[Serving]:
    """Start the command, and wait for its first line."""
    kept = environment(**variables)
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        if name not in variables:
            kept.pop(name, None)
    command = [sys.executable, *program, *options]
    with subprocess.Popen(
        command, env=kept, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Serving(process)
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def listening(ui: Serving) -> Iterator[socket.socket]:
    """A page that has asked for what changes."""
    where = urlsplit(ui.told["url"])
    with socket.create_connection((where.hostname, where.port)) as page:
        page.sendall(
            b"GET /api/v1/events HTTP/1.1\r\n"
            + f"Host: {where.netloc}\r\nAuthorization: Bearer {ui.told['key']}\r\n\r\n".encode()
        )
        yield page


def ask(address: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def tell(ui: Serving, verb: str, body: dict[str, Any]) -> tuple[int, bytes]:
    """Have it do something, as a program with its key."""
    where = urlsplit(ui.told["url"])
    request = urllib.request.Request(
        f"http://{where.netloc}/api/v1/{verb}",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {ui.told['key']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request) as answer:
        return answer.status, answer.read()


def test_it_prints_the_store_and_a_link_that_works_once(store: str) -> None:
    with serving("--store", store) as ui:
        assert ui.process.stdout is not None
        assert ui.first.strip() == store
        line = ui.process.stdout.readline()
        link = re.match(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert link is not None
        assert "works once" in line

        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(link[0]) as page:
            assert b"Holdfast" in page.read()
            assert "token" not in page.url
        assert ask(link[0])[0] == 401
        ended = ui.end()

    token = link[0].partition("token=")[2]
    assert ended[0] == 130
    assert token not in ended[1] + ended[2]
    assert "Traceback" not in ended[2]


def test_programs_are_given_a_key(store: str) -> None:
    with serving("--store", store, "--json", "--print-key", "--no-browser") as ui:
        said = ui.told
        base = said["url"].partition("?")[0]
        status, body = ask(f"{base}api/v1/sessions", Authorization=f"Bearer {said['key']}")
        refused, _ = ask(f"{base}api/v1/sessions", Authorization="Bearer nothing")

        assert (status, refused) == (200, 401)
        assert [each["session_id"] for each in json.loads(body)["sessions"]] == ["s"]
        assert ui.end(signal.SIGTERM)[2].count(said["key"]) == 0


def test_a_read_only_page_is_told_as_such(store: str) -> None:
    with serving("--store", store, "--json", "--print-key", "--read-only") as ui:
        base = ui.told["url"].partition("?")[0]
        request = urllib.request.Request(
            f"{base}api/v1/gc",
            data=b"{}",
            headers={
                "Authorization": f"Bearer {ui.told['key']}",
                "Content-Type": "application/json",
            },
        )

        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request)
        assert ui.told["read_only"] is True
        ui.end()


def test_it_ends_at_once_though_a_page_listens(store: str) -> None:
    with serving("--store", store, "--json", "--print-key") as ui, listening(ui) as page:
        heard = b""
        while b"event: hello" not in heard:
            heard += page.recv(4096)

        assert ui.end()[0] == 130


_INTERRUPTED_AT_A_LOCK = """
import signal, sys, threading
from holdfast.cli import main
from holdfast.ui.live import Live

class Interrupting:
    def __init__(self):
        self.lock = threading.Lock()
    def __enter__(self):
        self.lock.acquire()
        if sys._getframe(1).f_code.co_name == "subscribe":
            signal.raise_signal(signal.SIGINT)
    def __exit__(self, *_):
        self.lock.release()

def begun(live, client):
    begin(live, client)
    live._lock = Interrupting()

begin, Live.__init__ = Live.__init__, begun
sys.exit(main(["ui", "--json", "--print-key", "--store", sys.argv[1]]))
"""


def test_ctrl_c_ends_it_in_the_middle_of_whatever_it_does_for_a_page(store: str) -> None:
    with serving(store, program=("-c", _INTERRUPTED_AT_A_LOCK)) as ui, listening(ui):
        assert ui.process.wait(SECONDS) == 130


def test_calls_are_undone_by_modules_that_are_named_as_it_starts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agents.db'}"
    with (
        SyncClient.open(url) as client,
        client.session("shop", "order", state={"n": 0}) as run,
    ):
        before = run.checkpoint("before")
        run.call(stories.charge, 5, effect="reversible", compensate=stories.refund)
    options = ("--store", url, "--no-browser", "--json", "--print-key")

    with serving(*options, "--import", "tests.ui.stories") as ui:
        status, answer = tell(ui, "rollback", {"id": before})
        ui.end()

    assert (status, len(json.loads(answer)["undone"])) == (200, 1)


def test_a_module_that_is_not_there_is_said_before_anything_is_served(store: str) -> None:
    with serving("--store", store, "--import", "no.such.module") as ui:
        out, err = ui.process.communicate(timeout=SECONDS)

    assert (ui.process.returncode, ui.first + out) == (2, "")
    assert "--import no.such.module" in err


def test_the_port_is_the_one_that_is_asked_for(store: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = Holdfast(tmp_path)("ui", "--store", store, "--port", port)
        assert done.code == 1
        assert f"port {port} of 127.0.0.1 is in use" in done.err
    with serving("--store", store, "--json", "--port", port) as ui:
        assert urlsplit(ui.told["url"]).port == int(port)
        ui.end()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--port", "70000"), "from 0 to 65535"),
        (("--port", "-1"), "port"),
        (("--host", ""), "--host is a name"),
        (("--host", "no.such.host.invalid"), "there is no address"),
        (("--host", "192.0.2.1"), "cannot be listened at"),
        (("--store", "sqlite:////nowhere/at/all.db"), "/nowhere/at/all.db"),
        (("--store", "nothing://x"), "nothing"),
    ],
)
def test_what_cannot_be_served_is_said(
    store: str, tmp_path: Path, options: tuple[str, str], said: str
) -> None:
    given = options if options[0] == "--store" else ("--store", store, *options)

    done = Holdfast(tmp_path)("ui", *given)

    assert done.code not in (0, 130)
    assert said in done.err


def test_beyond_this_machine_it_warns_and_still_asks_for_the_token(store: str) -> None:
    with serving("--store", store, "--json", "--host", "0.0.0.0") as ui:
        where = urlsplit(ui.told["url"])
        assert where.hostname == "127.0.0.1"
        assert ask(f"http://127.0.0.1:{where.port}/")[0] == 401
        assert ask(f"http://127.0.0.1:{where.port}/", Host="evil.example")[0] == 403
        err = ui.end()[2]

    assert "0.0.0.0 is reached from other machines" in err
    assert "and change them" in err
    assert "Nothing on the way is encrypted" in err


def test_on_this_machine_alone_it_warns_of_nothing(store: str) -> None:
    with serving("--store", store, "--json") as ui:
        err = ui.end()[2]

    assert "other machines" not in err


def test_the_browser_is_opened_with_a_link_of_its_own(store: str, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new\nmv {opened}.new {opened}\n')
    browser.chmod(0o755)

    with serving("--store", store, "--json", BROWSER=str(browser), DISPLAY=":9") as ui:
        wait_until(opened.exists, "the browser to be started")
        link = opened.read_text().strip()
        assert link.partition("?token=")[0] == ui.told["url"].partition("?token=")[0]
        assert link != ui.told["url"]
        ui.end()


def test_with_no_browser_none_is_opened(store: str, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\ntouch {opened}\n")
    browser.chmod(0o755)

    options = ("--store", store, "--json", "--no-browser")
    with serving(*options, BROWSER=str(browser), DISPLAY=":9") as ui:
        base = ui.told["url"].partition("?")[0]
        assert ask(base)[0] == 401  # it serves
        ui.end()

    assert not opened.exists()


def test_without_its_packages_it_says_what_to_install(store: str, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = None\n"
        f"from holdfast.cli import main; sys.exit(main(['ui', '--store', {store!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ)
    )

    assert done.returncode not in (0, 130)
    assert "pip install 'holdfast[ui]'" in done.stderr


def test_the_store_of_the_directory_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    with SyncClient.sqlite(tmp_path / ".holdfast" / "holdfast.db") as client:
        client.save("agent", execution_state={}, session_id="here")
    script = (
        f"import os; os.chdir({str(tmp_path)!r})\n"
        "from holdfast.cli import main; main(['ui', '--json', '--print-key'])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        base = said["url"].partition("?")[0]
        _, body = ask(f"{base}api/v1/sessions", Authorization=f"Bearer {said['key']}")
        process.send_signal(signal.SIGINT)

    assert [each["session_id"] for each in json.loads(body)["sessions"]] == ["here"]
