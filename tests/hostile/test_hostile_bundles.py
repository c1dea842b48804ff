"""A bundle may come from anybody: importing it and reading what it brought ends, with a word."""

import os
import random
from pathlib import Path

import pytest

from holdfast import HoldfastError, InvalidArgumentError, SyncClient
from tests.hostile.bundles import BUNDLES, good
from tests.hostile.kit import Said, crashes, judged

pytestmark = pytest.mark.timeout(900)  # each case has limits of its own
CUTS = 100


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Said]:
    """What every verb says of each of the bundles."""
    directory = tmp_path_factory.mktemp("bundles")
    cases = {}
    for number, (name, make) in enumerate(BUNDLES.items()):
        path = directory / f"{number}.bundle"
        path.write_bytes(make())
        cases[name] = {"bundle": str(path)}
    return judged(cases)


@pytest.mark.parametrize("name", BUNDLES)
def test_a_hostile_bundle_gives_an_answer_or_an_error(name: str, said: dict[str, Said]) -> None:
    problems = crashes({name: said[name]})

    assert not problems, problems


@pytest.mark.parametrize("name", [name for name in BUNDLES if "circle" in name])
def test_a_circle_is_said_when_it_is_imported_and_when_it_is_followed(
    name: str, said: dict[str, Said]
) -> None:
    met = said[name]

    assert "in a circle" in met["import"] or "another session" in met["import"]
    assert "in a circle" in met["verify"]
    if "through a session" in name:  # what leads to another session is not followed
        assert met["session"] == "ok: None"
    elif "parents" not in name:
        assert met["session"].startswith("CheckpointIntegrityError")
        assert "in a circle" in met["session"]


@pytest.mark.parametrize(
    "name", [name for name in BUNDLES if "stand for" in name or "gigabytes" in name]
)
def test_a_bomb_is_refused_when_it_is_imported(name: str, said: dict[str, Said]) -> None:
    assert said[name]["import"].startswith("CheckpointIntegrityError")
    assert "more data than the limits allow" in said[name]["import"]


def test_a_bundle_that_is_cut_off_anywhere_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    whole, chance = good(), random.Random(7)
    cuts = {*range(60), *(chance.randrange(len(whole)) for _ in range(CUTS)), len(whole) - 1}
    with SyncClient.memory() as client:
        for cut in sorted(cuts):
            path = tmp_path / "cut.bundle"
            path.write_bytes(whole[:cut])

            with pytest.raises(HoldfastError):
                client.import_(path)
        assert client.stats().checkpoints == 0


def test_a_bundle_with_any_byte_changed_is_refused(tmp_path: Path) -> None:
    whole, chance = good(), random.Random(8)
    with SyncClient.memory() as client:
        for _ in range(CUTS):
            data = bytearray(whole)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path = tmp_path / "changed.bundle"
            path.write_bytes(data)

            with pytest.raises(HoldfastError):
                client.import_(path)


def test_a_pipe_is_no_bundle(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with (
        SyncClient.memory() as client,
        pytest.raises(InvalidArgumentError, match="no regular file"),
    ):
        client.import_(tmp_path / "pipe")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_bundle(device: str) -> None:
    with (
        SyncClient.memory() as client,
        pytest.raises(InvalidArgumentError, match="no regular file"),
    ):
        client.import_(device)
