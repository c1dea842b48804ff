"""Real Redis servers on loopback for tests: one, three as a cluster, and Sentinels."""

import atexit
import secrets
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import redis

from tests.programs import program
from tests.waiting import wait_until

PASSWORD = "p@ss:w/rd " + secrets.token_hex(4)
"""Of every server; odd enough that it has to be percent-encoded in a URL."""
QUOTED = PASSWORD.replace("@", "%40").replace(":", "%3A").replace("/", "%2F").replace(" ", "%20")


def binary() -> str:
    """The server that is installed."""
    return program("redis-server", "valkey-server", package="redis-server")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port if port < 50_000 else free_port()  # a cluster also takes the port 10,000 above


class RedisServer:
    """A server of its own, which keeps what it acknowledged also when it is killed."""

    def __init__(self, *options: str, password: str = PASSWORD) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="holdfast-redis-")
        self.directory = Path(self._home.name)
        self.port = free_port()
        self.password = password
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        self.start()

    @property
    def url(self) -> str:
        return f"redis://:{QUOTED}@127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The number of the running process."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    @property
    def socket_path(self) -> Path:
        return self.directory / "redis.sock"

    def start(self) -> None:
        command = [binary(), "--port", str(self.port), "--dir", self._home.name]
        command += ["--bind", "127.0.0.1", "--unixsocket", str(self.socket_path), "--save", ""]
        command += ["--appendonly", "yes", "--appendfsync", "always"]
        command += ["--logfile", str(self.directory / "log"), *self._options]
        if self.password:
            command += ["--requirepass", self.password, "--masterauth", self.password]
        self._process = subprocess.Popen(command)
        wait_until(self._answers, "the start of Redis")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "log").read_text()
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False

    def client(self) -> Any:
        """A plain client of this server, for what no store would do."""
        return redis.Redis("127.0.0.1", self.port, password=self.password or None, protocol=2)

    @contextmanager
    def configured(self, **settings: Any) -> Iterator[None]:
        """With other settings, for a while."""
        with self.client() as client:
            before = {name: client.config_get(name)[name] for name in settings}
            for name, value in settings.items():
                client.config_set(name, value)
        try:
            yield
        finally:
            with self.client() as client:
                for name, value in before.items():
                    client.config_set(name, value)

    def _end(self, sign: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sign)
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """End it with SIGKILL; ``start`` brings it back with what it kept."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self._end(signal.SIGTERM)
        self.start()

    def pause(self) -> None:
        """Stop it from answering; connections stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._end(signal.SIGKILL)
        self._home.cleanup()
        atexit.unregister(self.stop)

    def __enter__(self) -> "RedisServer":
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class RedisCluster:
    """Three primaries that share all slots."""

    def __init__(self) -> None:
        enabled = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
        self.nodes = [RedisServer(*enabled) for _ in range(3)]
        bounds = [0, 5461, 10923, 16384]
        for node, first, end in zip(self.nodes, bounds, bounds[1:], strict=False):
            with node.client() as client:
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
                client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)
        self.wait()

    def wait(self) -> None:
        """Until every node says that all is well."""
        for node in self.nodes:
            wait_until(partial(self._knows_all, node), "the cluster coming together")

    def _knows_all(self, node: RedisServer) -> bool:
        with node.client() as client:
            info = client.execute_command("CLUSTER", "INFO")
        return b"cluster_state:ok" in info and b"cluster_known_nodes:3" in info

    @property
    def url(self) -> str:
        listed = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"redis+cluster://:{QUOTED}@{listed}"

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def __enter__(self) -> "RedisCluster":
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class Guarded:
    """A primary and its replica, and a Sentinel that makes the replica primary when asked."""

    SERVICE = "main"

    def __init__(self) -> None:
        self.primary = RedisServer()
        self.replica = RedisServer("--replicaof", "127.0.0.1", str(self.primary.port))
        wait_until(self._in_step, "the first copy to the replica")
        self._home = tempfile.TemporaryDirectory(prefix="holdfast-sentinel-")
        self._port = free_port()
        settings = Path(self._home.name) / "sentinel.conf"
        settings.write_text(
            f"port {self._port}\nbind 127.0.0.1\ndir {self._home.name}\nlogfile log\n"
            f"sentinel monitor {self.SERVICE} 127.0.0.1 {self.primary.port} 1\n"
            f'sentinel auth-pass {self.SERVICE} "{PASSWORD}"\n'
            f"sentinel down-after-milliseconds {self.SERVICE} 1000\n"
            f"sentinel failover-timeout {self.SERVICE} 3000\n"
        )
        self._process = subprocess.Popen([binary(), str(settings), "--sentinel"])
        atexit.register(self.stop)
        wait_until(self._sees_replica, "the start of the Sentinel")

    @property
    def url(self) -> str:
        return f"redis+sentinel://:{QUOTED}@127.0.0.1:{self._port}/{self.SERVICE}/0"

    def _in_step(self) -> bool:
        with self.replica.client() as client:
            return bool(client.info("replication")["master_link_status"] == "up")

    def _ask(self, *command: str) -> Any:
        with redis.Redis("127.0.0.1", self._port, protocol=2) as client:
            return client.execute_command("SENTINEL", *command)

    def _sees_replica(self) -> bool:
        try:
            found = self._ask("REPLICAS", self.SERVICE)
            return bool(found) and found[0][found[0].index(b"master-link-status") + 1] == b"ok"
        except redis.ConnectionError:
            return False

    def fail_over(self) -> None:
        """Have the roles changed, and wait until both servers know it."""
        self._ask("FAILOVER", self.SERVICE)
        for server, role in ((self.replica, "master"), (self.primary, "slave")):
            wait_until(partial(self._is, server, role), "the failover")

    def _is(self, server: RedisServer, role: str) -> bool:
        try:
            with server.client() as client:
                return bool(client.info("replication")["role"] == role)
        except redis.ConnectionError:  # a server that changes roles drops its clients
            return False

    def stop(self) -> None:
        atexit.unregister(self.stop)
        self._process.kill()
        self._process.wait()
        self._home.cleanup()
        self.replica.stop()
        self.primary.stop()

    def __enter__(self) -> "Guarded":
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


@cache
def shared_server() -> RedisServer:
    """One server for all tests of this process that do it no harm."""
    return RedisServer()


@cache
def shared_cluster() -> RedisCluster:
    """One cluster for all tests of this process that do it no harm."""
    return RedisCluster()


def own_prefix() -> str:
    """A prefix that no other store has."""
    return f"test-{secrets.token_hex(6)}"
