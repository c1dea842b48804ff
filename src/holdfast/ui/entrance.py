"""The links that let somebody in, each of them once; and who it is that asks from this machine."""

from __future__ import annotations

import os
import secrets
import socket
import struct
from collections.abc import Iterator
from typing import Any

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_MAPPED = bytes(10) + b"\xff\xff"


class Entrance:
    """Tokens, each of which lets in whoever shows it first.

    One that a browser is started with can be seen by every user of the machine, in the list of
    processes. It counts only over a connection that the user of this very process has made.
    """

    def __init__(self, token: str | None) -> None:
        self._tokens = [] if token is None else [(token.encode(), False)]

    def own_token(self) -> str:
        """Return one more token, for this user of this machine alone."""
        token = secrets.token_urlsafe(32)
        self._tokens.append((token.encode(), True))
        return token

    def admits(self, token: str, peer: Any) -> bool:
        """Return whether a token counts, which none does afterwards; called on the event loop."""
        given = token.encode("utf-8", "replace")
        for each in self._tokens:
            wanted, is_own = each
            if secrets.compare_digest(given, wanted) and (not is_own or _is_ours(peer)):
                self._tokens.remove(each)
                return True
        return False


def _is_ours(peer: Any) -> bool:
    """Return whether this user has made a connection on this machine; True if nobody can say."""
    return not can_tell_users() or user_of(peer) == os.getuid()


def can_tell_users() -> bool:
    """Return whether this machine tells whose connections are."""
    return os.path.exists(_TABLES[0])


def user_of(peer: Any) -> int | None:
    """Return which user of this machine has made a connection; None if it came from elsewhere."""
    try:
        wanted = _in_the_kernel(*peer[:2])
    except (OSError, TypeError, ValueError):  # a test, or a server that listens otherwise
        return None
    return next((user for near, user in _connections() if near == wanted), None)


def _connections() -> Iterator[tuple[bytes, int]]:
    """Yield the near end of every connection of this machine, and whose it is."""
    for table in _TABLES:
        try:
            with open(table, encoding="ascii") as lines:
                next(lines)
                for line in lines:
                    _, near, _, _, _, _, _, uid, *_ = line.split()
                    yield _end(near), int(uid)
        except OSError:
            continue


def _end(written: str) -> bytes:
    """Return an address and port, from the hexadecimal words of the kernel."""
    address, _, port = written.partition(":")
    words = [int(address[i : i + 8], 16) for i in range(0, len(address), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return packed.removeprefix(_MAPPED) + struct.pack("!H", int(port, 16))


def _in_the_kernel(host: str, port: int) -> bytes:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host.partition("%")[0])
    return packed.removeprefix(_MAPPED) + struct.pack("!H", port)
