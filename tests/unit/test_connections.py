"""Whose a connection is: of its two ends, alive, in both families; nobody's when it was closed."""

import os
from typing import Any

import pytest

from holdfast.system.connections import can_tell_users, user_of
from tests.connections import IS_ROOT, OTHER, connection


def test_linux_tells_whose_connections_are() -> None:
    assert can_tell_users()


@pytest.mark.parametrize(
    ("server", "host"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")]
)
def test_the_user_of_a_connection_is_told(server: str, host: str) -> None:
    with connection(server, host) as made:
        assert user_of(made.peer, made.far) == os.geteuid()

    if IS_ROOT:
        with connection(server, host, user=OTHER) as made:
            assert user_of(made.peer, made.far) == OTHER


def test_a_connection_that_was_closed_is_nobodys() -> None:
    with connection() as made:
        made.close()

        assert user_of(made.peer, made.far) is None


def test_a_port_that_two_connections_share_is_told_apart_by_their_other_ends() -> None:
    if not IS_ROOT:
        return
    with connection() as one, connection(user=OTHER, port=one.peer[1]) as other:
        assert one.peer == other.peer
        assert user_of(one.peer, one.far) == 0
        assert user_of(other.peer, other.far) == OTHER


def test_a_port_with_old_connections_is_of_who_has_it_now() -> None:
    if not IS_ROOT:
        return
    with connection() as old:
        old.close()  # first, so that its end is the one the kernel keeps
    with connection(user=OTHER, port=old.peer[1]) as made:
        assert user_of(made.peer, made.far) == OTHER


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
