"""The file store among many threads and processes, some of which die."""

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.errors import CheckpointConflictError
from holdfast.ids import new_id
from holdfast.stores.base import Query
from holdfast.stores.file.store import FileStore
from holdfast.system import crash_points
from tests.integration.file_store_kit import files_below, save, start, state_of

PROCESSES = 4


def run_together(script: str, *argument_lists: tuple[object, ...]) -> list[str]:
    """Start processes, let them go at one moment, and return what they print."""
    children = [start(script, *arguments) for arguments in argument_lists]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    printed = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    return printed


@pytest.fixture(autouse=True)
def no_handler() -> Iterator[None]:
    yield
    crash_points.clear()


@pytest.mark.parametrize("sessions", ["one session", "a session each"])
def test_of_those_who_save_one_id_exactly_one_wins(tmp_path: Path, sessions: str) -> None:
    script = """
commits = [make_commit(sys.argv[2], session_id=sys.argv[3], checkpoint_id=f"id-{i}")
           for i in range(40)]
wait_for_the_others()
for commit in commits:
    try:
        store.commit(commit)
        print(commit.info.checkpoint_id, "won")
    except CheckpointConflictError:
        print(commit.info.checkpoint_id, "lost")
"""
    places = [f"s{i}" if sessions == "a session each" else "s" for i in range(PROCESSES)]

    printed = run_together(script, *((tmp_path, i, place) for i, place in enumerate(places)))

    results = Counter(line for lines in printed for line in lines.splitlines())
    assert results == {
        f"id-{i} {result}": times
        for i in range(40)
        for result, times in (("won", 1), ("lost", PROCESSES - 1))
    }
    store = FileStore(tmp_path)
    for writer, lines in enumerate(printed):
        won = [line.split()[0] for line in lines.splitlines() if line.endswith("won")]
        assert all(state_of(store, checkpoint_id) == str(writer) for checkpoint_id in won)


def test_nothing_is_lost_when_many_save_and_delete_at_once(tmp_path: Path) -> None:
    script = """
saved = []

def work(number):
    for i in range(15):
        saved.append(save(store, {"by": number}, session_id=f"s{i % 3}"))
        # A session that is often empty, so that its directory comes and goes.
        assert store.delete([save(store, session_id="passing")]) == 1

wait_for_the_others()
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*saved, sep="\\n")
"""
    store, done = FileStore(tmp_path), threading.Event()

    def read_all_the_while() -> int:
        seen = 0
        while not done.is_set():
            for info in store.query(Query(session_id="s1")):
                assert store.load(info.checkpoint_id) is not None
                seen += 1
            store.sweep(datetime.now(UTC))
        return seen

    with ThreadPoolExecutor() as pool:
        reader = pool.submit(read_all_the_while)
        try:
            printed = run_together(script, *[(tmp_path,)] * PROCESSES)
        finally:
            done.set()

    saved = [line for lines in printed for line in lines.splitlines()]
    assert len(saved) == PROCESSES * 3 * 15
    assert sorted(saved) == store.match("", 10_000)
    assert reader.result() > 0
    for checkpoint_id in saved:
        assert store.load(checkpoint_id) is not None


def test_a_commit_passes_its_crash_points_in_order(tmp_path: Path) -> None:
    store, passed = FileStore(tmp_path), list[str]()
    crash_points.install(passed.append)

    save(store)

    assert tuple(passed) == crash_points.POINTS["file"]


@pytest.mark.parametrize("point", crash_points.POINTS["file"])
def test_a_save_killed_at_any_point_is_whole_or_absent(tmp_path: Path, point: str) -> None:
    script = """
def die(name):
    if name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

crash_points.install(die)
save(store, "killed", checkpoint_id=sys.argv[2])
"""
    store = FileStore(tmp_path)
    before, killed = save(store, "before"), new_id()

    child = start(script, tmp_path, killed, point)
    child.communicate()

    assert child.returncode == -signal.SIGKILL
    is_there = point in ("file:linked", "file:committed")
    assert store.match("", 5) == ([before, killed] if is_there else [before])
    assert len(store.query(Query())) == 1 + is_there
    assert state_of(store, before) == "before"
    if is_there:
        assert state_of(store, killed) == "killed"
    else:
        save(store, "again", checkpoint_id=killed)

    store.sweep(datetime.now(UTC))
    assert len(files_below(tmp_path)) == 2


def test_a_sweep_leaves_the_file_of_a_living_writer(tmp_path: Path) -> None:
    writer, sweeper = FileStore(tmp_path), FileStore(tmp_path)
    crash_points.install(lambda name: sweeper.sweep(datetime.now(UTC)))

    checkpoint_id = save(writer, "kept")

    assert state_of(sweeper, checkpoint_id) == "kept"


def test_a_half_written_save_is_never_seen(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    seen = {}

    def look(name: str) -> None:
        seen[name] = len(FileStore(tmp_path).query(Query()))

    crash_points.install(look)
    save(store)

    assert seen == {
        "file:begun": 0,
        "file:written": 0,
        "file:synced": 0,
        "file:linked": 1,
        "file:committed": 1,
    }


def test_a_save_in_the_last_moment_before_the_link_is_a_conflict(tmp_path: Path) -> None:
    store, other = FileStore(tmp_path), FileStore(tmp_path)
    checkpoint_id = new_id()

    def save_first(name: str) -> None:
        if name == "file:synced":
            crash_points.clear()
            save(other, "early", checkpoint_id=checkpoint_id)

    crash_points.install(save_first)
    with pytest.raises(CheckpointConflictError):
        save(store, "late", session_id="other", checkpoint_id=checkpoint_id)

    assert state_of(store, checkpoint_id) == "early"
    assert len(files_below(tmp_path)) == 1


def test_a_child_forked_during_a_save_does_not_keep_the_lock(tmp_path: Path) -> None:
    script = """
real_link = os.link
def link_and_fork(*paths):
    global child
    child = os.fork()
    if child == 0:
        sys.stdin.readline()  # alive until the parent is done
        os._exit(0)
    real_link(*paths)

os.link = link_and_fork
save(store)
os.link = real_link
save(store)  # would wait for ever
print("done", flush=True)
"""
    child = start(script, tmp_path)
    assert child.stdout is not None
    assert child.stdout.readline() == "done\n"
    child.communicate("go\n")

    assert child.returncode == 0
