"""Whose a connection is: of its two ends, alive, in both families; nobody's when it was closed."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from holdfast.system.connections import can_tell_users, user_of

OTHER = 65534


@contextmanager
def connection(
    server_host: str = "127.0.0.1", host: str = "127.0.0.1", user: int | None = None, port: int = 0
) -> Iterator[tuple[socket.socket, Any, Any]]:
    """The near socket of a connection, and its two ends as the server is told them."""
    family = socket.AF_INET6 if ":" in server_host else socket.AF_INET
    dual = server_host == "::"
    with ExitStack() as opened:
        server = opened.enter_context(
            socket.create_server((server_host, 0), family=family, dualstack_ipv6=dual)
        )
        if user is not None:
            os.seteuid(user)
            opened.callback(os.seteuid, 0)
        near = opened.enter_context(
            socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        )
        near.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        near.bind((host, port))
        near.connect((host, server.getsockname()[1]))
        accepted, peer = server.accept()
        with accepted:
            yield near, peer, accepted.getsockname()


def test_linux_tells_whose_connections_are() -> None:
    assert can_tell_users()


@pytest.mark.parametrize(
    ("server", "host"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")]
)
def test_the_user_of_a_connection_is_told(server: str, host: str) -> None:
    with connection(server, host) as (_, peer, far):
        assert user_of(peer, far) == os.geteuid()

    if os.geteuid() == 0:
        with connection(server, host, OTHER) as (_, peer, far):
            assert user_of(peer, far) == OTHER


def test_a_connection_that_was_closed_is_nobodys() -> None:
    with connection() as (near, peer, far):
        near.close()

        assert user_of(peer, far) is None


def test_a_port_that_two_connections_share_is_told_apart_by_their_other_ends() -> None:
    if os.geteuid() != 0:
        return
    with connection() as (_, peer, far), connection(user=OTHER, port=peer[1]) as (_, same, other):
        assert same == peer
        assert user_of(peer, far) == 0
        assert user_of(same, other) == OTHER


def test_a_port_with_old_connections_is_of_who_has_it_now() -> None:
    if os.geteuid() != 0:
        return
    with connection() as (near, peer, _):
        near.close()  # first, so that its end is the one the kernel keeps
    with connection(user=OTHER, port=peer[1]) as (_, same, far):
        assert user_of(same, far) == OTHER


@pytest.mark.parametrize(
    ("near", "far"),
    [
        *((None, None), ((), ()), (("127.0.0.1", 1), None), (("name", 1), ("127.0.0.1", 1))),
        *((("127.0.0.1", 1), ("127.0.0.1", 2)), (("127.0.0.1", 1), ("::1", 2))),
        *((("127.0.0.1", 70000), ("127.0.0.1", 2)), (("/a/socket", None), ("/a/socket", None))),
        *((("127.0.0.1", "1"), ("127.0.0.1", 2)), (("192.0.2.1", 1), ("192.0.2.2", 2))),
    ],
)
def test_what_is_no_connection_of_this_machine_is_nobodys(near: Any, far: Any) -> None:
    assert user_of(near, far) is None
