"""TCP connections on this machine that are made by its users."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

OTHER = 65534
IS_ROOT = os.geteuid() == 0
"""Whether connections of another user can be made."""

_NEAR = """
import os, socket, sys
family, host, own, port, user = sys.argv[1:]
os.setuid(int(user))
near = socket.socket(int(family))
near.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
near.bind((host, int(own)))
near.connect((host, int(port)))
sys.stdin.read()
"""


@dataclass
class Connection:
    """A connection as its server is told of it."""

    peer: Any
    far: Any
    _near: subprocess.Popen[bytes]

    @property
    def request(self) -> dict[str, Any]:
        """What an application is told of where a request comes from."""
        return {"client": self.peer, "server": self.far}

    def close(self) -> None:
        """End its near end, which is closed first then."""
        self._near.communicate()


@contextmanager
def connection(
    server_host: str = "127.0.0.1",
    host: str = "127.0.0.1",
    *,
    user: int | None = None,
    port: int = 0,
) -> Iterator[Connection]:
    """Make a connection by a process of a user, from a port if one is given.

    By a process, as to become another user interrupts whatever threads of this one wait for.
    """
    family = socket.AF_INET6 if ":" in server_host else socket.AF_INET
    near_family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as opened:
        server = opened.enter_context(
            socket.create_server(
                (server_host, 0), family=family, dualstack_ipv6=server_host == "::"
            )
        )
        asked = (near_family.value, host, port, server.getsockname()[1], user or os.geteuid())
        near = opened.enter_context(
            subprocess.Popen([sys.executable, "-c", _NEAR, *map(str, asked)], stdin=subprocess.PIPE)
        )
        accepted, peer = server.accept()
        with accepted:
            yield Connection(peer, accepted.getsockname(), near)
