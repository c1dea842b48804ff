"""Files that are there whole or not at all, and what is left of them when their writer dies."""

import os
import stat
from pathlib import Path

import pytest

from holdfast.system import crash_points
from holdfast.system.atomic_files import Draft, remove_drafts, write_file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_file(str(tmp_path / "journal"), b"whole")
    finally:
        os.umask(before)

    assert (tmp_path / "journal").read_bytes() == b"whole"
    assert mode_of(tmp_path / "journal") == 0o600


def test_a_file_of_the_user_keeps_its_mode(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text("{}")
    settings.chmod(0o640)

    write_file(str(settings), b"[]", is_users=True)

    assert settings.read_bytes() == b"[]"
    assert mode_of(settings) == 0o640


def test_a_new_file_of_the_user_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(str(tmp_path / "settings.json"), b"{}", is_users=True)
    finally:
        os.umask(before)

    assert mode_of(tmp_path / "settings.json") == 0o640


def test_until_all_is_written_what_was_there_is_seen_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"old")
    seen: list[bytes] = []
    crash_points.install(lambda name: seen.append(path.read_bytes()))
    try:
        write_file(str(path), b"new", written="here")
    finally:
        crash_points.clear()

    assert seen == [b"old"]
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["journal"]


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"old")

    def fail(name: str) -> None:
        raise OSError("the disk is gone")

    crash_points.install(fail)
    try:
        with pytest.raises(OSError, match="the disk is gone"):
            write_file(str(path), b"new", written="here")
    finally:
        crash_points.clear()

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["journal"]


def test_the_next_write_removes_what_a_dead_writer_left_beside(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        Draft(str(tmp_path)).write(b"half")
        os._exit(9)
    os.waitpid(child, 0)
    assert len(os.listdir(tmp_path)) == 1

    write_file(str(tmp_path / "index"), b"whole", durable=False)

    assert os.listdir(tmp_path) == ["index"]


def test_a_draft_takes_no_name_that_is_taken(tmp_path: Path) -> None:
    taken = tmp_path / "document"
    taken.write_bytes(b"first")

    with Draft(str(tmp_path)) as draft, pytest.raises(FileExistsError):
        draft.link(str(taken))

    assert taken.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["document"]


def test_a_draft_that_took_its_place_stays_locked_and_there_until_it_is_closed(
    tmp_path: Path,
) -> None:
    with Draft(str(tmp_path)) as draft:
        draft.write(b"noted")
        draft.replace(str(tmp_path / "note"))
        remove_drafts(str(tmp_path))
        assert os.listdir(tmp_path) == ["note"]

    assert (tmp_path / "note").read_bytes() == b"noted"


def test_a_link_that_is_named_as_a_draft_leads_nowhere(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / ".holdfast-tmp-file-0123456789abcdef").symlink_to(mine)

    remove_drafts(str(tmp_path / "there"))

    assert mine.read_bytes() == b"mine"
