"""A Redis server that is down, slow, full, read-only or changed: a clear error, nothing half,
nothing acknowledged that is lost, and the same store works again when the fault is gone."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import (
    CheckpointConflictError,
    InvalidArgumentError,
    NoteExistsError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
    StoreFullError,
    StoreReadOnlyError,
)
from holdfast.stores.base import Commit, NotesOnly, Query, Store
from holdfast.stores.redis.store import RedisStore
from holdfast.testing.commits import is_absent
from holdfast.testing.samples import ids, keep, large_state, make_commit, make_note, state_of
from tests.integration.async_face import AsyncFace, LoopThread
from tests.integration.redis_kit import Proxy
from tests.programs import program
from tests.redis_servers import (
    PASSWORD,
    QUOTED,
    Guarded,
    RedisCluster,
    RedisServer,
    free_port,
    own_prefix,
    shared_cluster,
    shared_server,
)

FACES = ["threads", "loop"]


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.close()


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A server that a test may do anything to."""
    with RedisServer() as server:
        yield server


def opened(url: str, face: str, loop: LoopThread, **options: Any) -> Store:
    store = RedisStore(url, **{"prefix": own_prefix(), **options})
    return store if face == "threads" else AsyncFace(store, loop)


@pytest.mark.parametrize("face", FACES)
def test_a_server_that_was_restarted_is_used_again(
    face: str, server: RedisServer, loop: LoopThread
) -> None:
    with opened(server.url, face, loop) as store:
        (before,) = keep(store, make_commit(large_state()))

        server.restart()

        assert state_of(store.load(before.info.checkpoint_id)) == large_state()
        (after,) = keep(store, make_commit(parent_id=before.info.checkpoint_id))
        assert ids(store.query(Query())) == ids([after, before])


@pytest.mark.parametrize("face", FACES)
def test_a_killed_server_is_an_error_and_is_used_again_when_it_is_back(
    face: str, server: RedisServer, loop: LoopThread
) -> None:
    with opened(server.url, face, loop, timeout=0.3) as store:
        (before,) = keep(store, make_commit(large_state()))
        lost = make_commit(large_state(1))
        server.kill()

        with pytest.raises(StoreConnectionError, match="check that it runs"):
            store.commit(lost)
        with pytest.raises(StoreConnectionError, match="check that it runs"):
            store.load(before.info.checkpoint_id)

        server.start()
        assert state_of(store.load(before.info.checkpoint_id)) == large_state()
        assert is_absent(store, lost.info)
        store.commit(lost)
        assert state_of(store.load(lost.info.checkpoint_id)) == large_state(1)


@pytest.mark.parametrize("face", FACES)
def test_a_save_waits_for_a_server_that_is_away_for_a_moment(
    face: str, server: RedisServer, loop: LoopThread
) -> None:
    with opened(server.url, face, loop, timeout=20) as store:
        server.kill()
        comeback = threading.Timer(0.3, server.start)
        comeback.start()

        (commit,) = keep(store, make_commit(large_state()))

        comeback.join()
        assert state_of(store.load(commit.info.checkpoint_id)) == large_state()


@pytest.mark.parametrize("face", FACES)
def test_a_server_that_forgot_the_scripts_is_told_them_again(face: str, loop: LoopThread) -> None:
    with opened(shared_server().url, face, loop) as store, shared_server().client() as client:
        keep(store, make_commit())
        client.script_flush()

        first, second = keep(store, make_commit(large_state()), make_commit())
        client.script_flush()

        assert store.delete(ids([first, second])) == 2


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_save_whose_connection_is_cut_is_there_once(
    moment: str, face: str, loop: LoopThread
) -> None:
    with closing(Proxy(shared_server().port)) as proxy:
        url = f"redis://:{QUOTED}@127.0.0.1:{proxy.port}/0"
        with opened(url, face, loop) as store:
            keep(store, make_commit())
            commit = make_commit(large_state())
            proxy.cut_once(b"EVALSHA", moment)

            store.commit(commit)

            assert ids(store.query(Query(limit=1))) == ids([commit])
            assert store.stats().checkpoints == 2
            with pytest.raises(CheckpointConflictError):
                store.commit(commit)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_note_whose_connection_is_cut_is_there_once(moment: str) -> None:
    with closing(Proxy(shared_server().port)) as proxy:
        url = f"redis://:{QUOTED}@127.0.0.1:{proxy.port}/0"
        with RedisStore(url, prefix=own_prefix()) as store:
            note = make_note("/log")
            keep(store, make_commit())
            proxy.cut_once(b"EVALSHA", moment)

            store.commit(NotesOnly((note,), {}))

            assert len(store.notes(["/log"])) == 1
            with pytest.raises(NoteExistsError):
                store.commit(NotesOnly((note,), {}))


def test_a_large_save_whose_connection_is_cut_among_its_chunks_is_there_once() -> None:
    with closing(Proxy(shared_server().port)) as proxy:
        url = f"redis://:{QUOTED}@127.0.0.1:{proxy.port}/0"
        with RedisStore(url, prefix=own_prefix()) as store:
            state = [f"{n} " * 2000 for n in range(4000)]
            commit = make_commit(state)
            assert len(commit.chunks) > 500
            proxy.cut_once(b"SET", "before")

            store.commit(commit)

            assert state_of(store.load(commit.info.checkpoint_id)) == state


@pytest.mark.parametrize("face", FACES)
def test_a_server_that_does_not_answer_is_an_error_and_is_used_again(
    face: str, server: RedisServer, loop: LoopThread
) -> None:
    with opened(server.url, face, loop, timeout=0.3) as store:
        (before,) = keep(store, make_commit())
        unsure = make_commit(large_state())
        server.pause()
        try:
            with pytest.raises(StoreConnectionError, match="did not answer within"):
                store.commit(unsure)
            with pytest.raises(StoreConnectionError, match="did not answer within"):
                RedisStore(server.url, timeout=0.3)
        finally:
            server.resume()

        assert store.load(before.info.checkpoint_id) is not None
        if not is_absent(store, unsure.info):
            assert state_of(store.load(unsure.info.checkpoint_id)) == large_state()
        (after,) = keep(store, make_commit(large_state(1)))
        assert state_of(store.load(after.info.checkpoint_id)) == large_state(1)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_full_server_says_so_and_keeps_nothing_half(
    large: bool, face: str, server: RedisServer, loop: LoopThread
) -> None:
    with opened(server.url, face, loop) as store:
        (before,) = keep(store, make_commit(large_state()))
        state = [f"{n} " * 2000 for n in range(4000)] if large else {"small": 1}
        refused = make_commit(state, parent_id=before.info.checkpoint_id)

        with server.configured(maxmemory=1, **{"maxmemory-policy": "noeviction"}):
            with pytest.raises(StoreFullError, match="raise its maxmemory"):
                store.commit(refused)
            assert is_absent(store, refused.info)
            assert not store.fetch(refused.chunks)
            assert state_of(store.load(before.info.checkpoint_id)) == large_state()

        store.commit(refused)
        assert state_of(store.load(refused.info.checkpoint_id)) == state


@pytest.mark.parametrize("face", FACES)
def test_a_replica_is_read_but_not_written(
    face: str, server: RedisServer, loop: LoopThread
) -> None:
    with opened(server.url, face, loop) as store:
        (kept,) = keep(store, make_commit(large_state()))
        with server.client() as client:
            client.replicaof("127.0.0.1", free_port())
            client.config_set("replica-serve-stale-data", "yes")

        with pytest.raises(StoreReadOnlyError, match="read-only replica"):
            store.commit(make_commit())
        assert state_of(store.load(kept.info.checkpoint_id)) == large_state()

        with server.client() as client:
            client.replicaof("NO", "ONE")
        keep(store, make_commit())


def test_a_failover_is_followed_to_the_new_primary() -> None:
    with Guarded() as guarded, RedisStore(guarded.url, timeout=10) as store:
        (before,) = keep(store, make_commit(large_state()))

        guarded.fail_over()

        assert state_of(store.load(before.info.checkpoint_id)) == large_state()
        (after,) = keep(store, make_commit(parent_id=before.info.checkpoint_id))
        with RedisStore(guarded.replica.url) as new_primary:
            assert ids(new_primary.query(Query())) == ids([after, before])


def test_a_failover_is_followed_on_a_loop(loop: LoopThread) -> None:
    with Guarded() as guarded, opened(guarded.url, "loop", loop, timeout=10) as store:
        (before,) = keep(store, make_commit(large_state()))

        guarded.fail_over()

        keep(store, make_commit(parent_id=before.info.checkpoint_id))
        assert len(store.query(Query())) == 2


@pytest.mark.parametrize("password", ["wrong-secret", ""])
@pytest.mark.parametrize("kind", ["redis", "redis+cluster"])
def test_a_wrong_password_is_an_error_that_does_not_show_it(kind: str, password: str) -> None:
    place = shared_server() if kind == "redis" else shared_cluster()
    url = place.url.replace(QUOTED, password)

    with pytest.raises(StoreConnectionError, match="user or password") as caught:
        RedisStore(url)

    assert_says_nothing(caught.value, "wrong-secret")


def assert_says_nothing(error: BaseException | None, secret: str) -> None:
    """Neither the error nor one that led to it shows a secret."""
    while error is not None:
        assert secret not in f"{error!r} {error}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    "url",
    [
        "redis://:{}@127.0.0.1:port/0",
        "redis://:{}@127.0.0.1:99999/0",
        "redis://:{}#@127.0.0.1/0",
        "redis://:{}/@127.0.0.1/0",
        "redis://:{}@[::1/0",
        "redis://:{}@127.0.0.1/zero",
        "redis://:{}@/0",
        "redis://:{}@a,b/0",
        "redis+cluster://:{}@127.0.0.1/3",
        "redis+sentinel://:{}@127.0.0.1",
        "redis+other://:{}@127.0.0.1",
        "unix+cluster://:{}@/redis.sock",
        "mysql://:{}@127.0.0.1",
        "{}",
    ],
)
def test_a_url_that_cannot_be_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="redis://") as caught:
        RedisStore(url.format("hunter2"))

    assert_says_nothing(caught.value, "hunter2")


@pytest.mark.parametrize(
    "option", ["timeout=soon", "timeout=0", "prefix={x}", "ssl_check=x", "max_connections=x"]
)
def test_an_option_that_cannot_be_is_refused(option: str) -> None:
    with pytest.raises(InvalidArgumentError, match=option.partition("=")[0]):
        RedisStore(f"{shared_server().url}?{option}")


def test_the_name_of_a_store_tells_where_it_is_and_no_secret() -> None:
    with (
        RedisStore(shared_server().url, prefix="a") as store,
        RedisStore(shared_cluster().url) as c,
    ):
        assert (
            store.name == f"the Redis store redis://127.0.0.1:{shared_server().port}/0 (prefix a)"
        )
        assert str(shared_cluster().nodes[2].port) in c.name
        for shown in (PASSWORD, QUOTED):
            assert shown not in store.name + c.name


def test_prefix_and_timeout_may_be_given_in_the_url() -> None:
    prefix = own_prefix()
    with RedisStore(f"{shared_server().url}?prefix={prefix}&timeout=3") as store:
        (commit,) = keep(store, make_commit())

    with RedisStore(shared_server().url, prefix=prefix) as again:
        assert ids(again.query(Query())) == ids([commit])


def test_a_store_may_be_reached_by_a_socket_file() -> None:
    server = shared_server()
    with RedisStore(f"unix://:{QUOTED}@{server.socket_path}?db=0", prefix=own_prefix()) as store:
        keep(store, make_commit())

        assert store.name.startswith(f"the Redis store unix://{server.socket_path}")
        assert store.stats().checkpoints == 1


@pytest.mark.parametrize("face", FACES)
def test_a_store_may_be_reached_with_tls(face: str, tmp_path: Path, loop: LoopThread) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    openssl = program("openssl", package="openssl", asked="version")
    make = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=test"
    make += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    subprocess.run(make.split(), check=True, capture_output=True)
    port = free_port()
    options = ("--tls-port", str(port), "--tls-auth-clients", "no", "--tls-cert-file")
    with RedisServer(*options, str(certificate), "--tls-key-file", str(key)):
        url = f"rediss://:{QUOTED}@127.0.0.1:{port}/0"

        with opened(f"{url}?ssl_ca_certs={certificate}", face, loop) as store:
            (commit,) = keep(store, make_commit(large_state()))
            assert state_of(store.load(commit.info.checkpoint_id)) == large_state()

        with pytest.raises(StoreConnectionError, match=r"certificate|CERTIFICATE"):
            RedisStore(url)


def test_nobody_at_the_address_is_an_error_that_names_it() -> None:
    port = free_port()

    with pytest.raises(StoreConnectionError, match=f"127.0.0.1:{port}.*check that it runs"):
        RedisStore(f"redis://127.0.0.1:{port}")


def test_a_cluster_has_to_be_named_as_one() -> None:
    with pytest.raises(StoreConnectionError, match=r"write redis\+cluster://"):
        RedisStore(shared_cluster().nodes[0].url)


def test_a_single_server_is_no_cluster() -> None:
    with pytest.raises(StoreConnectionError, match="is no cluster: use redis://"):
        RedisStore(shared_server().url.replace("redis://", "redis+cluster://"))


def test_a_user_who_may_not_do_all_is_told_what_is_needed(server: RedisServer) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "reader", "on", "nopass", "~*", "+@read", "+hello")
    url = f"redis://reader:any@127.0.0.1:{server.port}"

    with RedisStore(url) as store, pytest.raises(StoreConnectionError, match="let this user"):
        store.commit(make_commit())


def test_a_store_of_a_newer_format_is_left_alone() -> None:
    prefix = own_prefix()
    with shared_server().client() as client:
        client.set(f"{{{prefix}}}:format", "v4")

    with pytest.raises(StoreFormatError, match="upgrade Holdfast"):
        RedisStore(shared_server().url, prefix=prefix)


def test_what_is_written_to_a_store_of_0_2_keeps_older_programs_out() -> None:
    """They would neither see where a record was placed, nor be stopped by a fence."""
    prefix = own_prefix()
    server = shared_server()
    with server.client() as client, RedisStore(server.url, prefix=prefix) as store:
        client.set(f"{{{prefix}}}:format", "1")
        RedisStore(server.url, prefix=prefix).close()

        store.commit(make_commit())

        assert client.get(f"{{{prefix}}}:format") == b"v3"


def test_keys_of_another_program_are_not_touched() -> None:
    prefix = own_prefix()
    server = shared_server()
    with server.client() as client, RedisStore(server.url, prefix=prefix) as store:
        client.set(f"{{{prefix}}}:all", "mine")

        with pytest.raises(StoreFormatError, match="choose another prefix"):
            store.commit(make_commit())

        assert client.get(f"{{{prefix}}}:all") == b"mine"


def test_a_server_that_is_too_old_is_refused() -> None:
    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while data := connection.recv(65536):
                hello = b"*14\r\n" + b"".join(
                    b"$%d\r\n%s\r\n" % (len(word), word)
                    for word in b"server redis version 6.2.7 proto 2 id 1 mode standalone "
                    b"role master modules none".split()
                )
                connection.sendall(hello if b"HELLO" in data else b"$-1\r\n" * data.count(b"*"))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()

        with pytest.raises(StoreConnectionError, match=r"version 6.2.7: Redis 7 or Valkey"):
            RedisStore(f"redis://127.0.0.1:{listener.getsockname()[1]}")


def test_without_the_package_it_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['redis'] = None\n"
        "from holdfast.stores.redis.store import RedisStore\n"
        "RedisStore('redis://localhost')\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.stderr.splitlines()[-1].endswith("pip install 'holdfast[redis]'")


def test_a_node_of_a_cluster_that_is_away_is_an_error_and_is_used_again() -> None:
    prefix = own_prefix()
    with RedisCluster() as cluster, RedisStore(cluster.url, prefix=prefix, timeout=0.5) as store:
        (before,) = keep(store, make_commit(large_state()))
        chunks = {n.to_bytes(20, "big"): b"\x00%d" % n for n in range(100)}  # on all nodes
        cluster.nodes[1].kill()

        with pytest.raises(StoreError):
            store.commit(Commit(make_commit().info, chunks))

        cluster.nodes[1].start()
        cluster.wait()
        (after,) = keep(store, make_commit(large_state(1)))
        for commit, state in ((before, large_state()), (after, large_state(1))):
            assert state_of(store.load(commit.info.checkpoint_id)) == state
