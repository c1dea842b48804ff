"""Which store is meant where none is named: the same one to the library and to the command line."""

import json
import logging
import os
from pathlib import Path

import pytest

from holdfast import Client, SyncClient
from holdfast.cli import main
from holdfast.errors import StoreConnectionError
from holdfast.state import CheckpointManager
from holdfast.workspace import Workspace


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which the process is in; no variable names a store."""
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    directory = tmp_path / "project"
    (directory / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(directory)
    return directory


def file_of(project: Path) -> Path:
    return project / ".holdfast" / "holdfast.db"


def ids_by_command(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The checkpoints that ``holdfast log`` finds from this directory."""
    capsys.readouterr()
    assert main(["log", "--json"]) == 0
    return [each["checkpoint_id"] for each in json.loads(capsys.readouterr().out)["checkpoints"]]


@pytest.mark.parametrize("below", [".", "src", "src/deep"])
def test_the_library_opens_the_store_that_the_command_line_made_here_or_above(
    project: Path, below: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init"]) == 0
    monkeypatch.chdir(below)

    with SyncClient.open() as client:
        saved = client.save("coder", execution_state={"n": 1})

    assert ids_by_command(capsys) == [saved]
    assert [str(path) for path in project.rglob(".holdfast")] == [str(project / ".holdfast")]


@pytest.mark.parametrize("below", [".", "src", "src/deep"])
def test_the_command_line_finds_the_store_that_the_library_made(
    project: Path, below: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncClient.open() as client:
        saved = client.save("coder", execution_state={"n": 1})
    monkeypatch.chdir(below)

    assert ids_by_command(capsys) == [saved]


async def test_the_async_client_finds_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SyncClient.open() as client:
        saved = client.save("coder", execution_state={"n": 1})
    monkeypatch.chdir("src")

    async with Client.open() as client_below:
        assert (await client_below.restore(saved)).execution_state == {"n": 1}


def test_a_workspace_without_a_store_finds_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SyncClient.open().close()
    monkeypatch.chdir("src")

    with Workspace(".") as workspace:
        workspace.snapshot()

    assert not (project / "src" / ".holdfast").exists()


def test_the_variable_goes_before_what_is_found(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["init"]) == 0
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path}/named.db")

    with SyncClient.open() as client:
        saved = client.save("coder", execution_state={"n": 1})

    assert ids_by_command(capsys) == [saved]
    monkeypatch.setenv("HOLDFAST_URL", "")
    assert ids_by_command(capsys) == []


def test_the_nearest_store_is_meant(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init"]) == 0
    assert main(["init", "src"]) == 0
    monkeypatch.chdir("src/deep")

    with SyncClient.open() as client:
        saved = client.save("coder", execution_state={"n": 1})

    assert ids_by_command(capsys) == [saved]
    monkeypatch.chdir(project)
    assert ids_by_command(capsys) == []


def test_the_url_of_the_client_leads_to_the_store_from_anywhere(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SyncClient.open().close()
    monkeypatch.chdir("src")
    with SyncClient.open() as client:
        saved, url = client.save("coder", execution_state={"n": 1}), client.url
    monkeypatch.chdir(tmp_path)

    with SyncClient.open(url) as again:
        assert again.restore(saved).execution_state == {"n": 1}


def test_a_new_store_is_told_of_in_the_log_and_kept_from_others(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "holdfast"):
        SyncClient.open().close()
        SyncClient.open().close()

    assert [record.getMessage() for record in caplog.records] == [
        f"a new store is made, {file_of(project)}: there was none yet"
    ]
    assert (project / ".holdfast").stat().st_mode & 0o777 == 0o700


def test_a_second_store_below_another_is_warned_of(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    SyncClient.open().close()
    monkeypatch.chdir("src")
    caplog.clear()

    for _ in range(2):
        SyncClient.sqlite().close()

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(file_of(project)) in record.getMessage()
    assert str(file_of(project / "src")) in record.getMessage()


def test_the_manager_warns_of_a_second_store_too(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    SyncClient.open().close()
    monkeypatch.chdir("src")
    caplog.clear()

    CheckpointManager("sqlite").close()

    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_the_default_file_of_sqlite_is_made_here_without_a_word_where_no_other_is(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "holdfast"):
        SyncClient.sqlite().close()

    assert file_of(project).exists()
    assert caplog.records == []


@pytest.fixture
def foreign(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose store another user made, seen from a directory below it."""
    SyncClient.open().close()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    monkeypatch.chdir("src")
    return project


def test_the_store_of_another_user_is_not_opened_unasked(foreign: Path) -> None:
    with pytest.raises(StoreConnectionError) as refused:
        SyncClient.open()

    assert f"{foreign}/.holdfast is the nearest store, but belongs to another" in str(refused.value)
    assert f"HOLDFAST_URL=sqlite:///{file_of(foreign)}" in str(refused.value)
    assert not (foreign / "src" / ".holdfast").exists()


def test_a_store_that_is_a_link_is_not_opened_unasked(project: Path, tmp_path: Path) -> None:
    """A repository may bring such a link, and what is saved would be written where it leads."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / ".holdfast").symlink_to(elsewhere)

    with pytest.raises(StoreConnectionError, match="is a link") as refused:
        SyncClient.open()

    assert f"HOLDFAST_URL=sqlite:///{elsewhere}/holdfast.db" in str(refused.value)
    assert main(["init"]) != 0
    assert list(elsewhere.iterdir()) == []


def test_the_command_line_refuses_it_too(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log"]) == 7

    assert "belongs to another user" in capsys.readouterr().err


def test_the_store_of_another_user_is_opened_when_it_is_named(
    foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{file_of(foreign)}")
    SyncClient.open().close()

    assert main(["log"]) == 0


def test_a_store_of_ones_own_can_be_made_below_it(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    SyncClient.sqlite().close()

    assert caplog.records == []
    assert (foreign / "src" / ".holdfast").is_dir()


def test_root_by_sudo_opens_the_store_of_who_called_it(
    foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = os.stat(foreign / ".holdfast").st_uid
    monkeypatch.setattr(
        os, "lstat", lambda path: os.stat_result((0,) * 4 + (owner + 5,) + (0,) * 5)
    )
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(StoreConnectionError):
        SyncClient.open()

    monkeypatch.setenv("SUDO_UID", str(owner + 5))
    SyncClient.open().close()


def test_a_directory_that_was_removed_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(StoreConnectionError, match="the current directory was removed"):
        SyncClient.open()
