"""An S3 server for tests, in a process of its own on loopback."""

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers import Daemon

KEY, SECRET = "AKIDOFATEST", "wJalrXUtnFEMIsecret"
REGION = "us-east-1"
_OF_THE_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "date", "server")
SERVE = "import sys; from moto.server import main; main(sys.argv[1:])"


class S3Server(Daemon):
    """Moto's server: it speaks S3 over HTTP and forgets all when it ends."""

    bucket = "checkpoints"

    def __init__(self, **settings: str) -> None:
        super().__init__("s3-")
        self._settings = settings
        self.start()

    def start(self) -> None:
        """Start it, with an empty bucket."""
        command = [sys.executable, "-c", SERVE, "-H", "127.0.0.1", "-p", str(self.port)]
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=os.environ | self._settings,
            )
        self._wait_until_it_listens()
        self.make_bucket()

    def make_bucket(self) -> None:
        """Make the bucket."""
        request = urllib.request.Request(f"{self.endpoint}/{self.bucket}", method="PUT")
        urllib.request.urlopen(request).close()

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it at once; what it kept is gone."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Make it deaf and dumb: it takes connections and never answers."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self.process.send_signal(signal.SIGCONT)

    @property
    def options(self) -> dict[str, Any]:
        """How a store gets there."""
        return {
            "endpoint": self.endpoint,
            "options": {"access_key_id": KEY, "secret_access_key": SECRET, "region": REGION},
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same credentials as variables."""
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
        return dict(zip(names, (KEY, SECRET, REGION), strict=True))

    def url(self, prefix: str) -> str:
        """The URL of a place of one's own."""
        return f"s3://{self.bucket}/{prefix}"


@contextmanager
def answering(status: int, code: str) -> Iterator[str]:
    """The address of a server that refuses every request in the same way, as S3 words it.

    As S3 does, it tells of the credentials that it was sent.
    """
    told = f"<AWSAccessKeyId>{KEY}</AWSAccessKeyId><SignatureProvided>{SECRET}</SignatureProvided>"
    body = f"<Error><Code>{code}</Code><Message>no</Message>{told}</Error>".encode()

    class Refusing(BaseHTTPRequestHandler):
        def do(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do

        def log_message(self, *args: Any) -> None:
            pass

    with _serving(Refusing) as endpoint:
        yield endpoint


@contextmanager
def refusing_the_first(late: Callable[[], None]) -> Iterator[str]:
    """The address of a server that refuses the first object, and does something late for others.

    Late is after the refusal has been sent.
    """
    refused = threading.Event()
    first = threading.Lock()

    class Late(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            is_first = first.acquire(blocking=False)
            if not is_first:
                refused.wait()
                late()
            self.send_response(403 if is_first else 200)
            self.send_header("content-length", "0")
            self.send_header("etag", '"1"')
            self.end_headers()
            if is_first:
                refused.set()

        def log_message(self, *args: Any) -> None:
            pass

    with _serving(Late) as endpoint:
        yield endpoint


class Counted:
    """The requests that went through ``counting``: what was asked, and how often."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.sent = 0
        """Bytes of the bodies of requests."""
        self.received = 0
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, verb: str, path: str, sent: int, received: int) -> None:
        """Count one; a listing, and a removal of many at once, have names of their own."""
        query = path.partition("?")[2]
        name = "LIST" if "list-type" in query else "DELETE" if query == "delete" else verb
        with self._lock:
            self._asked[name] += 1
            self.sent += sent
            self.received += received

    def take(self) -> dict[str, int]:
        """Return how often each was asked since the last time."""
        with self._lock:
            asked, self._asked = dict(self._asked), Counter()
            self.sent = self.received = 0
        return asked


@contextmanager
def counting(server: S3Server) -> Iterator[Counted]:
    """Stand before a server, pass everything on, and count it."""
    counted = Counted()

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            behind = HTTPConnection("127.0.0.1", server.port)
            behind.request(self.command, self.path, body, dict(self.headers))
            answer = behind.getresponse()
            data = answer.read()
            counted.note(self.command, self.path, len(body), len(data))
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_THE_CONNECTION:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            behind.close()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do

        def log_message(self, *args: Any) -> None:
            pass

    with _serving(Passing) as counted.endpoint:
        yield counted


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Gate:
    """Stands before a server, and lets nobody through after so many requests of a kind."""

    def __init__(self, port: int) -> None:
        self._behind = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._word, self._left = b"", -1
        self._links: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def shut_after(self, requests: int, word: bytes) -> None:
        """Let that many requests that begin so through, and then nothing."""
        with self._lock:
            self._word, self._left = word, requests

    def open(self) -> None:
        """Let everything through again."""
        self.shut_after(-1, b"")

    def _lets_through(self, data: bytes) -> bool:
        with self._lock:
            if self._left > 0 and data.startswith(self._word):
                self._left -= 1
                return True
            return self._left != 0

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._behind)
                self._links += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while (data := source.recv(1 << 16)) and self._lets_through(data):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        """End it, and all connections."""
        for each in (self._listener, *self._links):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
