"""Whose a TCP connection of this machine is, as its kernel tells over netlink; Linux alone can."""

from __future__ import annotations

import functools
import ipaddress
import socket
import struct
from typing import Any

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_ESTABLISHED = 1
_ANY = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")  # length, kind, flags, sequence, port id
_ASKED = struct.Struct("=BBBBI")  # family, protocol, extensions, padding, states
_ENDS = struct.Struct("!HH16s16s")  # ports and addresses: near, far
_WHERE = struct.Struct("=III")  # interface, cookie
_TOLD = struct.Struct("=BBBB")  # family, state, timer, retransmissions
_OWNER = struct.Struct("=IIIII")  # expires, queues, user, inode


def user_of(near: Any, far: Any) -> int | None:
    """Return which user of this machine holds the near end of a connection, from its two ends.

    None if it is of another machine, or closed: a connection that was closed has no user, and is
    listed as root's.
    """
    try:
        (host, port), (far_host, far_port) = near[:2], far[:2]
        address, far_address = _address(host), _address(far_host)
        if address.version != far_address.version:
            return None
        ends = _ENDS.pack(port, far_port, address.packed, far_address.packed)
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        told = _ask(family, ends)
    except (OSError, TypeError, ValueError, struct.error):  # no connection, or a server elsewhere
        return None
    return _owner(told)


@functools.cache
def can_tell_users() -> bool:
    """Return whether this machine tells whose connections are."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = server.getsockname()
        with socket.create_connection(far) as connection:
            return user_of(connection.getsockname(), far) is not None


def _ask(family: int, ends: bytes) -> bytes:
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY) + ends + _WHERE.pack(0, _ANY, _ANY)
    length = _HEADER.size + len(asked)
    netlink = getattr(socket, "AF_NETLINK", None)
    if netlink is None:
        raise OSError("no netlink here")
    with socket.socket(netlink, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.send(_HEADER.pack(length, _BY_FAMILY, _REQUEST, 1, 0) + asked)
        return kernel.recv(8192)


def _owner(told: bytes) -> int | None:
    kind = _HEADER.unpack_from(told)[1]
    if kind == _ERROR:  # there is no such connection
        return None
    _, state, _, _ = _TOLD.unpack_from(told, _HEADER.size)
    at = _HEADER.size + _TOLD.size + _ENDS.size + _WHERE.size
    user: int = _OWNER.unpack_from(told, at)[3]
    return user if state == _ESTABLISHED else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    found = ipaddress.ip_address(host.partition("%")[0])
    return getattr(found, "ipv4_mapped", None) or found
