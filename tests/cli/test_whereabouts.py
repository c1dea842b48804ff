"""Going back with files from anywhere: by the path this machine knows, or the one that is named."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace
from tests.cli.kit import Holdfast


@pytest.fixture
def work(repo: Path, holdfast: Holdfast) -> Path:
    """A session that worked in a directory and left it changed."""
    holdfast.ok("init")
    with (
        SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client,
        client.session("coder", session_id="fix-42", workspace=repo) as run,
    ):
        run.checkpoint("good")
        (repo / "main.py").write_text("broken")
    return repo


def test_a_session_goes_back_with_its_files_from_anywhere(holdfast: Holdfast, work: Path) -> None:
    said = holdfast.ok("rollback", "good", "--yes")

    assert f"  files  1 written, 0 removed in {work}\n" in said
    assert (work / "main.py").read_text() == "print('one')"
    assert holdfast.json("undo", "--yes")["workspace"] == str(work)
    assert (work / "main.py").read_text() == "broken"


def test_another_directory_can_be_named(holdfast: Holdfast, work: Path, tmp_path: Path) -> None:
    moved = work.rename(tmp_path / "moved")

    refused = holdfast("rollback", "good", "--yes")
    assert refused.code == 5
    assert "a directory 'repo' in which it has not worked on this machine" in refused.err
    assert "--workspace DIR" in refused.err
    assert "repo-" not in refused.err

    holdfast.ok("rollback", "good", "--yes", "--workspace", "moved")
    assert (moved / "main.py").read_text() == "print('one')"
    assert not work.exists()
    assert holdfast("rollback", "good", "--workspace", "nowhere").code == 2


@pytest.fixture
def hostile(tmp_path: Path, work: Path) -> Any:
    """Makes a bundle of a session that says it worked in a directory of its author's choice."""

    def made(path: Path) -> Path:
        theirs, bundle = tmp_path / "theirs", tmp_path / "hostile.bundle"
        theirs.mkdir()
        (theirs / "main.py").write_text("theirs")
        name = f"{path.name}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"
        with SyncClient.sqlite(tmp_path / "author.db") as author:
            with (
                Workspace(theirs, author, name=name) as workspace,
                author.session("coder", session_id="evil", workspace=workspace) as run,
            ):
                run.checkpoint("good")
                (theirs / "main.py").write_text("theirs, later")
            author.export(bundle)
        return bundle

    return made


def test_a_bundle_cannot_name_a_directory_that_was_never_a_workspace_here(
    holdfast: Holdfast, hostile: Any, tmp_path: Path
) -> None:
    victim = tmp_path / "etc"
    victim.mkdir()
    (victim / "passwd").write_text("root")
    holdfast.ok("import", str(hostile(victim)))

    refused = holdfast("rollback", "good", "--session", "evil", "--yes")

    assert refused.code == 5
    assert "has not worked on this machine" in refused.err
    assert os.listdir(victim) == ["passwd"]


def test_a_bundle_cannot_name_the_workspace_of_another_session(
    holdfast: Holdfast, hostile: Any, work: Path
) -> None:
    holdfast.ok("import", str(hostile(work)))

    refused = holdfast("rollback", "good", "--session", "evil", "--yes")

    assert refused.code == 5
    assert (work / "main.py").read_text() == "broken"


def test_what_is_known_of_a_workspace_is_for_its_owner_alone_and_goes_with_it(
    holdfast: Holdfast, work: Path
) -> None:
    (kept,) = (holdfast.directory / ".holdfast" / "workspaces").glob("*/place")
    assert kept.stat().st_mode & 0o777 == 0o600
    with Workspace(work, f"sqlite:///{holdfast.directory}/.holdfast/holdfast.db") as workspace:
        workspace.discard()
    assert not kept.parent.exists()


def test_a_note_of_a_place_that_is_damaged_or_forged_leads_nowhere(
    holdfast: Holdfast, work: Path, tmp_path: Path
) -> None:
    (kept,) = (holdfast.directory / ".holdfast" / "workspaces").glob("*/place")
    other = tmp_path / "other"
    other.mkdir()
    good = kept.read_bytes()
    for data in (b"", b"\xc1", b"\x93\x01\x02\x03", good.replace(b"repo", b"othe"), b"x" * 10**6):
        kept.write_bytes(data)
        assert holdfast("rollback", "good", "--dry-run").code == 5
    kept.write_bytes(good)
    assert holdfast("rollback", "good", "--dry-run").code == 0
