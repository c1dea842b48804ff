"""The storage for Strands: bytes come back as they were, and keys behave as with Strands' own."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strands.storage import InMemoryStorage, LocalFileStorage, Storage
from strands.storage.storage import _NamespacedStorage
from strands.types.exceptions import StorageError

from holdfast import AdapterError, Client, HoldfastError, InvalidArgumentError
from holdfast.adapters.strands import HoldfastStorage, HoldfastStorageError
from holdfast.adapters.strands.contents import bytes_of, content_of
from holdfast.adapters.strands.keys import Place

LATEST = "session/s1/scopes/agent/default/snapshots/snapshot_latest.json"


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[HoldfastStorage]:
    async with HoldfastStorage(url=f"sqlite:///{tmp_path / 'h.db'}") as opened:
        yield opened


# Bytes


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(
    value=JSON,
    style=st.sampled_from(
        [
            {},
            {"ensure_ascii": False},
            {"indent": 2},
            {"separators": (",", ":")},
            {"indent": 1},
            {"sort_keys": True, "separators": (",", ":")},
        ]
    ),
)
def test_json_of_any_style_comes_back_byte_by_byte(value: Any, style: dict[str, Any]) -> None:
    try:
        data = json.dumps(value, **style).encode()
    except UnicodeEncodeError:  # a lone surrogate, which is no text that could be written
        return

    assert bytes_of(content_of(data), "k") == data


@given(data=st.binary() | st.sampled_from([b"", b" {}", b'{"a":1, "a":2}', b"1e999", b"[1.0e5]"]))
def test_any_bytes_come_back_as_they_were(data: bytes) -> None:
    assert bytes_of(content_of(data), "k") == data


async def test_what_is_no_json_is_kept_too(storage: HoldfastStorage) -> None:
    for data in (b"", b"\x00\xff", b"{", b"null", b'{"b": 1}\n', "ü".encode("latin-1")):
        await storage.write(LATEST, data)
        assert await storage.read(LATEST) == data
    for depth in (150, 300, 990, 5000):
        await storage.write(LATEST, b"[" * depth + b"]" * depth)
        assert await storage.read(LATEST) == b"[" * depth + b"]" * depth
    await storage.write(LATEST, bytearray(b"x"))  # type: ignore[arg-type]
    assert await storage.read(LATEST) == b"x"


async def test_damaged_entries_are_named(storage: HoldfastStorage) -> None:
    entries = {"session/x": {"json": 1, "style": 99}, "session/y": 7}
    storage.client.save("strands", "strands", {"entries": entries}, session_id="s1")
    for name in ("x", "y"):
        with pytest.raises(HoldfastStorageError, match="is damaged"):
            await storage.read(f"session/s1/{name}")


# Keys


KEYS = [
    LATEST,
    "session/s1/scopes/agent/other/snapshots/snapshot_latest.json",
    "session/s1/scopes/agent/default/snapshots/immutable_history/snapshot_1.json",
    "session/s2/scopes/multiAgent/graph/snapshots/snapshot_latest.json",
    "session/storage/scopes/agent/default/snapshots/snapshot_latest.json",
    "context/s1/scopes/agent/default/ref1",
    "tenants/a/s1/scopes/agent/default/snapshots/snapshot_latest.json",
    "s1/scopes/agent/default/snapshots/snapshot_latest.json",
    "memory/facts.json",
    "key/of/mine",
    "ünïcode/✓ x.md",
    "top.txt",
    "session/alone",
]


@pytest.mark.parametrize("key", KEYS)
def test_every_key_has_a_place_that_gives_it_back(key: str) -> None:
    assert Place.of(key).key == key
    assert Place.of(f"/{key.replace('/', '//')}/").key == key


def test_all_of_a_session_is_in_one_session() -> None:
    assert {Place.of(key).session_id for key in KEYS if "/s1/" in key} == {"s1", "tenants/a/s1"}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["in memory", "files"])
async def test_what_strands_does_with_its_own_storages_it_does_with_ours(
    storage: HoldfastStorage, tmp_path: Path, kind: str, seed: int
) -> None:
    theirs: Any = (
        InMemoryStorage() if kind == "in memory" else LocalFileStorage(str(tmp_path / "f"))
    )
    draw = random.Random(seed)
    for _ in range(60):
        key = draw.choice(KEYS)
        does = draw.choice(["write", "write", "read", "delete", "list", "search"])
        if does == "write":
            data = draw.choice([b"hello red", b"\xff\x00", b'{"a": "blue \xc3\xbc"}', b"{}", b""])
            await storage.write(key, data)
            await theirs.write(key, data)
        elif does == "delete":
            await storage.delete(key)
            await theirs.delete(key)
        elif does == "list":
            prefix = draw.choice(["", "session/", "session/s1/", "session/s1/scopes/agent/d", "x"])
            assert await storage.list(prefix) == await theirs.list(prefix)
        elif does == "search":
            query = draw.choice(["red", "blue the", "default facts", "the", ""])
            assert found(await storage.search(query)) == found(await theirs.search(query))
        assert await storage.read(key) == await theirs.read(key)
    assert await storage.list("") == await theirs.list("")


def found(results: Any) -> Any:
    return sorted((each.key, each.score, each.data) for each in results)


@pytest.mark.parametrize("key", ["", "/", "a/../b", "..", "a\\b"])
async def test_bad_keys_are_refused_as_strands_does(storage: HoldfastStorage, key: str) -> None:
    theirs = InMemoryStorage()
    for one in (storage, theirs):
        for asked in (one.write(key, b"x"), one.read(key), one.delete(key)):
            with pytest.raises(StorageError):
                await asked
    for prefix in ("a/../b", "a\\b"):
        with pytest.raises(StorageError):
            await storage.list(prefix)


async def test_bad_input_is_refused_in_words(storage: HoldfastStorage) -> None:
    with pytest.raises(HoldfastStorageError, match="a storage key is a text, not int"):
        await storage.read(7)  # type: ignore[arg-type]
    with pytest.raises(HoldfastStorageError, match="bytes are written under 'a/b', not str"):
        await storage.write("a/b", "text")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="a client or a url, not both"):
        HoldfastStorage(storage.client, url="memory://")
    assert isinstance(storage, Storage)
    assert issubclass(HoldfastStorageError, HoldfastError)


async def test_views_of_the_storage_do_not_meet(storage: HoldfastStorage) -> None:
    key = LATEST.removeprefix("session/")
    for tenant in ("a", "b"):
        await _NamespacedStorage(storage, f"tenants/{tenant}").write(key, tenant.encode())

    assert await storage.list("") == [f"tenants/a/{key}", f"tenants/b/{key}"]
    assert await _NamespacedStorage(storage, "tenants/a").read(key) == b"a"
    assert {each.session_id for each in storage.client.sessions()} == {
        "tenants/a/s1",
        "tenants/b/s1",
    }


async def test_the_last_key_of_a_session_takes_its_history_along(storage: HoldfastStorage) -> None:
    await storage.write(LATEST, b"{}")
    await storage.write("session/s1/other", b"{}")
    await storage.delete(LATEST)
    assert storage.client.timeline("strands", "s1")[0].step_name == "delete snapshot_latest.json"
    await storage.delete("session/s1/other")
    await storage.delete("session/s1/other")

    assert storage.client.sessions() == []
    assert await storage.list("") == []


async def test_writers_of_one_session_lose_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'h.db'}"

    async def work(number: int) -> None:
        async with HoldfastStorage(url=url) as storage:
            for n in range(5):
                await storage.write(f"session/s1/{number}/{n}", b"x")

    await asyncio.gather(*(work(number) for number in range(4)))

    async with HoldfastStorage(url=url) as storage:
        assert len(await storage.list("session/s1/")) == 20


async def test_a_store_that_fails_is_an_error_of_both(tmp_path: Path) -> None:
    client = Client.open(f"sqlite:///{tmp_path / 'h.db'}")
    storage = HoldfastStorage(client)
    await storage.write(LATEST, b"{}")
    await client.close()

    for asked in (storage.write(LATEST, b"{}"), storage.read(LATEST), storage.list("")):
        with pytest.raises(HoldfastStorageError, match="Failed to"):
            await asked


async def test_a_session_of_another_framework_is_refused(storage: HoldfastStorage) -> None:
    storage.client.save("strands", "google_adk", {"events": []}, session_id="s1")
    storage.client.save("strands", "strands", {"other": 1}, session_id="s2")

    with pytest.raises(AdapterError, match="is of google_adk, not of strands"):
        await storage.read(LATEST)
    with pytest.raises(HoldfastStorageError, match="holds no entries"):
        await storage.read(LATEST.replace("s1", "s2"))
