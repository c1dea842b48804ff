"""What may be wrong where a file store lives: odd directories, faults, full and read-only disks."""

import errno
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.codec import pack
from holdfast.errors import (
    CheckpointIntegrityError,
    InvalidArgumentError,
    SerializationError,
    StoreClosedError,
    StoreConnectionError,
    StoreError,
    StoreFullError,
)
from holdfast.stores.base import Query
from holdfast.stores.file.store import FileStore
from tests.disks import own_disk
from tests.integration.file_store_kit import (
    document_of,
    files_below,
    make_commit,
    save,
    start,
    state_of,
)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")

    for path in (tmp_path / "store", tmp_path / "store" / "below"):
        with pytest.raises(StoreConnectionError, match="store"):
            FileStore(path)


@pytest.mark.parametrize("place", ["coder", "coder/s"])
def test_a_file_where_a_directory_within_should_be(
    store: FileStore, tmp_path: Path, place: str
) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("a file")

    with pytest.raises(StoreConnectionError, match=place):
        save(store)
    with pytest.raises(StoreConnectionError, match=place):
        store.query(Query(agent_id="coder", session_id="s"))
    assert (tmp_path / place).read_text() == "a file"


def test_a_directory_where_a_document_should_be(store: FileStore, tmp_path: Path) -> None:
    checkpoint_id = save(store)
    path = document_of(tmp_path, checkpoint_id)
    path.unlink()
    path.mkdir()

    with pytest.raises(StoreConnectionError, match=checkpoint_id):
        store.load(checkpoint_id)
    with pytest.raises(StoreConnectionError, match=checkpoint_id):
        store.query(Query())


def test_a_pipe_where_a_document_should_be_is_not_waited_for(
    store: FileStore, tmp_path: Path
) -> None:
    checkpoint_id = save(store)
    path = document_of(tmp_path, checkpoint_id)
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(CheckpointIntegrityError, match=checkpoint_id):
        store.load(checkpoint_id)


def test_a_link_to_nowhere_where_a_directory_should_be(store: FileStore, tmp_path: Path) -> None:
    (tmp_path / "coder").symlink_to(tmp_path / "nowhere")

    with pytest.raises(StoreConnectionError, match="coder"):
        save(store)


def test_a_directory_that_is_gone_is_an_error_until_it_is_back(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "disk")
    checkpoint_id = save(store, "kept")
    (tmp_path / "disk").rename(tmp_path / "away")

    for use in (lambda: save(store), lambda: store.query(Query()), lambda: store.load("x")):
        with pytest.raises(StoreConnectionError, match="disk"):
            use()
    (tmp_path / "away").rename(tmp_path / "disk")
    assert state_of(store, checkpoint_id) == "kept"
    assert save(store)


def test_a_directory_is_made_with_those_above_it(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "a" / "b" / "c")

    assert save(store)


def test_a_closed_store_says_so(store: FileStore) -> None:
    store.close()
    store.close()

    for use in (
        lambda: save(store),
        lambda: store.load("x"),
        lambda: store.fetch([]),
        lambda: store.match("x", 1),
        lambda: store.query(Query()),
        lambda: store.heads(),
        lambda: store.delete(["x"]),
        lambda: store.sweep(datetime.now(UTC)),
        lambda: store.collect([], datetime.now(UTC), True),
        lambda: store.stats(),
    ):
        with pytest.raises(StoreClosedError):
            use()


def test_a_form_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="fmt"):
        FileStore(tmp_path, "yaml")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fault", "error"),
    [(errno.ENOSPC, StoreFullError), (errno.EDQUOT, StoreFullError), (errno.EIO, StoreError)],
)
@pytest.mark.parametrize("call", ["write", "fsync", "link", "mkdir"])
def test_a_failing_system_call_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, fault: int, error: type
) -> None:
    store = FileStore(tmp_path)
    commit = make_commit()

    def fail(*_: object) -> None:
        raise OSError(fault, os.strerror(fault))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(error):
            store.commit(commit)

    assert [path.name for path in tmp_path.iterdir()] in ([], [".lock"])
    store.commit(commit)
    assert store.load(commit.info.checkpoint_id) is not None


def test_a_directory_that_cannot_be_flushed_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path)
    commit = make_commit()
    fsync = os.fsync

    def fail_for_directories(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EIO, "no flush")
        fsync(fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_for_directories)
        with pytest.raises(StoreConnectionError, match="no flush"):
            store.commit(commit)

    assert store.match("", 1) == []
    store.commit(commit)


def test_a_state_nested_too_deep_for_json_is_refused_whole(
    store: FileStore, tmp_path: Path
) -> None:
    state: Any = 1
    for _ in range(6):
        for _ in range(100):
            state = [state]
        state = (state,)

    assert pack(state)
    with pytest.raises(SerializationError, match="nested too deep"):
        save(store, state)
    assert files_below(tmp_path) == []


def check(child: subprocess.Popen[str]) -> None:
    printed, _ = child.communicate()
    assert (child.returncode, printed) == (0, "as it should be\n")


FILL_THE_DISK = """
if sys.argv[2] == "no disk of its own":  # a limit on the size of a file is refused as late
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

saved, size = [], 1000
try:
    while size < 10**9:
        saved.append(save(store, "x" * size))
        size *= 2
except StoreFullError as error:
    assert "no space left" in str(error)

assert len(saved) > 3 and size < 10**9
assert len(files_below(Path(sys.argv[1]))) == len(saved)
assert store.match("", 100) == sorted(saved)
assert [len(state_of(store, i)) for i in saved] == [1000 * 2**n for n in range(len(saved))]
store.delete(saved[1:])
assert state_of(store, save(store, "room again")) == "room again"
print("as it should be")
"""


def test_a_full_disk_is_an_error_that_leaves_nothing_and_passes(tmp_path: Path) -> None:
    within = own_disk(tmp_path / "disk", "300k")

    check(start(FILL_THE_DISK, tmp_path / "disk", "its own disk", within=within))


def test_a_limit_on_the_size_of_files_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    check(start(FILL_THE_DISK, tmp_path, "no disk of its own"))


NEVER_WRITE = """
import subprocess, tempfile

directory = sys.argv[1]
if sys.argv[2] == "permissions":  # not below a directory that only its owner may enter
    directory = tempfile.mkdtemp(prefix="holdfast-test-")
    store = FileStore(directory)
saved = [save(store, "kept"), save(store, "kept", session_id="t")]
if sys.argv[2] == "mount":
    subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
else:
    folders = [Path(directory), *(path for path in Path(directory).rglob("*") if path.is_dir())]
    for path in Path(directory).rglob("*"):
        path.chmod(0o444)  # they are made for their owner alone, and another is to read them
    for folder in folders:
        folder.chmod(0o555)
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)

def refused(use):
    try:
        use()
    except StoreReadOnlyError:
        return True

uses = [
    lambda: save(store, "new"),
    lambda: save(store, "new", agent_id="other"),
    lambda: store.delete(saved[:1]),
    lambda: FileStore(os.path.join(directory, "below")),
]
assert all(map(refused, uses))
assert [state_of(FileStore(directory), i) for i in saved] == ["kept", "kept"]
assert store.match("", 9) == sorted(saved)

if sys.argv[2] == "mount":
    subprocess.run(["mount", "-o", "remount,rw", directory], check=True)
else:
    os.seteuid(was)
    for folder in folders:
        folder.chmod(0o755)
assert state_of(store, save(store, "new")) == "new"
if sys.argv[2] == "permissions":
    import shutil
    shutil.rmtree(directory)
print("as it should be")
"""


@pytest.mark.parametrize("how", ["mount", "permissions"])
def test_a_read_only_directory_is_read_but_not_written(tmp_path: Path, how: str) -> None:
    within = own_disk(tmp_path / "disk", "1m") if how == "mount" else []

    check(start(NEVER_WRITE, tmp_path / "disk", how, within=within))
