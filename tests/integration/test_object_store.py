"""Large chunks in object storage: the contract and what is special, on a real S3 server over HTTP.

And in files, by the same library and code.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from holdfast import Client, SyncClient
from holdfast.errors import CheckpointIntegrityError, InvalidArgumentError
from holdfast.stores.base import Store
from holdfast.stores.file.store import FileStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.objects.store import LargeBlobs
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.redis.store import RedisStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.stores.urls import open_store as open_url
from holdfast.testing import OpenStore, StoreContract
from holdfast.testing.samples import keep, keep_notes, large_state, make_commit, make_note, state_of
from tests.clients import FACES, end
from tests.integration.async_face import on_loops
from tests.integration.object_server import S3Server
from tests.redis_servers import own_prefix, shared_server
from tests.servers import PostgresServer

pytest_plugins = ["tests.integration.object_fixtures", "tests.integration.postgres_fixtures"]


class TestEverythingOnS3(StoreContract):
    @pytest.fixture
    def open_store(self, s3: S3Server, bucket: str, tmp_path: Path) -> OpenStore:
        path = tmp_path / "holdfast.db"
        return lambda: LargeBlobs(SqliteStore(path), bucket, above=0, **s3.options)


class TestLargeChunksOnS3(StoreContract):
    @pytest.fixture
    def open_store(self, s3: S3Server, bucket: str, tmp_path: Path) -> OpenStore:
        path = tmp_path / "holdfast.db"
        return lambda: LargeBlobs(SqliteStore(path), bucket, **s3.options)


class TestEverythingOnS3AskedOnALoop(StoreContract):
    persistent = False

    @pytest.fixture
    def open_store(self, s3: S3Server, bucket: str) -> Iterator[OpenStore]:
        yield from on_loops(lambda: LargeBlobs(MemoryStore(), bucket, above=0, **s3.options))


class TestLargeChunksOnS3BesideMemory(StoreContract):
    persistent = False

    @pytest.fixture
    def open_store(self, s3: S3Server, bucket: str) -> OpenStore:
        return lambda: LargeBlobs(MemoryStore(), bucket, above=200, **s3.options)


class TestEverythingInFiles(StoreContract):
    @pytest.fixture
    def open_store(self, files: Path, tmp_path: Path) -> OpenStore:
        return lambda: LargeBlobs(SqliteStore(tmp_path / "holdfast.db"), url_of(files), above=0)


class TestEverythingInFilesBesideRedisOnALoop(StoreContract):
    @pytest.fixture
    def open_store(self, files: Path) -> Iterator[OpenStore]:
        url, prefix = shared_server().url, own_prefix()
        yield from on_loops(
            lambda: LargeBlobs(RedisStore(url, prefix=prefix), url_of(files), above=0)
        )


class TestEverythingInFilesBesidePostgresOnALoop(StoreContract):
    @pytest.fixture
    def open_store(self, files: Path, postgres: PostgresServer, schema: str) -> Iterator[OpenStore]:
        def open_store() -> Store:
            return LargeBlobs(PostgresStore(postgres.dsn, schema=schema), url_of(files), above=0)

        yield from on_loops(open_store)


def url_of(directory: Path) -> str:
    return f"file://{quote(str(directory))}"


def objects_in(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def store(inner: MemoryStore, files: Path) -> Iterator[LargeBlobs]:
    with LargeBlobs(inner, url_of(files), above=200) as store:
        yield store


def test_chunks_above_the_size_are_one_object(store: LargeBlobs, files: Path) -> None:
    (commit,) = keep(store, make_commit(large_state()))

    large = [data for data in commit.chunks.values() if len(data) > 200]

    assert 1 < len(large) < len(commit.chunks)
    (pack,) = objects_in(files)
    assert pack.read_bytes() == b"".join(large)


def test_a_small_state_never_touches_object_storage(inner: MemoryStore) -> None:
    nowhere = LargeBlobs(inner, "s3://nobody", endpoint="http://127.0.0.1:9", timeout=1)

    (commit,) = keep(nowhere, make_commit({"small": True}))

    assert state_of(nowhere.load(commit.info.checkpoint_id)) == {"small": True}
    assert nowhere.collect(commit.chunks.keys(), commit.info.created_at, False).chunks == 0


def test_what_was_saved_before_blobs_were_kept_apart_is_still_read(
    inner: MemoryStore, store: LargeBlobs
) -> None:
    before, after = make_commit(large_state()), make_commit(large_state(1))
    keep(inner, before)
    keep(store, after)

    assert state_of(store.load(before.info.checkpoint_id)) == large_state()
    assert state_of(store.load(after.info.checkpoint_id)) == large_state(1)


def test_who_opens_the_store_without_its_blobs_gets_an_error_and_no_garbage(
    inner: MemoryStore, store: LargeBlobs
) -> None:
    (commit,) = keep(store, make_commit(large_state()))

    for verify in (True, False):
        with pytest.raises(CheckpointIntegrityError, match="is in object storage: open"):
            inner.load(commit.info.checkpoint_id, verify)


def test_notes_of_its_own_are_not_shown_on_any_page(store: LargeBlobs) -> None:
    keep(store, make_commit(large_state()))
    keep_notes(store, make_note(key="first"), make_note(key="second"))
    keep(store, make_commit(large_state(1)))

    assert [note.key for note in store.notes(None)] == ["first", "second"]
    assert [note.key for note in store.notes(None, 0, 1)] == ["first"]
    place = store.notes(None, 0, 1)[-1].seq
    assert [note.key for note in store.notes(None, place, 1)] == ["second"]
    assert store.notes(None, store.notes(None)[-1].seq, 1) == []


def test_a_state_that_is_saved_again_is_not_uploaded_again(store: LargeBlobs, files: Path) -> None:
    keep(store, make_commit(large_state()))
    (pack,) = objects_in(files)
    before = pack.stat()

    keep(store, make_commit(large_state()), make_commit(large_state()))

    assert objects_in(files) == [pack]
    assert pack.stat() == before


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "lost": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "too long": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "a bit flipped": flip,
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_saved_again_mends_objects_that_were_damaged(
    face: str, damage: str, store: LargeBlobs, files: Path
) -> None:
    client = FACES[face].use(FACES[face].cls(store))
    first = client.save("a", execution_state=large_state(), session_id="one")
    for path in objects_in(files):
        DAMAGES[damage](path)
    assert not client.verify().ok

    client.save("a", execution_state=large_state(), session_id="two")

    assert client.verify().ok
    assert client.restore(first).execution_state == large_state()
    end(client)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damaged_object_is_found_by_verify_and_by_restore(
    store: LargeBlobs, files: Path, damage: str, face: str
) -> None:
    client = FACES[face].use(FACES[face].cls(store))
    whole = client.save("a", execution_state={"small": 1}, session_id="whole")
    hurt = client.save("a", execution_state=large_state(), session_id="hurt")

    for path in objects_in(files):
        data = path.read_bytes()
        DAMAGES[damage](path)

        found = client.verify()

        assert [each.checkpoint_id for each in found.damaged] == [hurt]
        if damage != "a bit flipped":  # which the reader of a chunk may not see until it is open
            assert "is missing" in found.damaged[0].reason
        with pytest.raises(CheckpointIntegrityError, match=hurt):
            client.restore(hurt)
        assert client.restore(whole).execution_state == {"small": 1}
        path.write_bytes(data)

    assert client.verify().ok
    assert client.restore(hurt).execution_state == large_state()
    end(client)


@pytest.mark.parametrize("face", FACES)
def test_large_states_go_to_s3_and_back(
    face: str, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    for inner in (MemoryStore(), SqliteStore(tmp_path / "holdfast.db")):
        client = FACES[face].use(FACES[face].cls(LargeBlobs(inner, bucket, **s3.options)))
        state = {"files": [random.Random(i).randbytes(100_000) for i in range(40)]}

        saved = client.save("a", execution_state=state)

        assert client.restore(saved).execution_state == state
        assert client.verify().ok
        stats = client.stats()
        assert stats.stored_bytes > 40 * 100_000
        assert inner.stats().stored_bytes < stats.stored_bytes / 3
        client.expire(saved)
        assert client.gc(grace_seconds=0, dry_run=True).bytes == stats.stored_bytes
        assert client.gc(grace_seconds=0).bytes == stats.stored_bytes
        assert client.stats().stored_bytes == 0
        end(client)


async def test_many_tasks_save_at_once_beside_sqlite(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    path = tmp_path / "holdfast.db"
    async with Client(LargeBlobs(SqliteStore(path), bucket, above=0, **s3.options)) as client:
        states = [{"task": i, "data": "words " * 200} for i in range(30)]
        saves = (client.save("a", execution_state=s, session_id=str(s["task"])) for s in states)
        saved = await asyncio.gather(*saves)
        found = [(await client.restore(each)).execution_state for each in saved]

    assert found == states


def test_threads_save_and_restore_at_once(s3: S3Server, bucket: str) -> None:
    with SyncClient(LargeBlobs(MemoryStore(), bucket, above=0, **s3.options)) as client:

        def work(number: int) -> bool:
            state = large_state(number % 3)
            saved = client.save("a", execution_state=state, session_id=str(number))
            return bool(client.restore(saved).execution_state == state)

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(work, range(24)))


def test_a_store_of_obstore_may_be_given_instead_of_a_url(files: Path) -> None:
    from obstore.store import LocalStore

    files.mkdir()
    with LargeBlobs(MemoryStore(), LocalStore(files), above=0) as store:
        (commit,) = keep(store, make_commit())

        assert state_of(store.load(commit.info.checkpoint_id)) == {"step": 1}
        assert objects_in(files)


def test_a_url_says_where_blobs_are(files: Path, tmp_path: Path) -> None:
    database = tmp_path / "holdfast.db"
    options = f"durability=normal&blobs={quote(url_of(files), safe='')}&blobs_above=100"
    with SyncClient.open(f"sqlite:///{database}?{options}") as client:
        saved = client.save("a", execution_state=large_state())
        assert client.restore(saved).execution_state == large_state()

    assert objects_in(files)
    assert database.exists()


def test_a_url_names_the_address_of_the_server(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    options = f"blobs={quote(bucket, safe='')}&blobs_above=0&blobs_endpoint={quote(s3.endpoint)}"

    with open_url(f"memory://?{options}") as store:
        (commit,) = keep(store, make_commit(large_state()))

        assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
        assert bucket in store.name


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("blobs_above=1", "URL such as"),
        ("blobs=ftp://host/dir", "URL such as"),
        ("blobs=bucket", "URL such as"),
        ("blobs=s3://", "names no place"),
        ("blobs=s3://key:hunter2@bucket", "no credentials"),
        ("blobs=s3://bucket%3Ftoken=hunter2", "no credentials"),
        ("blobs=memory://&blobs_above=-1", "number of bytes"),
        ("blobs=memory://&blobs_above=64k", "number of bytes"),
        ("blobs=memory://&blobs_timeout=soon", "of seconds"),
        ("blobs=memory://&blobs_region=x", "no such option for blobs: blobs_region"),
        ("blobs=memory://&blobs_endpoint=http://host", "address of an S3 server"),
        ("blobs=s3://bucket&blobs_endpoint=host:9000", "address of an S3 server"),
        ("blobs=memory://&other=1", "no such option for this store: other"),
    ],
)
def test_a_url_that_cannot_be_is_refused(options: str, complaint: str) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint) as caught:
        open_url(f"memory://?{options}")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("above", [-1, True, 1.5, "10"])
def test_a_size_that_cannot_be_is_refused(above: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="size in bytes"):
        LargeBlobs(MemoryStore(), "memory://", above=above)


def test_a_store_that_keeps_no_chunks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="sqlite, redis or postgres"):
        LargeBlobs(FileStore(tmp_path), "memory://")


def test_what_is_no_object_storage_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="not in int"):
        LargeBlobs(MemoryStore(), 7)  # type: ignore[arg-type]
