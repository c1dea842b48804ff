"""Object storage at the worst moment: gc between two steps of a save, servers that end or hang."""

import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.errors import (
    CheckpointConflictError,
    HoldfastError,
    StoreConnectionError,
    StoreFullError,
    StoreReadOnlyError,
)
from holdfast.stores.base import Collected, Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.objects import packs
from holdfast.stores.objects.keys import locations_in
from holdfast.stores.objects.store import LargeBlobs
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import crash_points
from holdfast.testing.samples import ids, keep, large_state, make_commit, state_of
from tests.clients import FACES, end
from tests.disks import PATH, own_disk
from tests.integration.object_server import (
    KEY,
    SECRET,
    Gate,
    S3Server,
    answering,
    refusing_the_first,
)

pytest_plugins = ["tests.integration.object_fixtures"]

TIMEOUT = 2.0


def in_files(inner: Store, files: Path) -> LargeBlobs:
    return LargeBlobs(inner, f"file://{files}", above=0)


def objects_in(directory: Path) -> int:
    return sum(path.is_file() for path in directory.rglob("*"))


def bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


@pytest.fixture
def gate(s3: S3Server) -> Iterator[Gate]:
    gate = Gate(s3.port)
    yield gate
    gate.close()


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a large state take many objects."""
    monkeypatch.setattr(packs, "PACK_BYTES", 400)


def once(work: Callable[[], Any]) -> Callable[[str], None]:
    """A listener that does something when objects have been uploaded for the first time."""
    left = [work]

    def on_reached(point: str) -> None:
        if point == "objects:uploaded" and left:
            left.pop()()

    return on_reached


@pytest.mark.parametrize("face", FACES)
def test_gc_between_upload_and_commit_does_not_harm_the_save(face: str, files: Path) -> None:
    client = FACES[face].use(FACES[face].cls(in_files(MemoryStore(), files)))
    other = SyncClient(client.store)
    client.save("a", execution_state={"step": 0}, session_id="s")

    taken: list[int] = []
    with crash_points.listening(once(lambda: taken.append(other.gc(grace_seconds=0).chunks))):
        saved = client.save("a", execution_state=large_state(), session_id="s")

    assert taken[0] > 0
    assert client.restore(saved).execution_state == large_state()
    assert client.verify().ok
    assert client.gc(grace_seconds=0).chunks == 0
    end(client)


def test_gc_within_the_grace_leaves_uploads_alone(files: Path) -> None:
    with SyncClient(in_files(MemoryStore(), files)) as client:
        client.save("a", execution_state={"step": 0}, session_id="s")

        taken: list[int] = []
        with crash_points.listening(once(lambda: taken.append(client.gc().chunks))):
            client.save("a", execution_state=large_state(), session_id="s")

        assert taken == [0]


def test_a_save_that_gc_meets_every_time_says_so(files: Path) -> None:
    with SyncClient(in_files(MemoryStore(), files)) as client:
        client.save("a", execution_state={"step": 0}, session_id="s")

        def collect(point: str) -> None:
            if point == "objects:uploaded":
                client.gc(grace_seconds=0)

        with (
            crash_points.listening(collect),
            pytest.raises(HoldfastError, match="save later"),
        ):
            client.save("a", execution_state=large_state(), session_id="s")

        assert len(client.timeline("a", "s")) == 1
        assert client.verify().ok


@pytest.mark.parametrize("place", ["files", "s3"])
def test_nothing_is_lost_when_saves_and_gc_go_on_at_once(
    place: str, files: Path, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    def open_client() -> SyncClient:
        inner = SqliteStore(tmp_path / "holdfast.db", "normal")
        if place == "files":
            return SyncClient(in_files(inner, files))
        return SyncClient(LargeBlobs(inner, bucket, above=0, **s3.options))

    done = threading.Event()

    def collect() -> int:
        rounds = 0
        with open_client() as client:
            while not done.is_set() or rounds == 0:
                client.gc(grace_seconds=0)
                rounds += 1
        return rounds

    def work(number: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        with open_client() as client:
            for step in range(8):
                state = {"mine": [f"{number} {step} " + "words " * 99] * 3, "all": "shared " * 200}
                saved = client.save("a", execution_state=state, session_id=str(number))
                if step % 3 == 2:
                    client.expire(saved)
                else:
                    kept[saved] = state
                    assert client.restore(saved).execution_state == state
        return kept

    with ThreadPoolExecutor(5) as threads:
        collecting = threads.submit(collect)
        try:
            results = list(threads.map(work, range(4)))
        finally:
            done.set()
        assert collecting.result() > 0

    with open_client() as client:
        for kept in results:
            for saved, state in kept.items():
                assert client.restore(saved).execution_state == state
        assert client.verify().ok
        client.gc(grace_seconds=0)
        assert client.gc(grace_seconds=0).chunks == 0
        assert client.verify().ok


def test_two_stores_in_one_place_never_take_each_others_objects(files: Path) -> None:
    with in_files(MemoryStore(), files) as one, in_files(MemoryStore(), files) as other:
        (commit,) = keep(one, make_commit(large_state()))
        keep(other, make_commit(large_state(1)))

        SyncClient(other).gc(grace_seconds=0)

        assert state_of(one.load(commit.info.checkpoint_id)) == large_state()


def test_what_is_not_ours_is_left_alone(files: Path) -> None:
    with in_files(MemoryStore(), files) as store:
        (commit,) = keep(store, make_commit(large_state()))
        (owner,) = files.iterdir()
        foreign = [files / "readme", owner / "readme", owner / "ab" / "abcd-ef", owner / "zz"]
        for path in foreign:
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine")
        store.delete(ids([commit]))

        assert SyncClient(store).gc(grace_seconds=0).chunks == len(commit.chunks)

        assert [path.read_text() for path in foreign] == ["mine"] * 4
        assert objects_in(files) == 4


class Failed(Exception):
    pass


def fail() -> None:
    raise Failed


def test_objects_of_a_save_that_was_cut_short_are_collected(files: Path) -> None:
    commit = make_commit(large_state())
    with in_files(MemoryStore(), files) as store:
        with crash_points.listening(once(fail)), pytest.raises(Failed):
            store.commit(commit)
        assert objects_in(files) == 1
        client = SyncClient(store)

        would = client.gc(grace_seconds=0, dry_run=True)
        assert objects_in(files) == 1
        collected = client.gc(grace_seconds=0)

        assert would == collected
        assert (collected.chunks, collected.bytes) == (
            len(commit.chunks),
            sum(map(len, commit.chunks.values())),
        )
        assert objects_in(files) == 0


def test_a_commit_that_is_refused_leaves_no_objects(files: Path) -> None:
    commit = make_commit(large_state())
    with in_files(MemoryStore(), files) as store:
        keep(store, commit)
        objects = objects_in(files)

        with pytest.raises(CheckpointConflictError):
            store.commit(make_commit(large_state(7), checkpoint_id=commit.info.checkpoint_id))

        assert objects_in(files) == objects
        assert state_of(store.load(commit.info.checkpoint_id)) == large_state()


def test_gc_that_was_cut_short_is_finished_by_the_next(files: Path) -> None:
    inner = MemoryStore()
    with in_files(inner, files) as store:
        commit, stays = keep(store, make_commit(os.urandom(9000)), make_commit(large_state(1)))
        store.delete(ids([commit]))
        # As if it had ended between stubs and objects.
        inner.collect(stays.chunks.keys(), datetime.now(UTC), False)
        needed = {place.object for place in locations_in(inner.fetch([*stays.chunks])).values()}
        before = bytes_in(files)

        freed = SyncClient(store).gc(grace_seconds=0).bytes

        assert freed == before - bytes_in(files) > 0
        assert SyncClient(store).gc(grace_seconds=0) == Collected(0, 0)
        assert objects_in(files) == len(needed)
        assert state_of(store.load(stays.info.checkpoint_id)) == large_state(1)


class Interrupted(MemoryStore):
    """Something happens just after stubs have been read."""

    then: Callable[[], Any] | None = None

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        found = super().fetch(names)
        then, self.then = self.then, None
        if then is not None:
            then()
        return found


def test_a_reader_finds_objects_that_were_saved_again_elsewhere_meanwhile(files: Path) -> None:
    inner = Interrupted()
    with in_files(inner, files) as store:
        (commit,) = keep(store, make_commit(large_state()))
        inner.then = lambda: keep(store, make_commit(large_state()))

        assert state_of(store.load(commit.info.checkpoint_id)) == large_state()


def test_a_record_removed_while_it_is_read_is_not_there(files: Path) -> None:
    inner = Interrupted()
    with in_files(inner, files) as store:
        (commit,) = keep(store, make_commit(large_state()))

        def remove() -> None:
            store.delete(ids([commit]))
            SyncClient(store).gc(grace_seconds=0)

        inner.then = remove

        assert store.load(commit.info.checkpoint_id) is None


@pytest.mark.usefixtures("small_packs")
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("requests", [0, 1, 5])
def test_a_server_that_is_gone_in_mid_save_is_an_error_and_nothing_is_kept(
    s3: S3Server, bucket: str, gate: Gate, face: str, requests: int
) -> None:
    blobs = {**s3.options, "endpoint": gate.endpoint}
    store = LargeBlobs(MemoryStore(), bucket, above=0, timeout=TIMEOUT, **blobs)
    client = FACES[face].use(FACES[face].cls(store))
    before = client.save("a", execution_state=large_state(), session_id="s")

    gate.shut_after(requests, b"PUT")
    with pytest.raises(StoreConnectionError, match="cannot be reached"):
        client.save("a", execution_state={"parts": [os.urandom(4000) for _ in range(99)]})
    with pytest.raises(StoreConnectionError, match="cannot be reached"):
        SyncClient(store).restore(before)
    gate.open()

    assert [info.checkpoint_id for info in client.find()] == [before]
    assert client.restore(before).execution_state == large_state()
    after = client.save("a", execution_state=large_state(1), session_id="s")
    assert client.restore(after).execution_state == large_state(1)
    client.gc(grace_seconds=0)
    assert client.gc(grace_seconds=0).chunks == 0
    assert client.verify().ok
    end(client)


@pytest.mark.usefixtures("small_packs")
@pytest.mark.parametrize("face", FACES)
def test_nothing_is_uploaded_any_more_once_a_save_has_failed(s3: S3Server, face: str) -> None:
    failed = threading.Event()
    after: list[bool] = []

    with refusing_the_first(lambda: after.append(failed.wait(0.5))) as endpoint:
        options = {**s3.options, "endpoint": endpoint}
        store = LargeBlobs(MemoryStore(), "s3://checkpoints/x", above=0, **options)
        client = FACES[face].use(FACES[face].cls(store))
        with pytest.raises(StoreReadOnlyError):
            client.save("a", execution_state={"parts": [f"{i} " * 900 for i in range(99)]})
        failed.set()
        end(client)

    assert after == [False] * len(after) != []


@pytest.mark.parametrize("face", FACES)
def test_a_server_that_was_killed_is_used_again_once_it_is_back(face: str) -> None:
    with S3Server() as server:
        store = LargeBlobs(
            MemoryStore(), server.url("x"), above=0, timeout=TIMEOUT, **server.options
        )
        client = FACES[face].use(FACES[face].cls(store))
        client.save("a", execution_state={"step": 0}, session_id="one")

        server.kill()
        with pytest.raises(StoreConnectionError, match="cannot be reached"):
            client.save("a", execution_state={"step": 1}, session_id="two")
        server.start()  # empty: it keeps nothing on a disk

        saved = client.save("a", execution_state={"step": 2}, session_id="two")
        assert [info.checkpoint_id for info in client.timeline("a", "two")] == [saved]
        assert client.restore(saved).execution_state == {"step": 2}
        end(client)


@pytest.mark.parametrize("face", FACES)
def test_a_server_that_does_not_answer_is_an_error_after_the_timeout(face: str) -> None:
    with S3Server() as server:
        store = LargeBlobs(
            MemoryStore(), server.url("x"), above=0, timeout=TIMEOUT, **server.options
        )
        client = FACES[face].use(FACES[face].cls(store))
        before = client.save("a", execution_state={"step": 0}, session_id="s")

        server.pause()
        with pytest.raises(StoreConnectionError, match="did not answer within 2 s"):
            client.save("a", execution_state={"step": 1}, session_id="s")
        server.resume()

        assert [info.checkpoint_id for info in client.timeline("a", "s")] == [before]
        saved = client.save("a", execution_state={"step": 2}, session_id="s")
        assert client.restore(saved).execution_state == {"step": 2}
        end(client)


@pytest.mark.parametrize(
    ("status", "code", "verb", "error", "remedy"),
    [
        (403, "InvalidAccessKeyId", "save", StoreConnectionError, "check AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", "restore", StoreConnectionError, "AWS_SECRET_ACCESS_KEY"),
        (403, "ExpiredToken", "gc", StoreConnectionError, "refuses the credentials"),
        (403, "AccessDenied", "save", StoreReadOnlyError, "s3:PutObject"),
        (403, "AccessDenied", "restore", StoreConnectionError, "s3:GetObject"),
        (403, "AccessDenied", "gc", StoreConnectionError, "s3:ListBucket"),
        (404, "NoSuchBucket", "save", StoreConnectionError, "create the bucket"),
        (404, "NoSuchBucket", "restore", StoreConnectionError, "create the bucket"),
        (404, "NoSuchBucket", "gc", StoreConnectionError, "create the bucket"),
        (301, "PermanentRedirect", "save", StoreConnectionError, "set AWS_REGION"),
        (400, "AuthorizationHeaderMalformed", "gc", StoreConnectionError, "set AWS_REGION"),
        (503, "SlowDown", "save", StoreConnectionError, "answers 503 SlowDown: try later"),
        (507, "XMinioStorageFull", "save", StoreFullError, "no space left"),
    ],
)
@pytest.mark.parametrize("face", FACES)
def test_every_refusal_names_the_remedy_and_no_secret(
    s3: S3Server, bucket: str, face: str, status: int, code: str, verb: str, error: Any, remedy: str
) -> None:
    inner = MemoryStore()
    saved = SyncClient(LargeBlobs(inner, bucket, above=0, **s3.options)).save(
        "a", execution_state={"step": 0}
    )
    verbs: dict[str, Callable[[SyncClient], Any]] = {
        "save": lambda client: client.save("a", execution_state={"step": 1}),
        "restore": lambda client: client.restore(saved),
        "gc": lambda client: client.gc(),
    }
    with answering(status, code) as endpoint:
        options = {**s3.options, "endpoint": endpoint}
        store = LargeBlobs(inner, bucket, above=0, timeout=TIMEOUT, **options)
        client = FACES[face].use(FACES[face].cls(store))

        with pytest.raises(error, match=remedy) as caught:
            verbs[verb](client)

        shown = "".join(traceback.format_exception(caught.value)) + store.name + repr(client)
        assert bucket in str(caught.value)
        assert SECRET not in shown
        assert KEY not in shown
        end(client)


def test_a_bucket_that_is_not_there_is_named(s3: S3Server) -> None:
    store = LargeBlobs(MemoryStore(), "s3://no-such-bucket/x", above=0, **s3.options)

    with store, pytest.raises(StoreConnectionError, match="s3://no-such-bucket/x is not there"):
        store.commit(make_commit())


def test_an_address_without_tls_has_to_be_asked_for(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    store = LargeBlobs(MemoryStore(), bucket, above=0, options=s3.options["options"])

    with store, pytest.raises(StoreConnectionError, match="AWS_ALLOW_HTTP=true"):
        store.commit(make_commit())


FORKED = """
import os, sys
from holdfast import SyncClient, StoreConnectionError
from holdfast.stores.memory import MemoryStore
from holdfast.stores.objects.store import LargeBlobs

with SyncClient(LargeBlobs(MemoryStore(), "file://" + sys.argv[1], above=0)) as client:
    saved = client.save("a", execution_state={"step": 1})
    child = os.fork()
    if child == 0:
        try:
            client.restore(saved)
        except StoreConnectionError as error:
            os._exit(0 if "spawn" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.restore(saved).execution_state == {"step": 1}
"""


def test_a_forked_child_is_told_that_it_cannot_go_on(files: Path) -> None:
    done = run(FORKED, files)

    assert done.returncode == 0, done.stderr


ON_A_FULL_DISK = """
import os, sys
from holdfast import SyncClient, StoreFullError
from holdfast.stores.memory import MemoryStore
from holdfast.stores.objects.store import LargeBlobs

with SyncClient(LargeBlobs(MemoryStore(), "file://" + sys.argv[1])) as client:
    saved = client.save("a", execution_state={"n": os.urandom(100_000)}, session_id="s")
    try:
        client.save("a", execution_state={"n": os.urandom(4_000_000)}, session_id="s")
    except StoreFullError as error:
        assert "no space left" in str(error)
    else:
        sys.exit("it was kept")
    assert len(client.timeline("a", "s")) == 1
    client.save("a", execution_state={"n": os.urandom(100_000)}, session_id="s")
    assert client.verify().ok
"""


def test_a_full_disk_is_an_error_and_what_fits_is_still_saved(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    within = own_disk(disk, "1m")

    done = run(ON_A_FULL_DISK, disk, within=within)

    assert done.returncode == 0, done.stderr


def run(
    script: str, *args: object, within: Collection[str] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*within, sys.executable, "-c", script, *map(str, args)],
        env=os.environ | {"PYTHONPATH": PATH},
        capture_output=True,
        text=True,
    )


KILLED_WHILE_WRITING = """
import os, signal, sys
from holdfast import SyncClient
from holdfast.system import crash_points

def die(point):
    if point == "objects:drafted":
        os.kill(os.getpid(), signal.SIGKILL)

with SyncClient.open(sys.argv[1]) as client:
    client.save("a", execution_state={"n": os.urandom(100_000)})
    crash_points.install(die)
    client.save("a", execution_state={"n": os.urandom(100_000)})
"""


def test_gc_removes_the_draft_of_an_object_whose_writer_was_killed(
    files: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/holdfast.db?blobs=file://{files}"

    done = run(KILLED_WHILE_WRITING, url)

    assert done.returncode == -signal.SIGKILL, done.stderr
    drafts = list(files.rglob(".holdfast-tmp-file-*"))
    assert drafts
    with SyncClient.open(url) as client:
        client.gc(dry_run=True)
        assert all(draft.exists() for draft in drafts)
        client.gc()
        assert not any(draft.exists() for draft in drafts)
        assert client.verify().ok
