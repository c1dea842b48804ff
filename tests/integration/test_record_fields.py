"""A field is added to the record by one line, and every store, bundle and shape has it.

What was saved before is read as it was, and who does not know the field yet loses nothing of it.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Client, SchemaMigrationError, SyncClient
from tests.clients import url_of
from tests.golden.make import HERE
from tests.integration.record_field_jobs import AGENT, SESSION
from tests.integration.test_golden import OPENERS, RELEASES

STORES = ("memory", "file", "pickle", "sqlite", "redis", "cluster", "postgres")
NEWER = "has schema version '1.1', this Holdfast reads schema versions up to '1.0': upgrade"


def with_the_field(job: str, *arguments: object) -> None:
    """Do a job of ``record_field_jobs`` in a process whose table has one line more."""
    command = [sys.executable, "-m", "tests.integration.record_field_jobs", job]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def url(store: str, directory: Path) -> str:
    if store == "pickle":
        return f"{url_of('file', directory)}?fmt=pickle"
    return url_of(store, directory)


@pytest.mark.parametrize("store", STORES)
def test_a_field_more_is_saved_listed_restored_exported_and_proven(
    store: str, tmp_path: Path
) -> None:
    bundle = tmp_path / "all.holdfast"

    with_the_field("written", url(store, tmp_path), bundle)
    with_the_field("read", url(store, tmp_path), bundle)


@pytest.mark.parametrize("kind", [*OPENERS, "bundle.holdfast"])
@pytest.mark.parametrize("release", RELEASES)
def test_what_earlier_releases_wrote_is_read_and_proven_with_a_field_more(
    release: str, kind: str, tmp_path: Path
) -> None:
    source, copy = HERE / release / kind, tmp_path / kind
    shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)

    with_the_field("golden", release, kind, copy)


@pytest.mark.parametrize("store", [each for each in STORES if each != "memory"])
def test_who_does_not_know_a_field_lists_proves_and_carries_it_but_restores_nothing_of_it(
    store: str, tmp_path: Path
) -> None:
    bundle, ours = tmp_path / "theirs.holdfast", tmp_path / "ours.holdfast"
    with_the_field("written", url(store, tmp_path), bundle)

    with SyncClient.open(url(store, tmp_path)) as client:
        infos = client.timeline(AGENT, SESSION)
        assert [info.schema_version for info in infos] == ["1.1", "1.0", "1.1"]
        assert client.sessions()[0].head == infos[0]
        assert client.restore(infos[1].checkpoint_id).execution_state == {"step": 1}
        for newer in (infos[0].checkpoint_id, infos[2].checkpoint_id):
            for verify in (True, False):
                with pytest.raises(SchemaMigrationError, match=NEWER):
                    client.restore(newer, verify=verify)
            with pytest.raises(SchemaMigrationError, match=NEWER):
                client.fork(newer)
            with pytest.raises(SchemaMigrationError, match=NEWER):
                client.handoff(newer, "reviewer")
        with pytest.raises(SchemaMigrationError, match=NEWER):
            client.latest(AGENT, SESSION)
        client.gc(grace_seconds=0)
        assert client.verify().ok
        client.export(ours)

    with_the_field("read", url(store, tmp_path), ours)


def test_who_does_not_know_a_field_imports_it_whole(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.holdfast", tmp_path / "ours.holdfast"
    with_the_field("written", "memory://", theirs)

    for store in ("memory", "file", "sqlite"):
        with SyncClient.open(url(store, tmp_path)) as client:
            client.import_(theirs)
            client.export(ours)
        with_the_field("read", url(store, tmp_path), ours)


async def test_both_faces_say_that_a_checkpoint_is_of_a_newer_holdfast(tmp_path: Path) -> None:
    with_the_field("written", url("sqlite", tmp_path), tmp_path / "all.holdfast")

    async with Client.open(url("sqlite", tmp_path)) as client:
        newest = (await client.timeline(AGENT, SESSION))[0]
        with pytest.raises(SchemaMigrationError, match=NEWER):
            await client.restore(newest.checkpoint_id)
