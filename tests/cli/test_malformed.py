"""Every command on stores of malformed things: it ends, says what it met, steers no terminal."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.stores.base import SessionInfo
from tests.cli.everything import GIVEN, commands, faults, run, writings
from tests.cli.malformed import FAMILIES, Malformed, write

MOST = 70
READING = ("show", "tasks", "effects", "replay", "log", "diff", "watch")


@pytest.fixture(scope="module", params=FAMILIES, ids=lambda family: family.__name__)
def kept(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[SessionInfo]]:
    """A store, and its sessions."""
    family: Callable[[Malformed], None] = request.param
    path = tmp_path_factory.mktemp("malformed") / "holdfast.db"
    write(family, path)
    with SyncClient.sqlite(path) as client:
        return path, client.sessions()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands write to where they are, and a hook goes to its project."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")  # so that what nobody has thought of is raised
    monkeypatch.delenv("HOLDFAST_URL", raising=False)


def words_for(session: SessionInfo, folder: Path) -> dict[str, str]:
    return {
        "SESSION": f"{session.agent_id}/{session.session_id}",
        "ID": session.head.checkpoint_id,
        "AGENT": session.agent_id,
        "NAME": "odd",
        "N": "1",
        "TIME": "1s",
        "DIR": str(folder / "made"),
        "FILE": str(folder / "bundle"),
        "FILE | KIND SOURCE": str(folder / "bundle"),
        "MODULE": "json",
        "EXPR": "state != 1",
        "PATH": "messages[0]",
        "NAME=VALUE": "a=1",
    }


@pytest.fixture(autouse=True)
def back_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands may go elsewhere, and other tests are to be here."""
    monkeypatch.chdir(os.getcwd())


def wrong_with(
    names: tuple[str, ...] | list[str], session: SessionInfo, store: Path, tmp_path: Path
) -> dict[str, list[str]]:
    """What was wrong with any of these commands, by how it was written."""
    found = {}
    for name in names:
        for written in writings(name, words_for(session, tmp_path)):
            done = run([name, "--store", f"sqlite:///{store}", *written[1:]], GIVEN.get(name, ""))
            if wrong := faults(done):
                found[ascii(written)] = wrong
            os.chdir(tmp_path / "here")
    return found


def test_every_command_with_every_option_ends_well(
    kept: tuple[Path, list[SessionInfo]], tmp_path: Path
) -> None:
    store, sessions = tmp_path / "copy.db", kept[1]
    shutil.copy(kept[0], store)

    for session in {sessions[0].session_id: sessions[0], "": sessions[-1]}.values():
        assert wrong_with(commands(), session, store, tmp_path) == {}


def test_every_malformed_thing_can_be_looked_at(
    kept: tuple[Path, list[SessionInfo]], tmp_path: Path
) -> None:
    store, sessions = kept

    for session in sessions[:: max(1, len(sessions) // MOST)]:
        for name in READING:
            words = words_for(session, tmp_path)
            least = ["--timeout", "0"] if name == "watch" else []
            of_session = name in ("effects", "replay", "log", "watch")
            meant = words["SESSION" if of_session else "ID"]
            for how in ([], ["--json"]):
                done = run([name, "--store", f"sqlite:///{store}", *least, *how, "--", meant])
                assert faults(done) == [], (name, ascii(meant), how)
