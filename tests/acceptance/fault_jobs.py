"""What test_client_faults runs in processes that have a small disk of their own."""

import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import StoreError, StoreFullError, StoreReadOnlyError, SyncClient
from tests.clients import FACES, end, url_of


def noise(seed: int, size: int) -> bytes:
    """Bytes that cannot be compressed."""
    return random.Random(seed).randbytes(size)


@contextmanager
def opened(face: str, url: str) -> Iterator[SyncClient]:
    client = FACES[face].open(url)
    try:
        yield client
    finally:
        end(client)


def check(client: SyncClient, saved: dict[str, bytes]) -> None:
    """Everything acknowledged is whole, and nothing else is there."""
    assert client.verify().ok
    assert {info.checkpoint_id for info in client.find(limit=None)} == set(saved)
    for checkpoint_id, data in saved.items():
        assert client.restore(checkpoint_id).execution_state == {"data": data}


def save_until_full(client: SyncClient, saved: dict[str, bytes], size: int) -> StoreError:
    for seed in range(len(saved), 10_000):
        data = noise(seed, size)
        try:
            saved[client.save("coder", execution_state={"data": data}, session_id="s")] = data
        except StoreError as error:
            return error
    raise AssertionError("the disk is never full")


def full_disk(face: str, store: str, directory: str) -> None:
    filler = Path(directory, "filler")
    filler.write_bytes(bytes(2_000_000))
    url = url_of(store, Path(directory))
    saved: dict[str, bytes] = {}
    with opened(face, url) as client:
        for size in (100_000, 3000, 10):  # to the last byte
            error = save_until_full(client, saved, size)
            assert isinstance(error, StoreFullError), repr(error)
            assert "no space left" in str(error)
        assert len(saved) > 10
        check(client, saved)
        filler.unlink()
        data = noise(-1, 1000)
        saved[client.save("coder", execution_state={"data": data}, session_id="s")] = data
        check(client, saved)
    with opened(face, url) as client:
        check(client, saved)


def full_disk_while_opening(face: str, store: str, directory: str) -> None:
    filler = Path(directory, "filler")
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    url = url_of(store, Path(directory))
    with pytest.raises(StoreFullError, match="no space left"), opened(face, url) as client:
        client.save("coder", execution_state={"data": noise(0, 100)})
    filler.unlink()
    with opened(face, url) as client:
        data = noise(0, 100)
        check(client, {client.save("coder", execution_state={"data": data}): data})


def full_disk_for_a_bundle(face: str, store: str, directory: str) -> None:
    bundle = Path(directory, "bundle")
    bundle.write_bytes(b"what was there before")
    with opened(face, "memory://") as client:
        client.save("coder", execution_state={"data": noise(0, 8_000_000)})
        with pytest.raises(StoreFullError, match="export again"):
            client.export(bundle)
    assert os.listdir(directory) == ["bundle"]
    assert bundle.read_bytes() == b"what was there before"


def limited_files(face: str, store: str, directory: str) -> None:
    """The same where no disk may be mounted: a limit on the size of a file."""
    url = url_of(store, Path(directory))
    saved: dict[str, bytes] = {}
    with opened(face, url) as client:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
        for size in (30_000, 3000) if store == "sqlite" else (600_000,):
            error = save_until_full(client, saved, size)
            assert "save again" in str(error), repr(error)
        check(client, saved)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        data = noise(-1, 100_000)
        saved[client.save("coder", execution_state={"data": data}, session_id="s")] = data
        check(client, saved)


def read_only_disk(face: str, store: str, directory: str) -> None:
    url = url_of(store, Path(directory))
    saved: dict[str, bytes] = {}
    with opened(face, url) as client:
        data = noise(0, 1000)
        saved[client.save("coder", execution_state={"data": data}, session_id="s")] = data
    subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
    refuse_to_save(face, url)
    subprocess.run(["mount", "-o", "remount,rw", directory], check=True)
    go_on(face, url, saved)


def read_only_permissions(face: str, store: str, directory: str) -> None:
    """The same where no disk may be mounted, as a user whom permissions bind."""
    url = url_of(store, Path(directory))
    saved: dict[str, bytes] = {}
    with opened(face, url) as client:
        data = noise(0, 1000)
        saved[client.save("coder", execution_state={"data": data}, session_id="s")] = data
    paths = [Path(directory), *Path(directory).rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    refuse_to_save(face, url)
    os.seteuid(user)
    for path, mode in modes.items():
        path.chmod(mode)
    go_on(face, url, saved)


def refuse_to_save(face: str, url: str) -> None:
    refusal = "check the permissions|may not be written to"
    with pytest.raises(StoreReadOnlyError, match=refusal), opened(face, url) as client:
        client.save("coder", execution_state={"new": True}, session_id="s")


def go_on(face: str, url: str, saved: dict[str, bytes]) -> None:
    with opened(face, url) as client:
        check(client, saved)
        data = noise(1, 1000)
        saved[client.save("coder", execution_state={"data": data}, session_id="s")] = data
        check(client, saved)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
