"""Files written by every release are read by this one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.verbs import notes
from tests.golden.make import HERE, LOG, build_notes, noted, states
from tests.sameness import same

RELEASES = sorted(path.name for path in HERE.iterdir() if (path / "store.db").exists())
WITHOUT_NOTES = ("0.1.0",)
OPENERS: dict[str, Callable[[Path], SyncClient]] = {
    "store.db": SyncClient.sqlite,
    "files": SyncClient.file,
    "pickles": lambda path: SyncClient.file(path, fmt="pickle"),
}


def test_there_are_golden_files() -> None:
    assert RELEASES


@pytest.mark.parametrize("kind", OPENERS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_store_of_an_earlier_release_is_read(release: str, kind: str, tmp_path: Path) -> None:
    source = HERE / release / kind
    copy = tmp_path / kind
    shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)

    with OPENERS[kind](copy) as client:
        check(client)
        if release in WITHOUT_NOTES:
            assert client.store.notes(None) == []
            build_notes(client)
        check_notes(client, built(client), LOG)
        client.save("golden", execution_state=states()[2], session_id="run")
        client.gc(grace_seconds=0)
        assert client.verify().ok


@pytest.mark.parametrize("release", RELEASES)
def test_a_bundle_of_an_earlier_release_is_imported(release: str) -> None:
    with SyncClient.memory() as client:
        client.import_(HERE / release / "bundle.holdfast")
        check(client)
        if release in WITHOUT_NOTES:
            assert client.store.notes(None) == []
        else:
            check_notes(client, built(client))
            assert client.store.notes([LOG]) == []


@pytest.mark.parametrize("release", RELEASES)
def test_states_still_have_the_content_ids_they_had(release: str) -> None:
    """Otherwise nothing would be shared with what was saved before an upgrade."""
    with SyncClient.memory() as old, SyncClient.memory() as new:
        old.import_(HERE / release / "bundle.holdfast")
        for step, state in enumerate(states()):
            saved = new.save(
                "golden", execution_state=state, context={"release": "golden"}, step_index=step
            )
            then = old.find(session_id="run", tags={"tag": step % 2}, limit=None)
            info = next(i for i in then if i.step_index == step and i.handoff_target is None)
            assert info.content_id == new.find()[0].content_id, saved


def built(client: SyncClient) -> str:
    checkpoint = client.latest("golden", "built")
    assert checkpoint is not None
    return checkpoint.checkpoint_id


def check_notes(client: SyncClient, *scopes: str) -> None:
    for scope in scopes:
        found = client.runtime.run(notes.read(client.runtime.engine, [scope]))
        assert [note.key for note, _ in found] == [key for key, _ in noted()]
        for (_, value), (_, written) in zip(found, noted(), strict=True):
            assert same(value, written)


def check(client: SyncClient) -> None:
    history = client.timeline("golden", "run", with_state=True)
    plain = [checkpoint for checkpoint in history if checkpoint.handoff_target is None]
    for checkpoint, state in zip(reversed(plain), states(), strict=True):
        assert same(checkpoint.execution_state, state)
        assert checkpoint.agent_context == {"release": "golden"}
        assert checkpoint.verify_integrity()
    assert [c.parent_id for c in plain[:-1]] == [c.checkpoint_id for c in plain[1:]]
    fork = client.latest("golden", "fork")
    assert fork is not None
    assert fork.parent_id == plain[0].checkpoint_id
    assert client.find(handoff_target="other")[0].parent_id == plain[0].checkpoint_id
    assert [offer.contract for offer in client.inbox("other")] == [None]
    built = client.latest("golden", "built")
    assert built is not None
    assert built.execution_state == [1, 2]
    assert client.verify().ok
