"""Real servers for tests, started in a temporary directory and stopped with the test session."""

import atexit
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

from tests.programs import Unavailable, program, starts
from tests.waiting import wait_until

PASSWORD = "hunter2 %/'\\"
"""Awkward on purpose: it has to be quoted wherever it goes, and must never be shown."""

POSTGRES_SETTINGS = {
    "fsync": "on",
    "max_connections": "80",
    "shared_buffers": "32MB",
    "deadlock_timeout": "200ms",
}


def free_port() -> int:
    """A port on loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unprivileged() -> dict[str, Any]:
    """For Popen: another user where we are root, as servers refuse to run as root."""
    if os.geteuid():
        return {}
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    name = "postgres" if "postgres" in names else "nobody"
    return {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}


def give_away(path: Path) -> None:
    """Let the user that servers run as own a directory."""
    user = unprivileged()
    if user:
        shutil.chown(path, user["user"], user["group"])


@lru_cache
def postgres_binaries() -> Path:
    """Where the newest PostgreSQL has its programs."""
    found = [
        (_version(place), place)
        for place in _places()
        if (place / "initdb").exists() and starts(place / "postgres")
    ]
    if not found:
        raise Unavailable.program("postgresql")
    return max(found)[1]


def _places() -> list[Path]:
    on_path = shutil.which("initdb")
    places = [Path(on_path).parent] if on_path is not None else []
    return [*places, *Path("/usr/lib/postgresql").glob("*/bin")]


def _version(place: Path) -> tuple[int, ...]:
    shown = subprocess.run([place / "postgres", "--version"], capture_output=True, text=True).stdout
    return tuple(map(int, re.findall(r"\d+", shown)[:2]))


class Daemon:
    """A server program of ours, with a directory of its own."""

    def __init__(self, prefix: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=prefix))
        self.directory.chmod(0o755)
        give_away(self.directory)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self, *command: Any) -> None:
        with open(self.directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                **unprivileged(),
            )
        self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> None:
        wait_until(self._listens, f"that something listens at port {self.port}")

    def _listens(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"it ended at once:\n{self.log}")
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running process."""
        assert self._process is not None, "it was not started"
        return self._process

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self.directory / "log").read_text(errors="replace")

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Stop it and leave nothing behind."""
        self._end(signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class PostgresServer(Daemon):
    """A PostgreSQL server on a free port of loopback, and on a socket in its directory."""

    user, database = "tester", "agents"

    def __init__(self) -> None:
        binaries = postgres_binaries()
        super().__init__("pg-")
        self._postgres = binaries / "postgres"
        self._data = self.directory / "data"
        secret = self.directory / "password"
        secret.write_text(PASSWORD + "\n")
        give_away(secret)
        self._run(
            binaries / "initdb",
            f"--pgdata={self._data}",
            f"--username={self.user}",
            f"--pwfile={secret}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        )
        self.start()
        self.execute(f"CREATE DATABASE {self.database}", database="postgres")

    def _run(self, *command: Any) -> None:
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            cwd=self.directory,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            **unprivileged(),
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = {
            **POSTGRES_SETTINGS,
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.directory),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        self._start(self._postgres, "-D", self._data, *options)
        wait_until(self._answers, "the start of PostgreSQL")

    def _answers(self) -> bool:
        import psycopg

        assert self.process.poll() is None, self.log
        try:
            psycopg.connect(self.url(database="postgres")).close()
        except psycopg.OperationalError:  # it is starting up, or recovering
            return False
        return True

    def url(
        self, *, database: str | None = None, user: str | None = None, password: str = PASSWORD
    ) -> str:
        """How to connect to it."""
        from urllib.parse import quote

        who = f"{user or self.user}:{quote(password, safe='')}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/{database or self.database}"

    @property
    def dsn(self) -> str:
        """How to connect to it, as its owner."""
        return self.url()

    def execute(self, statement: str, *values: Any, database: str | None = None) -> list[Any]:
        """Run a statement as the owner of the server."""
        import psycopg

        with psycopg.connect(self.url(database=database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def new_schema(self) -> str:
        """The name of a schema that is not there yet."""
        return f"s_{secrets.token_hex(8)}"

    def stop(self) -> None:
        """Shut it down at once, as on a reboot of its machine: connections are ended."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End all its processes at one moment, as on a loss of power."""
        self._signal(signal.SIGSTOP, signal.SIGKILL)
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Make it deaf and dumb: it takes connections and never answers."""
        self._signal(signal.SIGSTOP, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT, signal.SIGCONT)

    def recover(self) -> None:
        """Have it run, whatever was done to it."""
        if self._process is None:
            self.start()
        else:
            self.resume()

    def _signal(self, to_parent: int, to_children: int) -> None:
        """Signal the postmaster first, so that a stopped one begets no more children."""
        pid = self.process.pid
        os.kill(pid, to_parent)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            try:
                os.kill(int(child), to_children)
            except ProcessLookupError:  # it ended meanwhile
                pass


class Cut:
    """A wire to a server that can be cut, before it carries what is sent or what is answered."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._cuts: list[str] = []
        port = self._listener.getsockname()[1]
        self.dsn = server.dsn.replace(f":{server.port}/", f":{port}/")
        threading.Thread(target=self._accept, daemon=True).start()

    def next(self, *cuts: Literal["question", "answer"]) -> None:
        """Cut the wire at the next statement, before its question or its answer gets through."""
        self._cuts.extend(cuts)

    @property
    def left(self) -> int:
        """How many cuts are still to come."""
        return len(self._cuts)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._server.port))
        with client, server:
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    # Only statements are cut: they are parsed, which greetings are not.
                    if ready is client and data[:1] == b"P" and self._cuts:
                        if self._cuts.pop(0) == "answer":
                            server.sendall(data)
                            server.recv(1)
                        return
                    (server if ready is client else client).sendall(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # closed alone, it would be waited on for ever
        self._listener.close()


class PgBouncer(Daemon):
    """A pooler before a PostgreSQL server, which gives out its connections by transaction."""

    def __init__(self, server: PostgresServer) -> None:
        pgbouncer = program("pgbouncer", package="pgbouncer")
        super().__init__("pgbouncer-")
        users = self.directory / "users"
        users.write_text('"{}" "{}"\n'.format(server.user, PASSWORD.replace('"', '""')))
        settings = self.directory / "settings"
        settings.write_text(
            "[databases]\n"
            f"* = host=127.0.0.1 port={server.port}\n"
            "[pgbouncer]\n"
            "listen_addr = 127.0.0.1\n"
            f"listen_port = {self.port}\n"
            "auth_type = scram-sha-256\n"
            f"auth_file = {users}\n"
            "pool_mode = transaction\n"
            "default_pool_size = 4\n"
            "unix_socket_dir =\n"
        )
        self.dsn = server.dsn.replace(f":{server.port}/", f":{self.port}/")
        self._start(pgbouncer, "-q", settings)


@lru_cache(1)
def shared_postgres() -> PostgresServer:
    """The server of this test process, started when it is first needed and stopped at its end."""
    server = PostgresServer()
    atexit.register(server.stop)
    return server
