"""Packs: how few requests there are, and that what shares a pack is moved and removed safely."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore as Objects
from obstore.store import ObjectStore

from holdfast import SyncClient
from holdfast.core.chunk_format import compress, decompress
from holdfast.core.codec import pack
from holdfast.errors import CheckpointIntegrityError, HoldfastError
from holdfast.stores.base import Collected, Commit, Note, NotesOnly, Query
from holdfast.stores.memory import MemoryStore
from holdfast.stores.objects import packs, removal
from holdfast.stores.objects.keys import locations_in, stub_in_pack, tag_of
from holdfast.stores.objects.packs import SCOPE
from holdfast.stores.objects.requests import BlobPlan
from holdfast.stores.objects.store import LargeBlobs
from holdfast.stores.objects.writes import BlobWrites
from holdfast.testing import crash_points
from holdfast.testing.samples import ids, keep, large_state, make_commit, state_of
from tests.clients import FACES, end
from tests.integration.fork_server import ForkServer
from tests.integration.object_jobs import state_at
from tests.integration.object_server import Counted, S3Server, counting

pytest_plugins = ["tests.integration.object_fixtures"]

OWNER = bytes(range(8))


def in_files(inner: MemoryStore, files: Path, above: int = 0) -> LargeBlobs:
    return LargeBlobs(inner, f"file://{files}", above=above)


def objects_in(files: Path) -> list[Path]:
    return sorted(path for path in files.rglob("*") if path.is_file())


def noise(size: int, seed: object = 0) -> bytes:
    return random.Random(str(seed)).randbytes(size)


@pytest.fixture(scope="module")
def counted(s3: S3Server) -> Iterator[Counted]:
    with counting(s3) as counted:
        yield counted


# How many requests there are.


@pytest.mark.parametrize("face", FACES)
def test_what_is_done_with_a_state_takes_a_request_or_two(
    face: str, s3: S3Server, bucket: str, counted: Counted
) -> None:
    store = LargeBlobs(MemoryStore(), bucket, **{**s3.options, "endpoint": counted.endpoint})
    client = FACES[face].use(FACES[face].cls(store))
    state: dict[str, Any] = {"talk": [f"{i} " + noise(600, i).hex() for i in range(1500)]}
    counted.take()

    first = client.save("a", execution_state=state, session_id="one")
    assert counted.take() == {"PUT": 1}

    client.save("a", execution_state=state, session_id="two")
    assert counted.take() == {"HEAD": 1}

    more = [f"{i} " + noise(600, i).hex() for i in range(1500, 1800)]
    changed = {"talk": state["talk"] + more, "step": 1}
    client.save("a", execution_state=changed, session_id="two")
    assert counted.take() == {"PUT": 1}

    assert client.restore(first).execution_state == state
    assert counted.take() == {"GET": 1}

    newest = client.latest("a", "two")
    assert newest is not None
    assert newest.execution_state == changed
    assert counted.take() == {"GET": 2}

    for step in range(100):
        client.save("a", execution_state={**changed, "step": step}, session_id="two")
    assert len(client.timeline("a", "two", limit=100)) == 100
    assert counted.take() == {}

    client.gc(grace_seconds=0)
    assert counted.take() == {"LIST": 1}

    for info in client.timeline("a", "two", limit=None):
        client.expire(info.checkpoint_id)
    client.gc(grace_seconds=0)
    assert counted.take() == {"LIST": 1, "DELETE": 1}

    assert client.restore(first).execution_state == state
    end(client)


@pytest.mark.parametrize("face", FACES)
def test_a_large_state_is_sent_and_fetched_in_large_parts(
    face: str, s3: S3Server, bucket: str, counted: Counted
) -> None:
    store = LargeBlobs(MemoryStore(), bucket, **{**s3.options, "endpoint": counted.endpoint})
    client = FACES[face].use(FACES[face].cls(store))
    state = {"picture": noise(10_000_000)}
    counted.take()

    saved = client.save("a", execution_state=state)
    assert counted.take() == {"PUT": 3}

    assert client.restore(saved).execution_state == state
    assert counted.take()["GET"] <= 4  # its chunks are asked for some at a time
    end(client)


def test_of_what_is_scattered_little_is_asked_for_and_the_rest_is_put_together(
    s3: S3Server, bucket: str, counted: Counted
) -> None:
    options = {**s3.options, "endpoint": counted.endpoint}
    with SyncClient(LargeBlobs(MemoryStore(), bucket, above=500, **options)) as client:
        parts = {f"part {n}": noise(6000, n) for n in range(30)}
        for name, part in parts.items():
            client.save("a", execution_state={name: part})
        counted.take()

        saved = client.save("a", execution_state=parts)
        assert counted.take() == {"HEAD": 8, "PUT": 1}

        assert client.restore(saved).execution_state == parts
        assert counted.take()["GET"] < 15


def test_chunks_far_apart_are_fetched_without_what_is_between(
    s3: S3Server, bucket: str, counted: Counted
) -> None:
    store = LargeBlobs(MemoryStore(), bucket, **{**s3.options, "endpoint": counted.endpoint})
    with SyncClient(store) as client:
        parts = {f"part {n}": noise(60_000, n) for n in range(50)}
        client.save("a", execution_state=parts)
        some = {name: parts[name] for name in ("part 3", "part 40")}
        saved = client.save("a", execution_state=some)
        counted.take()

        assert client.restore(saved).execution_state == some

        assert counted.received < 200_000
        assert counted.take() == {"GET": 2}


# What shares a pack.


@pytest.mark.parametrize("face", FACES)
def test_a_pack_that_is_half_in_vain_is_made_anew(face: str, files: Path) -> None:
    client = FACES[face].use(FACES[face].cls(in_files(MemoryStore(), files, above=1000)))
    keeps, goes = {"keeps": noise(50_000)}, {"goes": noise(70_000, 1)}
    both = client.save("a", execution_state={**keeps, **goes})
    kept = client.save("a", execution_state=keeps)
    assert len(objects_in(files)) == 1
    client.expire(both)
    before = client.stats().stored_bytes

    would = client.gc(grace_seconds=0, dry_run=True)
    done = client.gc(grace_seconds=0)

    assert done == would
    assert before - client.stats().stored_bytes == done.bytes > 70_000
    (moved,) = objects_in(files)
    assert moved.stat().st_size < 51_000
    assert client.restore(kept).execution_state == keeps
    assert client.verify().ok
    assert client.gc(grace_seconds=0) == Collected(0, 0)
    assert objects_in(files) == [moved]
    end(client)


def test_a_pack_of_which_little_is_in_vain_stays(files: Path) -> None:
    with SyncClient(in_files(MemoryStore(), files, above=1000)) as client:
        keeps, goes = {"keeps": noise(70_000)}, {"goes": noise(20_000, 1)}
        both = client.save("a", execution_state={**keeps, **goes})
        kept = client.save("a", execution_state=keeps)
        client.expire(both)
        before = objects_in(files)

        assert client.gc(grace_seconds=0).chunks > 0

        assert objects_in(files) == before
        assert client.restore(kept).execution_state == keeps


def test_many_small_packs_are_put_together(files: Path) -> None:
    with SyncClient(in_files(MemoryStore(), files, above=1000)) as client:
        states = {}
        for step in range(40):
            state = {"of": step, "part": noise(9000, step)}
            states[client.save("a", execution_state=state, session_id="s")] = state
        assert len(objects_in(files)) == 40

        assert client.gc().chunks == 0
        assert len(objects_in(files)) == 40  # a save that is under way may rely on what is young

        assert client.gc(grace_seconds=0) == Collected(0, 0)

        assert len(objects_in(files)) == 1
        for saved, state in states.items():
            assert client.restore(saved).execution_state == state
        assert client.verify().ok
        assert client.gc(grace_seconds=0) == Collected(0, 0)
        for saved in states:
            client.expire(saved)
        client.gc(grace_seconds=0)
        assert objects_in(files) == []
        assert client.stats().stored_bytes == 0
        assert [note.scope for note in client.store.inner.notes(None)] == [SCOPE]  # type: ignore[attr-defined]


def test_a_pack_that_is_damaged_stays_where_it_is(files: Path) -> None:
    with SyncClient(in_files(MemoryStore(), files, above=1000)) as client:
        both = client.save("a", execution_state={"keeps": noise(20_000), "goes": noise(70_000, 1)})
        kept = client.save("a", execution_state={"keeps": noise(20_000)})
        client.expire(both)
        (path,) = objects_in(files)
        data = path.read_bytes()
        path.write_bytes(bytes(len(data)))

        client.gc(grace_seconds=0)

        assert objects_in(files) == [path]
        assert [each.checkpoint_id for each in client.verify().damaged] == [kept]
        path.write_bytes(data)
        assert client.restore(kept).execution_state == {"keeps": noise(20_000)}
        client.gc(grace_seconds=0)
        assert [each.stat().st_size < 21_000 for each in objects_in(files)] == [True]
        assert client.verify().ok


# gc while something relies on what it removes.


def at(point: str, work: Callable[[], Any]) -> Callable[[str], None]:
    """A listener that does something when a point is reached for the first time."""
    left = [work]

    def on_reached(name: str) -> None:
        if name == point and left:
            left.pop()()

    return on_reached


@pytest.mark.parametrize("face", FACES)
def test_gc_never_takes_what_a_save_has_found_to_be_there(face: str, files: Path) -> None:
    client = FACES[face].use(FACES[face].cls(in_files(MemoryStore(), files)))
    other = SyncClient(client.store)
    first = client.save("a", execution_state=large_state(), session_id="one")
    (before,) = objects_in(files)

    def collect() -> None:
        other.expire(first)
        assert other.gc(grace_seconds=0).chunks > 0
        assert before not in objects_in(files)

    with crash_points.listening(at("objects:uploaded", collect)):
        saved = client.save("a", execution_state=large_state(), session_id="two")

    assert client.restore(saved).execution_state == large_state()
    assert client.verify().ok
    assert client.gc(grace_seconds=0) == Collected(0, 0)
    end(client)


Begin = Callable[[BlobWrites], BlobPlan[Any]]


class Actor:
    """A plan that is carried out step by step, so that those of others come in between."""

    def __init__(self, inner: MemoryStore, bucket: ObjectStore, begin: Begin) -> None:
        self._store = LargeBlobs(inner, bucket, above=0)
        self._plan = begin(self._store._plans)
        self._answer: Any = None
        self._failure: HoldfastError | None = None
        self.is_done = False

    def step(self) -> None:
        """Carry out the next step."""
        try:
            if self._failure is None:
                asked = self._plan.send(self._answer)
            else:
                asked = self._plan.throw(self._failure)
        except StopIteration:
            self.is_done = True
            return
        self._answer = self._failure = None
        try:
            self._answer = self._store._answer(asked)
        except HoldfastError as failure:
            self._failure = failure

    def end(self) -> None:
        """Carry out all that is left."""
        while not self.is_done:
            self.step()


class World:
    """A store of which nothing is needed but what is saved from now on; saves, and gc beside."""

    def __init__(self) -> None:
        self.inner, self.bucket = MemoryStore(), Objects()
        store = LargeBlobs(self.inner, self.bucket, above=0)
        stays = {"state": large_state(9), "part": noise(900)}
        self.saved = keep(store, make_commit(stays))
        gone = [make_commit(state) for state in (large_state(), [stays, noise(900, 1)], noise(99))]
        keep(store, *gone)
        store.delete(ids(gone))

    def saving(self, state: Any) -> Actor:
        commit = make_commit(state)
        self.saved.append(commit)
        return Actor(self.inner, self.bucket, lambda plans: plans.commit(commit))

    def collecting(self) -> Actor:
        """Collect what is not needed by the records that there are now."""
        there = {info.checkpoint_id for info in self.inner.query(Query())}
        known = [each for each in self.saved if each.info.checkpoint_id in there]
        live, now = {name for each in known for name in each.chunks}, datetime.now(UTC)
        return Actor(self.inner, self.bucket, lambda plans: plans.collect(live, now, False))

    def check(self) -> None:
        """All that was saved is there, and what is not needed goes."""
        with LargeBlobs(self.inner, self.bucket, above=0) as store:
            for commit in self.saved:
                found = store.load(commit.info.checkpoint_id)
                assert found is not None
                assert found.chunks.keys() == commit.chunks.keys()
            client = SyncClient(store)
            assert client.verify().ok
            client.gc(grace_seconds=0)
            assert client.gc(grace_seconds=0) == Collected(0, 0)
            assert client.verify().ok
            needed = {name for each in self.saved for name in each.chunks}
            assert client.stats().chunks == len(needed)


def steps_of(actor: Actor) -> int:
    steps = 0
    while not actor.is_done:
        actor.step()
        steps += 1
    return steps


STATES = {"stored": large_state(), "stored in part": [large_state(), "new"], "new": large_state(5)}


@pytest.mark.parametrize("state", STATES)
def test_gc_at_every_moment_of_a_save_and_a_save_at_every_moment_of_gc(state: str) -> None:
    saves = steps_of(World().saving(STATES[state]))
    collects = steps_of(World().collecting())

    assert saves > 3
    assert collects > 8
    for before in range(saves + 1):
        for meanwhile in range(collects + 1):
            for is_first in (False, True):
                world = World()
                collecting = world.collecting() if is_first else None
                saving = world.saving(STATES[state])
                for _ in range(before):
                    saving.step()
                collecting = collecting or world.collecting()
                for _ in range(meanwhile):
                    collecting.step()
                saving.end()
                collecting.end()
                world.check()


@pytest.mark.parametrize("seed", range(150))
def test_saves_and_collections_that_take_turns_lose_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "PACK_BYTES", 1500)
    monkeypatch.setattr(removal, "_ENOUGH", 2)
    chance, world = random.Random(seed), World()
    actors = [world.collecting(), world.collecting()]
    actors += [world.saving(chance.choice([*STATES.values()])) for _ in range(3)]

    while actors:
        actor = chance.choice(actors)
        actor.step()
        if actor.is_done:
            actors.remove(actor)

    world.check()


# Killed at every point.


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer("tests.integration.object_jobs", "holdfast.stores.sqlite.store") as server:
        yield server


@pytest.mark.crash
@pytest.mark.parametrize("time", [1, 2, 5])
@pytest.mark.parametrize("point", crash_points.OBJECT_POINTS)
def test_what_was_saved_stays_wherever_a_save_or_gc_is_killed(
    point: str, time: int, server: ForkServer, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/holdfast.db?blobs=file://{tmp_path}/blobs&blobs_above=1000"
    kept: dict[str, tuple[str, int]] = {}

    for _ in range(2):
        job = "tests.integration.object_jobs:save_and_collect_until_killed"
        ended = server.killed(job, url, point, time)

        assert ended.signal == signal.SIGKILL, ended.error
        for saved, session, step in ended.told:
            if session is None:
                kept.pop(saved, None)
            else:
                kept[saved] = (session, step)
        with SyncClient.open(url) as client:
            assert client.verify().ok
            for saved, (session, step) in kept.items():
                assert client.restore(saved).execution_state == state_at(session, step)

    with SyncClient.open(url) as client:
        client.gc(grace_seconds=0)
        assert client.verify().ok
        assert client.gc(grace_seconds=0) == Collected(0, 0)
        for info in client.find(limit=None):
            client.expire(info.checkpoint_id)
        client.gc(grace_seconds=0)
        assert objects_in(tmp_path / "blobs") == []


# Stores of older and of newer Holdfasts.


def as_before(inner: MemoryStore, files: Path, commit: Commit) -> None:
    """Keep a commit as Holdfast 0.3 did: each large chunk an object, with a stub of its own."""
    stubs = {}
    for name, data in commit.chunks.items():
        upload = os.urandom(8)
        path = files / OWNER.hex() / name.hex()[:2] / f"{name.hex()}-{upload.hex()}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        stubs[name] = b"\x02" + OWNER + upload + len(data).to_bytes(8, "big")
    if not inner.notes([SCOPE]):
        inner.commit(NotesOnly((Note.of(SCOPE, "owner", compress(pack(OWNER))),), {}))
    inner.commit(Commit(commit.info, stubs))


def test_what_an_older_holdfast_saved_is_read_and_gone_on_with(files: Path) -> None:
    inner = MemoryStore()
    first, second = make_commit(large_state()), make_commit(large_state(1))
    as_before(inner, files, first)
    as_before(inner, files, second)
    alone = len(objects_in(files))

    with in_files(inner, files) as store:
        client = SyncClient(store)
        assert client.verify().ok
        assert client.gc(grace_seconds=0).chunks == 0
        assert len(objects_in(files)) == len({*first.chunks, *second.chunks}) < alone
        saved = client.save("a", execution_state=large_state(), session_id="new")
        assert client.restore(saved).execution_state == large_state()
        assert state_of(store.load(first.info.checkpoint_id)) == large_state()

        store.delete(ids([first, second]))
        client.gc(grace_seconds=0)
        assert client.restore(saved).execution_state == large_state()
        client.expire(saved)
        client.gc(grace_seconds=0)
        assert objects_in(files) == []


def test_objects_that_an_older_holdfast_kept_are_packed_when_they_are_saved_again(
    files: Path,
) -> None:
    """Nothing relies on them: it would remove them without a word to those that do."""
    inner = MemoryStore()
    as_before(inner, files, commit := make_commit(large_state()))
    before = objects_in(files)

    with in_files(inner, files) as store:
        keep(store, make_commit(large_state()))

        places = locations_in(inner.fetch([*commit.chunks])).values()
        (packed,) = {files / place.object.path for place in places}
        assert objects_in(files) == sorted([*before, packed])
        SyncClient(store).gc(grace_seconds=0)
        assert objects_in(files) == [packed]
        assert state_of(store.load(commit.info.checkpoint_id)) == large_state()


def test_an_older_holdfast_refuses_what_is_in_packs(files: Path) -> None:
    inner = MemoryStore()
    with in_files(inner, files) as store:
        (commit,) = keep(store, make_commit(large_state()))

        for stored in inner.fetch([*commit.chunks]).values():
            assert stored[:1] == b"\x03"  # it knows 0, 1 and 2
            with pytest.raises(CheckpointIntegrityError, match="is in object storage: open"):
                decompress(stored)


# What others wrote.


def test_stubs_that_lead_nowhere_are_missing_chunks(files: Path) -> None:
    inner = MemoryStore()
    with in_files(inner, files) as store:
        (commit,) = keep(store, make_commit(large_state()))
        (place,) = {each.object for each in locations_in(inner.fetch([*commit.chunks])).values()}
        tag = tag_of(None)
        for start, size in [(0, 2**32 - 1), (2**32 - 1, 1), (place.size, 0), (1, place.size)]:
            owner = bytes.fromhex(place.path.partition("/")[0])
            stubs = {name: stub_in_pack(owner, place, start, size, tag) for name in commit.chunks}
            inner.commit(NotesOnly((), stubs))

            with pytest.raises(CheckpointIntegrityError, match="is missing"):
                store.load(commit.info.checkpoint_id)


def test_a_copy_of_a_pack_beside_it_takes_nothing_from_it(files: Path) -> None:
    with in_files(MemoryStore(), files) as store:
        (commit,) = keep(store, make_commit(large_state()))
        (path,) = objects_in(files)
        upload, _, count = path.name.partition("-")
        for other in (1, int(count) + 1):
            path.with_name(f"{upload}-{other}").write_bytes(path.read_bytes())

        SyncClient(store).gc(grace_seconds=0)

        assert objects_in(files) == [path]
        assert state_of(store.load(commit.info.checkpoint_id)) == large_state()


def test_a_note_that_says_what_is_in_a_pack_is_proven(files: Path) -> None:
    for body in (b"\x00\xa3abc", b"\x00\xc4\x03abc"):
        inner, own = MemoryStore(), files / body.hex()
        with in_files(inner, own) as store:
            (commit,) = keep(store, make_commit(large_state()))
            places = locations_in(inner.fetch([*commit.chunks]))
            (place,) = {each.object for each in places.values()}
            scope = packs.scope_of(place.upload)
            inner.delete([scope])
            inner.commit(NotesOnly((Note.of(scope, "claim", body),), {}))

            with pytest.raises(CheckpointIntegrityError, match=scope):
                store.collect(commit.chunks.keys(), datetime.now(UTC) + timedelta(1), False)

            assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
