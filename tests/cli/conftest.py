"""Projects for the command to work in."""

import shutil
from pathlib import Path

import pytest

from tests.cli.kit import Holdfast
from tests.cli.story import tell


@pytest.fixture(autouse=True)
def state_of_the_user(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Where links and the like are kept: never in the home of who runs the tests."""
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return state


@pytest.fixture
def holdfast(tmp_path: Path) -> Holdfast:
    """The command, in an empty directory."""
    return Holdfast(tmp_path)


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds the story; never written to."""
    path = tmp_path_factory.mktemp("story") / "holdfast.db"
    tell(path)
    return path


@pytest.fixture
def project(told: Path, tmp_path: Path) -> Holdfast:
    """The command, in a directory whose store holds the story."""
    folder = tmp_path / ".holdfast"
    folder.mkdir()
    for file in told.parent.iterdir():
        shutil.copy(file, folder)
    return Holdfast(tmp_path)
