"""What differs between two trees, in words a user of git knows."""

import os
from collections.abc import Collection
from pathlib import Path

from holdfast import SyncClient
from holdfast.stores import FindsLastNotes, Note, Store, WrappedStore
from holdfast.workspace import Workspace
from tests.workspace.kit import put


def test_every_kind_of_change_is_told(workspace: Workspace, root: Path) -> None:
    for name in ("same", "edited", "gone", "moved", "run.sh", "touched", "kind", "d/e/deep"):
        put(root / name, f"this is {name}\n")
    (root / "empty").mkdir()
    before = workspace.snapshot()
    put(root / "edited", "changed\n")
    (root / "gone").unlink()
    (root / "moved").rename(root / "d" / "moved")
    (root / "run.sh").chmod(0o755)
    os.utime(root / "touched", ns=(1, 1))
    (root / "kind").unlink()
    (root / "kind").symlink_to("same")
    (root / "empty").rmdir()
    (root / "hollow").mkdir()
    put(root / "new" / "file", "new\n")

    diff = workspace.diff(before)

    assert diff.added == ("hollow/", "new/file")
    assert diff.removed == ("empty/", "gone")
    assert diff.modified == ("edited", "kind")
    assert diff.renamed == (("moved", "d/moved"),)
    assert diff.mode == ("run.sh",)
    assert diff.touched == ("touched",)
    assert "R moved -> d/moved" in str(diff)


def test_equal_trees_do_not_differ(workspace: Workspace, root: Path) -> None:
    put(root / "file")
    snapshot = workspace.snapshot()

    assert not workspace.diff(snapshot, snapshot)
    assert not workspace.diff(snapshot)
    assert str(workspace.diff(snapshot)) == ""


def test_the_diff_the_other_way_round_is_its_reverse(workspace: Workspace, root: Path) -> None:
    put(root / "a", "a\n")
    first = workspace.snapshot()
    put(root / "b" / "c", "c\n")
    second = workspace.snapshot()

    assert workspace.diff(first, second).added == workspace.diff(second, first).removed == ("b/c",)


def test_a_renamed_directory_is_told_by_its_files(workspace: Workspace, root: Path) -> None:
    for name in ("a", "b"):
        put(root / "old" / name, f"{name}\n")
    before = workspace.snapshot()
    (root / "old").rename(root / "new")

    assert workspace.diff(before).renamed == (("old/a", "new/a"), ("old/b", "new/b"))


def test_changed_lines_are_shown_where_that_is_asked_for(workspace: Workspace, root: Path) -> None:
    put(root / "code.py", "one\ntwo\nthree\n")
    put(root / "gone", "bye")
    put(root / "image", b"\x89PNG\x00\x01")
    before = workspace.snapshot()
    put(root / "code.py", "one\n2\nthree\n")
    (root / "gone").unlink()
    put(root / "image", b"\x89PNG\x00\x02")
    put(root / "new", "hello\n")

    text = str(workspace.diff(before, text=True))

    assert "--- a/code.py\n+++ b/code.py\n" in text
    assert "-two\n+2\n" in text
    assert "--- a/gone\n+++ /dev/null\n" in text
    assert "-bye\n\\ No newline at end of file\n" in text
    assert "Binary files a/image and b/image differ\n" in text
    assert "+++ b/new\n@@ -0,0 +1 @@\n+hello\n" in text


def test_status_compares_with_the_last_snapshot(workspace: Workspace, root: Path) -> None:
    put(root / "a", "a\n")
    assert workspace.status().added == ("a",)
    workspace.snapshot()
    assert not workspace.status()
    put(root / "b", "b\n")

    assert workspace.status().added == ("b",)
    assert workspace.status().added == ("b",)


def test_status_after_a_restore_compares_with_what_was_restored(
    workspace: Workspace, root: Path
) -> None:
    put(root / "a", "a\n")
    first = workspace.snapshot()
    put(root / "b", "b\n")
    workspace.snapshot()

    workspace.restore(first)

    assert not workspace.status()


def test_a_tree_can_be_listed_and_read(workspace: Workspace, root: Path) -> None:
    put(root / "d" / "file", "content\n", mode=0o640)
    (root / "link").symlink_to("d/file")
    snapshot = workspace.snapshot()

    listed = [(e.path, e.kind, e.mode, e.size) for e in workspace.ls(snapshot)]

    assert listed == [
        ("d", "directory", 0o755, 0),
        ("d/file", "file", 0o640, 8),
        ("link", "symlink", 0, 6),
    ]
    assert workspace.read(snapshot, "d/file") == b"content\n"
    assert workspace.read(snapshot, root / "d" / "file") == b"content\n"
    assert workspace.read(snapshot, "link") == b"d/file"


def test_odd_names_and_long_texts_are_shown_on_a_line_each(
    workspace: Workspace, root: Path
) -> None:
    put(root / "forged\nD everything", "one\n")
    put(root / "page", "one\x0ctwo\n")
    put(root / "long", "line\n" * 300_000)
    before = workspace.snapshot()
    put(root / "forged\nD everything", "two\n")
    put(root / "page", "one\x0c2\n")
    put(root / "long", "LINE\n" * 300_000)

    assert str(workspace.diff(before)).splitlines() == [
        "M forged\\nD everything",
        "M long",
        "M page",
    ]
    text = str(workspace.diff(before, text=True))
    assert "+++ b/forged\\nD everything\n" in text
    assert "Files a/long and b/long differ, and are too long to be shown\n" in text
    assert "-one\x0ctwo\n+one\x0c2\n" in text
    assert "No newline" not in text


class Counting(WrappedStore):
    """Counts the notes that are read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read = 0

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        found = super().notes(scopes, after, limit)
        self.read += len(found)
        return found

    def last_notes(self, scopes: Collection[str], count: int) -> list[Note]:
        able = self.inner.capability(FindsLastNotes)
        assert able is not None
        found = able.last_notes(scopes, count)
        self.read += len(found)
        return found


def test_status_reads_no_more_after_many_snapshots(root: Path, client: SyncClient) -> None:
    store = Counting(client.store)
    (root / "a").write_text("0")
    with SyncClient(store) as counted, Workspace(root, counted) as workspace:
        for n in range(60):
            (root / "a").write_text(str(n))
            workspace.snapshot()
        for n in range(12):
            (root / "a").write_text(f"looked at {n}")
            assert workspace.status().modified == ("a",)
        before = store.read
        (root / "a").write_text("changed")

        assert workspace.status().modified == ("a",)

    assert store.read - before <= 50
