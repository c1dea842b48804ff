"""Rules that changed between a tree and now: nothing ignored is lost by a restore, or removed."""

import os
import random
import shutil
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace, WorkspaceError
from tests.workspace.kit import picture, put

RULES = [".gitignore", ".holdfastignore"]


def goes_there_and_back(workspace: Workspace, root: Path, tree: object) -> None:
    """Restore, undo, undo the undo, and undo that: each leads to exactly what was."""
    was = picture(root)
    there = workspace.restore(tree)  # type: ignore[arg-type]
    then = picture(root)
    back = workspace.restore(str(there.undo_tree))
    assert picture(root) == was
    again = workspace.restore(str(back.undo_tree))
    assert picture(root) == then
    workspace.restore(str(again.undo_tree))
    assert picture(root) == was


# Ignored now, and not at the tree.


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("place", ["", "deep/er/"])
def test_what_is_ignored_now_comes_back_by_an_undo(
    rules: str, place: str, workspace: Workspace, root: Path
) -> None:
    put(root / f"{place}.env", "v1")
    tree = workspace.snapshot()
    put(root / place / rules, ".env\n")
    put(root / f"{place}.env", "mine", mode=0o600)
    workspace.snapshot()

    goes_there_and_back(workspace, root, tree)

    workspace.restore(tree)
    assert (root / place / ".env").read_text() == "v1"


@pytest.mark.parametrize("rules", RULES)
def test_a_checkpoint_before_a_restore_holds_what_that_replaces(
    rules: str, workspace: Workspace, root: Path
) -> None:
    put(root / ".env", "v1")
    put(root / "cache" / "x", "v1")
    tree = workspace.snapshot()
    put(root / rules, ".env\ncache/\n")
    put(root / ".env", "mine")
    put(root / "cache" / "x", "mine too")
    put(root / "cache" / "other", "left alone")
    was = picture(root)

    kept = workspace.snapshot_for_checkpoint(before=tree)
    done = workspace.restore(tree)

    assert kept.tree_id == done.undo_tree
    assert (root / ".env").read_text() == "v1"
    assert (root / "cache" / "other").read_text() == "left alone"
    workspace.restore(kept)
    assert picture(root) == was
    assert ".env" not in [entry.path for entry in workspace.ls(workspace.snapshot())]


def test_an_ignored_file_where_the_tree_has_a_directory_comes_back(
    workspace: Workspace, root: Path
) -> None:
    put(root / "out" / "deep" / "x", "v1")
    tree = workspace.snapshot()
    shutil.rmtree(root / "out")
    put(root / "out", "mine")
    put(root / ".gitignore", "out\n")

    goes_there_and_back(workspace, root, tree)


@pytest.mark.parametrize("is_link_in_the_tree", [False, True])
def test_ignored_symlinks_come_back_and_are_not_followed(
    is_link_in_the_tree: bool, workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(tmp_path / "outside" / "x", "not ours")
    put(root / "out" / "x", "v1")
    if is_link_in_the_tree:
        (root / "link").symlink_to("v1")
    else:
        put(root / "link", "v1")
    tree = workspace.snapshot()
    shutil.rmtree(root / "out")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "link").unlink()
    if is_link_in_the_tree:
        put(root / "link", "mine")
    else:
        (root / "link").symlink_to("mine")
    put(root / ".gitignore", "out\nlink\n")

    goes_there_and_back(workspace, root, tree)

    assert (tmp_path / "outside" / "x").read_text() == "not ours"


def test_an_ignored_directory_where_the_tree_has_a_file_stops_the_restore(
    workspace: Workspace, root: Path
) -> None:
    put(root / "out", "v1")
    tree = workspace.snapshot()
    (root / "out").unlink()
    put(root / "out" / "mine", "mine")
    put(root / ".gitignore", "out/\n")
    was = picture(root)

    for dry_run in (True, False):
        with pytest.raises(WorkspaceError, match=r"not captured: out/mine; move or remove it"):
            workspace.restore(tree, dry_run=dry_run)

    assert picture(root) == was


def test_what_was_not_there_is_not_there_after_an_undo(workspace: Workspace, root: Path) -> None:
    put(root / ".env", "v1")
    put(root / "cache" / "deep" / "x", "v1")
    tree = workspace.snapshot()
    (root / ".env").unlink()
    shutil.rmtree(root / "cache")
    put(root / ".gitignore", ".env\ncache/\n")

    goes_there_and_back(workspace, root, tree)

    goes_there_and_back_of_paths(workspace, root, tree)


def goes_there_and_back_of_paths(workspace: Workspace, root: Path, tree: object) -> None:
    was = picture(root)
    there = workspace.restore(tree, paths=["cache", ".gitignore"])  # type: ignore[arg-type]
    assert (root / "cache" / "deep" / "x").exists()
    assert not (root / ".env").exists()
    workspace.restore(str(there.undo_tree))
    assert picture(root) == was


def test_what_somebody_made_of_it_stays_after_an_undo(workspace: Workspace, root: Path) -> None:
    put(root / "cache" / "deep" / "x", "v1")
    put(root / "cache" / "y", "v1")
    tree = workspace.snapshot()
    shutil.rmtree(root / "cache")
    put(root / ".gitignore", "cache/\n")
    done = workspace.restore(tree)
    put(root / "cache" / "deep" / "x", "built since")

    workspace.restore(str(done.undo_tree))

    assert (root / "cache" / "deep" / "x").read_text() == "built since"
    assert not (root / "cache" / "y").exists()


# Ignored at the tree, and not now.


@pytest.mark.parametrize("rules", RULES)
def test_what_the_tree_ignored_is_left_alone(rules: str, workspace: Workspace, root: Path) -> None:
    put(root / rules, "data.txt\nnode/\n")
    put(root / "data.txt", "mine")
    put(root / "node" / "deep" / "x", "mine")
    (root / "node" / "empty").mkdir()
    (root / "node" / "link").symlink_to("x")
    tree = workspace.snapshot()
    (root / rules).unlink()
    put(root / "new", "new")
    put(root / "node" / "later", "mine")
    workspace.snapshot()
    was = picture(root)

    plan = workspace.restore(tree, dry_run=True)
    assert (plan.written, plan.removed) == ((rules,), ("new",))
    done = workspace.restore(tree)

    assert (done.written, done.removed) == (plan.written, plan.removed)
    now = picture(root)
    assert set(was.keys() ^ now.keys()) == {b"new", os.fsencode(rules)}
    assert all(now[path] == was[path] for path in was if path in now)
    workspace.restore(str(done.undo_tree))
    assert picture(root) == was


def test_nested_rules_of_the_tree_mean_what_they_meant(workspace: Workspace, root: Path) -> None:
    put(root / ".gitignore", "*.log\n/only-top\n")
    put(root / "sub" / ".gitignore", "!keep.log\n/own\n")
    put(root / "sub" / ".holdfastignore", "!other.log\n")
    tree = workspace.snapshot()
    (root / ".gitignore").unlink()
    (root / "sub" / ".gitignore").unlink()
    (root / "sub" / ".holdfastignore").unlink()
    left = ("a.log", "only-top", "sub/a.log", "sub/own", "late/b.log", "late/deep/c.log")
    gone = ("sub/keep.log", "sub/other.log", "sub/only-top", "own", "late/x", "late/bare/x")
    for name in (*left, *gone):
        put(root / name, "now")

    plan = workspace.restore(tree, dry_run=True)
    done = workspace.restore(tree)

    files = {os.fsdecode(path) for path, entry in picture(root).items() if entry[0] == "file"}
    assert files == {*left, ".gitignore", "sub/.gitignore", "sub/.holdfastignore"}
    assert set(done.removed) == {*gone, "late/bare"} == set(plan.removed)
    assert done.stayed == ()


def test_chosen_paths_that_the_tree_ignored_are_left_alone(
    workspace: Workspace, root: Path
) -> None:
    put(root / "sub" / ".gitignore", "*.log\nnode/\n")
    tree = workspace.snapshot()
    (root / "sub" / ".gitignore").unlink()
    for name in ("a.log", "node/x", "new", "other"):
        put(root / "sub" / name, "now")

    for chosen in (["sub/a.log", "sub/new"], ["sub/node", "sub/node/x"]):
        workspace.restore(tree, paths=chosen)

    assert sorted(os.listdir(root / "sub")) == ["a.log", "node", "other"]
    assert (root / "sub" / "node" / "x").read_text() == "now"


def test_what_is_in_the_way_of_the_tree_goes_though_its_rules_ignore_it(
    workspace: Workspace, root: Path
) -> None:
    put(root / ".gitignore", "*.log\n")
    put(root / "thing", "v1")
    tree = workspace.snapshot()
    (root / ".gitignore").unlink()
    (root / "thing").unlink()
    put(root / "thing" / "a.log", "mine")

    goes_there_and_back(workspace, root, tree)

    workspace.restore(tree)
    assert (root / "thing").read_text() == "v1"


def test_where_ignored_files_are_captured_what_was_not_there_is_removed(
    root: Path, client: SyncClient
) -> None:
    put(root / ".gitignore", "*.log\n")
    with Workspace(root, client, include_ignored=True) as workspace:
        tree = workspace.snapshot()
        put(root / "a.log", "new")

        goes_there_and_back(workspace, root, tree)

        workspace.restore(tree)
    assert os.listdir(root) == [".gitignore"]


def test_rules_that_are_a_symlink_or_huge_do_no_harm(workspace: Workspace, root: Path) -> None:
    put(root / "rules", "*\n")
    (root / ".gitignore").symlink_to("rules")
    put(root / "sub" / ".gitignore", "*.log\n" + "#" * 3 * 2**20)
    tree = workspace.snapshot()
    for name in ("new", "sub/a.log", "sub/new"):
        put(root / name, "now")
    (root / "sub" / ".gitignore").unlink()

    workspace.restore(tree)

    assert sorted(os.listdir(root)) == [".gitignore", "rules", "sub"]
    assert sorted(os.listdir(root / "sub")) == [".gitignore", "a.log"]


# Both at once.


def test_a_dry_run_knows_which_directories_stay_for_what_is_ignored_in_them(
    workspace: Workspace, root: Path
) -> None:
    put(root / ".gitignore", "*.log\n")
    tree = workspace.snapshot()
    put(root / "new" / "deep" / "a.log", "mine")
    put(root / "new" / "bare" / "x", "new")

    plan = workspace.restore(tree, dry_run=True)
    done = workspace.restore(tree)

    assert plan.removed == done.removed == ("new/bare", "new/bare/x")
    assert plan.stayed == done.stayed == ("new", "new/deep")


NAMES = ("a", "b", "x.log", "keep.log", "n")
LINES = ("*.log", "a", "/b", "n/", "!keep.log", "a/b", "n/*", "*")


def change(root: Path, chance: random.Random) -> None:
    """Write, replace and remove some files, directories, symlinks and rules."""
    for _ in range(chance.randrange(1, 7)):
        path = root.joinpath(*chance.choices(NAMES, k=chance.randrange(1, 4)))
        kind = chance.random()
        if any(above.is_symlink() or above.is_file() for above in path.parents):
            continue
        if os.path.lexists(path) and (chance.random() < 0.4 or not path.is_file()):
            is_directory = path.is_dir() and not path.is_symlink()
            shutil.rmtree(path) if is_directory else path.unlink()
        elif kind < 0.3:
            rules = path.parent / chance.choice(RULES)
            put(rules, "\n".join(chance.sample(LINES, chance.randrange(3))) + "\n")
        elif kind < 0.8 or path.is_file():
            put(path, str(chance.randrange(3)))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir() if kind < 0.9 else path.symlink_to(chance.choice(NAMES))


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_by_going_there_and_back_whatever_the_rules(
    seed: int, root: Path, client: SyncClient
) -> None:
    chance = random.Random(seed)
    with Workspace(root, client, watch=seed % 2 == 1) as workspace:
        trees = []
        for _ in range(5):
            change(root, chance)
            trees.append(workspace.snapshot())
        for _ in range(5):
            change(root, chance)
            was, tree = picture(root), chance.choice(trees)
            try:
                plan = workspace.restore(tree, dry_run=True)
            except WorkspaceError:  # something that is not captured is in the way
                assert picture(root) == was
                continue
            kept = workspace.snapshot_for_checkpoint(before=tree)
            done = workspace.restore(tree)
            assert (plan.written, plan.removed) == (done.written, done.removed)
            now = picture(root)
            assert {os.fsencode(each.path) for each in workspace.ls(tree)} <= now.keys()
            try:
                workspace.restore(chance.choice([kept.tree_id, str(done.undo_tree)]))
            except WorkspaceError:
                assert picture(root) == now
                continue
            assert was.items() <= picture(root).items()
