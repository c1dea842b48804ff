"""What tests of the Redis store share: its async face, a link that breaks, steps one by one."""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.stores.base import Commit, NotesOnly
from holdfast.stores.redis.reads import batches
from holdfast.stores.redis.store import RedisStore
from holdfast.testing import crash_points
from tests.redis_servers import shared_cluster, shared_server

PLACES: dict[str, Callable[[], Any]] = {"redis": shared_server, "redis+cluster": shared_cluster}
POINTS = [(place, point) for place in PLACES for point in crash_points.POINTS[place]]
JOBS = "tests.integration.redis_jobs"
LATER = timedelta(days=1)


def now() -> datetime:
    return datetime.now(UTC)


class Proxy:
    """Stands between a store and its server, and cuts the connection when it is told to."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._when: Callable[[bytes], str] = lambda _: ""
        self._links: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_once(self, word: bytes, moment: str) -> None:
        """At the next request that holds the word: "before" it is passed on, or "after"."""

        def when(data: bytes) -> str:
            if word not in data:
                return ""
            self._when = lambda _: ""
            return moment

        self._when = when

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._links += [client, server]
            cut = threading.Event()
            threading.Thread(target=self._ask, args=(client, server, cut), daemon=True).start()
            threading.Thread(target=self._reply, args=(client, server, cut), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                moment = self._when(data)
                if moment == "before":
                    break
                if moment == "after":
                    cut.set()  # whatever the server answers is lost
                server.sendall(data)
        if not cut.is_set():
            _shut(client, server)

    def _reply(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while (data := server.recv(1 << 20)) and not cut.is_set():
                client.sendall(data)
        _shut(client, server)

    def close(self) -> None:
        _shut(self._listener, *self._links)


def _shut(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


class ByHand:
    """Steps of a store that are carried out when the test says so, to do other things between."""

    def __init__(self, store: RedisStore, steps: Any) -> None:
        self._link = store._link
        self._steps = steps
        self._answer: Any = None

    def go_on(self, steps: int = 1) -> None:
        """Carry out the next."""
        for _ in range(steps):
            self._answer = self._link.run(_only(self._steps.send(self._answer)))

    def finish(self) -> Any:
        """Carry out all that are left; gives what they lead to."""
        try:
            while True:
                self.go_on()
        except StopIteration as end:
            return end.value


def keep_all(store: RedisStore, commits: Iterable[Commit | NotesOnly]) -> None:
    """Commit very many, some hundreds at a time."""
    plans = store._plans
    for some in batches(list(commits)):
        calls = [plans._call_of(each, None).whole(plans.keys, each.chunks) for each in some]
        answers = store._link.run(_only(calls))
        assert {answer[0] for answer in answers} == {b"ok"}


class Weighed:
    """Looks at what is asked of the server, and how long the answer to a command is."""

    def __init__(self, store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.largest = 0
        run = store._link.run
        monkeypatch.setattr(store._link, "run", lambda plan: run(self._weighing(plan)))

    def _weighing(self, plan: Any) -> Any:
        answer = None
        while True:
            try:
                batch = plan.send(answer)
            except StopIteration as end:
                return end.value
            answer = yield batch
            self.largest = max([self.largest, *map(_weight, answer)])


def _weight(answer: Any) -> int:
    return sum(map(_weight, answer)) if isinstance(answer, (list, tuple)) else 1


def _only(batch: Any) -> Any:
    return (yield batch)
