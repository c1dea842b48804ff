"""Opening and closing: by URL, by environment, by default; once, twice and too late."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import InvalidArgumentError, StoreClosedError, SyncClient
from tests.acceptance.conftest import OpenClient
from tests.clients import Face, end

NEVER_SAVED = "01900000-0000-7000-8000-000000000000"


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    return tmp_path / "cwd"


def files_below(directory: Path) -> set[str]:
    return {
        str(path.relative_to(directory)).removesuffix("-wal").removesuffix("-shm")
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///rel.db", "cwd/rel.db"),
        ("sqlite:///sub/rel.db", "cwd/sub/rel.db"),
        ("sqlite:///./rel.db", "cwd/rel.db"),
        ("sqlite:///../up.db", "up.db"),
        ("sqlite:////{tmp}/abs.db", "abs.db"),
        ("sqlite:///with%20space%23.db", "cwd/with space#.db"),
        ("sqlite:///x.db?durability=normal", "cwd/x.db"),
    ],
)
def test_a_url_of_sqlite_names_a_file(
    open_client: OpenClient, tmp_path: Path, url: str, file: str
) -> None:
    client = open_client(url.format(tmp=str(tmp_path).lstrip("/")))

    client.save("coder")

    assert files_below(tmp_path) == {file}


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("file:///{tmp}/checkpoints", "checkpoints"),
        ("file:///{tmp}/a/b", "a/b"),
        ("file:///{tmp}/with%20space", "with space"),
        ("file:///{tmp}/p?fmt=pickle", "p"),
    ],
)
def test_a_url_of_files_names_a_directory(
    open_client: OpenClient, tmp_path: Path, url: str, directory: str
) -> None:
    client = open_client(url.format(tmp=str(tmp_path).lstrip("/")))

    saved = client.save("coder", session_id="s")

    suffix = ".pkl" if "pickle" in url else ".json"
    assert (tmp_path / directory / "coder" / "s" / f"{saved}{suffix}").is_file()


def test_every_memory_store_is_one_of_its_own(open_client: OpenClient) -> None:
    open_client("memory://").save("coder")

    assert open_client("memory://").find() == []


def test_without_a_url_the_store_is_in_the_directory_one_is_in(
    face: Face, in_an_empty_directory: Path
) -> None:
    for client in (face.open(), face.use(face.cls.sqlite())):
        client.save("coder")
        end(client)

    assert files_below(in_an_empty_directory) == {".holdfast/holdfast.db"}


def test_the_environment_names_the_store_by_default(
    face: Face, tmp_path: Path, in_an_empty_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path}/named.db")

    client = face.open()
    client.save("coder")
    end(client)

    assert (tmp_path / "named.db").is_file()
    assert files_below(in_an_empty_directory) == set()


def test_a_url_that_is_given_goes_before_the_environment(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path}/named.db")

    end(face.open("memory://"))

    assert not (tmp_path / "named.db").exists()


def test_an_empty_environment_is_none(
    face: Face, in_an_empty_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", "")

    end(face.open())

    assert files_below(in_an_empty_directory) == {".holdfast/holdfast.db"}


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "named by a URL such as"),
        ("holdfast.db", "named by a URL such as"),
        ("sqlite:holdfast.db", "named by a URL such as"),
        (5, "named by a URL such as"),
        ("mongodb://host/x", "no store is called 'mongodb'"),
        ("sqlite://holdfast.db", "two slashes"),
        ("sqlite://host/holdfast.db", "two slashes"),
        ("sqlite://", "names no path"),
        ("sqlite:///", "names no path"),
        ("file:///", "names no path"),
        ("sqlite:///x.db?durability=none", '"full" or "normal"'),
        ("sqlite:///x.db?durability", '"full" or "normal"'),
        ("sqlite:///x.db?speed=high", "no such option for this store: speed"),
        ("memory://?x=1", "no such option"),
        ("file:///tmp/x?fmt=yaml", "fmt"),
        ("sqlite:///x#y.db", "%23"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused_and_nothing_is_made(
    face: Face, tmp_path: Path, url: Any, complaint: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint):
        face.open(url)

    assert files_below(tmp_path) == set()


def test_a_password_in_a_url_is_not_shown(face: Face) -> None:
    for url in ("mongodb://user:secret@host/x", "user:secret@host"):
        with pytest.raises(InvalidArgumentError) as caught:
            face.open(url)
        assert "secret" not in str(caught.value)


def test_a_client_is_made_from_a_store_alone(face: Face) -> None:
    with pytest.raises(InvalidArgumentError, match="use one of memory"):
        face.cls("memory://")  # type: ignore[arg-type]


def test_a_directory_is_opened_by_its_path(face: Face, tmp_path: Path) -> None:
    for fmt, suffix in (("json", ".json"), ("pickle", ".pkl")):
        path = tmp_path / fmt
        client = face.use(face.cls.file(path, fmt=fmt))  # type: ignore[arg-type]
        saved = client.save("coder", execution_state={"a": 1})
        assert client.restore(saved).execution_state == {"a": 1}
        assert [p.suffix for p in path.rglob(f"{saved}*")] == [suffix]
        end(client)


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
def test_a_save_is_flushed_to_disk_as_durability_says(
    face: Face, tmp_path: Path, durability: Any, synchronous: int
) -> None:
    client = face.use(face.cls.sqlite(tmp_path / "x.db", durability=durability))
    db: sqlite3.Connection = client.store._db.writer()  # type: ignore[attr-defined]

    assert db.execute("PRAGMA synchronous").fetchone() == (synchronous,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    end(client)


def test_leaving_a_with_block_closes_the_client(client: SyncClient) -> None:
    with client as inside:
        inside.save("coder")

    with pytest.raises(StoreClosedError, match="open a new client"):
        client.stats()


def test_an_error_in_a_with_block_closes_the_client_too(client: SyncClient) -> None:
    with pytest.raises(RuntimeError, match="mine"), client:
        raise RuntimeError("mine")

    with pytest.raises(StoreClosedError):
        client.stats()


def test_closing_twice_does_nothing(client: SyncClient) -> None:
    client.close()
    client.close()


def test_a_closed_client_shows_that_it_is(client: SyncClient) -> None:
    assert not repr(client).endswith(", closed)")

    client.close()

    assert repr(client).endswith(", closed)")


def test_a_closed_client_is_not_entered_again(client: SyncClient) -> None:
    client.close()

    with pytest.raises(StoreClosedError), client:
        pass


USES: dict[str, Callable[[SyncClient, Path], Any]] = {
    "save": lambda client, _: client.save("coder"),
    "restore": lambda client, _: client.restore(NEVER_SAVED),
    "latest": lambda client, _: client.latest("coder", "s"),
    "timeline": lambda client, _: client.timeline("coder", "s"),
    "find": lambda client, _: client.find(),
    "sessions": lambda client, _: client.sessions(),
    "ancestors": lambda client, _: client.ancestors(NEVER_SAVED),
    "tree": lambda client, _: client.tree("coder", "s"),
    "diff": lambda client, _: client.diff(NEVER_SAVED, NEVER_SAVED),
    "fork": lambda client, _: client.fork(NEVER_SAVED),
    "handoff": lambda client, _: client.handoff(NEVER_SAVED, "b"),
    "inbox": lambda client, _: client.inbox("b"),
    "accept": lambda client, _: client.accept(NEVER_SAVED),
    "reject": lambda client, _: client.reject(NEVER_SAVED),
    "publish": lambda client, _: client.publish("channel"),
    "subscribe": lambda client, _: next(client.subscribe("channel")),
    "expire": lambda client, _: client.expire(NEVER_SAVED),
    "prune": lambda client, _: client.prune(last=1),
    "gc": lambda client, _: client.gc(),
    "verify": lambda client, _: client.verify(),
    "stats": lambda client, _: client.stats(),
    "export": lambda client, path: client.export(path / "bundle"),
    "import_": lambda client, path: client.import_(path / "bundle"),
}


@pytest.mark.parametrize("verb", USES)
def test_a_closed_client_says_so(client: SyncClient, verb: str, tmp_path: Path) -> None:
    client.close()

    with pytest.raises(StoreClosedError, match="is closed: open a new client"):
        USES[verb](client, tmp_path)
