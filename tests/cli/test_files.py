"""Files from the command line: snapshot, restore, diff, rollback and fork of a directory."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.kit import Holdfast


@pytest.fixture
def site(holdfast: Holdfast) -> Holdfast:
    """A directory that was kept twice."""
    holdfast.ok("init")
    (holdfast.directory / "index.html").write_text("one\n")
    holdfast.ok("snapshot", "-m", "first")
    (holdfast.directory / "index.html").write_text("two\n")
    (holdfast.directory / "new.css").write_text("a {}\n")
    holdfast.ok("snapshot", "-m", "second")
    return holdfast


def files(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(directory.iterdir()) if path.is_file()}


FIRST = {"index.html": "one\n"}
SECOND = {"index.html": "two\n", "new.css": "a {}\n"}


def test_a_snapshot_costs_what_changed_and_is_a_checkpoint(site: Holdfast) -> None:
    again = site.json("snapshot", "-m", "same")

    assert (again["files"], again["new_bytes"]) == (2, 0)
    names = [each["step_name"] for each in site.json("log")["checkpoints"]]
    assert names == ["same", "second", "first"]


def test_a_diff_shows_files_and_lines(site: Holdfast) -> None:
    assert site.ok("diff", "first", "second") == "A new.css\nM index.html\n"
    assert "-one\n+two\n" in site.ok("diff", "first", "second", "--files", "--text")
    assert site.json("diff", "first", "second")["files"]["modified"] == ["index.html"]


def test_a_diff_with_the_files_as_they_are_now(site: Holdfast) -> None:
    (site.directory / "new.css").unlink()

    assert site.ok("diff", "@", ".", "--files") == "D new.css\n"


def test_a_restore_previews_asks_and_can_be_undone(site: Holdfast) -> None:
    refused = site("restore", "first")
    assert refused.code == 5
    assert "write  index.html\nremove new.css\n" in refused.out
    assert files(site.directory) == SECOND

    done = site.json("restore", "first", "--yes")
    assert files(site.directory) == FIRST

    site.ok("restore", done["undo_tree"], "--yes")
    assert files(site.directory) == SECOND


def test_a_restore_of_one_path_leaves_the_others(site: Holdfast) -> None:
    site.ok("restore", "first", "index.html", "--yes")

    assert files(site.directory) == {**SECOND, **FIRST}


def test_options_may_stand_before_between_and_after_paths(site: Holdfast) -> None:
    there = str(site.directory)
    for words in (
        ["--to", there, "first", "index.html", "new.css"],
        ["first", "--to", there, "index.html", "new.css"],
        ["first", "index.html", "--to", there, "new.css"],
        ["first", "index.html", "new.css", "--to", there],
    ):
        shown = site.json("restore", *words, "--dry-run")
        assert (shown["written"], shown["removed"]) == (["index.html"], ["new.css"])


def test_a_restore_into_a_new_directory(site: Holdfast) -> None:
    other = site.directory.parent / f"{site.directory.name}-copy"

    site.ok("restore", "first", "--to", str(other))

    assert files(other) == FIRST
    assert files(site.directory) == SECOND


def test_what_leads_back_from_another_directory_is_said_whole(site: Holdfast) -> None:
    other = site.directory.parent / f"{site.directory.name} copy"
    site.ok("restore", "first", "--to", str(other))
    (other / "index.html").write_text("edited")
    said = site.ok("restore", "first", "--to", str(other), "--yes")

    command = re.search(r"`holdfast (.*)` leads back", said)
    assert command is not None
    site.ok(*shlex.split(command[1]), "--yes")
    assert (other / "index.html").read_text() == "edited"


def test_a_dry_run_changes_nothing(site: Holdfast) -> None:
    shown = site.json("restore", "first", "--dry-run")

    assert (shown["written"], shown["removed"], shown["dry_run"]) == (
        ["index.html"],
        ["new.css"],
        True,
    )
    assert files(site.directory) == SECOND


def test_a_rollback_puts_files_back_and_undo_leads_to_unsaved_edits(site: Holdfast) -> None:
    (site.directory / "index.html").write_text("not kept yet\n")

    site.ok("rollback", "first", "--yes")
    assert files(site.directory) == FIRST

    site.ok("undo", "--yes")
    assert files(site.directory) == {**SECOND, "index.html": "not kept yet\n"}


def test_a_rollback_elsewhere_leaves_the_files_only_if_that_is_said(site: Holdfast) -> None:
    elsewhere = site.directory.parent / f"{site.directory.name}-else"
    elsewhere.mkdir()
    away = Holdfast(elsewhere)
    store = str(site.directory / ".holdfast")
    for noted in site.directory.glob(".holdfast/workspaces/*/place"):
        noted.unlink()  # as on a machine where it never worked

    refused = away("rollback", "first", "--store", store, "--yes")
    away.ok("rollback", "first", "--store", store, "--scope", "state", "--yes")

    assert refused.code == 5
    assert "--scope state" in refused.err
    assert files(site.directory) == SECOND
    site.ok("restore", "@", "--yes")
    assert files(site.directory) == SECOND


def test_a_fork_can_have_a_directory_of_its_own(site: Holdfast) -> None:
    other = site.directory.parent / f"{site.directory.name}-fork"

    site.ok("fork", "first", "--as", "bolder", "--to", str(other))

    assert files(other) == FIRST


def test_a_checkpoint_without_files_has_none_to_restore(project: Holdfast) -> None:
    done = project("restore", "fix-42@", "--to", "x")

    assert done.code == 3
    assert "was saved without files" in done.err


def test_a_bisect_runs_where_the_files_are(site: Holdfast) -> None:
    found = site.json("bisect", "--run", "grep -q one index.html")

    assert found["first_bad"]["step_name"] == "second"
