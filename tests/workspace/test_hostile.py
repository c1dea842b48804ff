"""Trees made by an enemy can neither lead out of the directory nor crash or exhaust the reader."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import SyncClient
from holdfast.core.chunk_format import chunk_id, compress
from holdfast.core.codec import pack
from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import CheckpointIntegrityError
from holdfast.stores.base import NotesOnly
from holdfast.workspace import Snapshot, Workspace, WorkspaceError
from holdfast.workspace.entries import (
    DIRECTORY,
    FILE,
    SYMLINK,
    BlockLocation,
    Entry,
    pack_pieces,
    pack_tree,
    parse_pieces,
    parse_tree,
    tree_id,
)
from tests.workspace.kit import picture

DATA = b"owned\n"


class Enemy:
    """Puts crafted objects into a store."""

    def __init__(self, client: SyncClient) -> None:
        self._store = client.store

    def chunk(self, raw: bytes) -> bytes:
        name = chunk_id(raw)
        self._store.commit(NotesOnly((), {name: compress(raw)}))
        return name

    def file(self, data: bytes = DATA, **changes: Any) -> Entry:
        block = self.chunk(data)
        return Entry(FILE, 0o644, 0, len(data), chunk_id(data), BlockLocation(block, 0))._replace(
            **changes
        )

    def tree(self, entries: dict[bytes, Entry]) -> bytes:
        return self.chunk(pack_tree(entries)[1])

    def directory(self, chunk: bytes, identity: bytes) -> Entry:
        return Entry(DIRECTORY, 0o755, 0, 0, identity, chunk)


def snapshot(root: bytes) -> Snapshot:
    return Snapshot(tree_id="00" * 20, files=1, bytes=1, root=ContentLink(root), workspace="enemy")


@pytest.fixture
def enemy(client: SyncClient) -> Enemy:
    return Enemy(client)


def refuse(workspace: Workspace, root: bytes, outside: Path) -> None:
    """Nothing takes the tree, nothing is written, in the workspace or elsewhere."""
    before = picture(outside)
    for use in (
        lambda: workspace.restore(snapshot(root)),
        lambda: workspace.ls(snapshot(root)),
        lambda: workspace.fork(snapshot(root), outside / "fork"),
        lambda: workspace.diff(snapshot(root)),
    ):
        with pytest.raises((CheckpointIntegrityError, WorkspaceError)):
            use()
    assert {p: e for p, e in picture(outside).items() if not p.startswith(b"store")} == {
        p: e for p, e in before.items() if not p.startswith(b"store")
    }


@pytest.mark.parametrize(
    "name",
    [
        b"..",
        b".",
        b"",
        b"/etc/passwd",
        b"../escape",
        b"a/b",
        b"nul\x00name",
        b"n" * 256,
        b".git",
        b".GIT",
        b".holdfast",
        b".holdfast-tmp-0",
        "text",
        7,
        None,
    ],
)
def test_a_name_that_leads_out_or_is_reserved_is_refused(
    name: Any, workspace: Workspace, enemy: Enemy, tmp_path: Path
) -> None:
    refuse(workspace, enemy.tree({name: enemy.file()}), tmp_path)


def test_a_name_that_leads_out_is_refused_deep_below(
    workspace: Workspace, enemy: Enemy, tmp_path: Path
) -> None:
    entries = {b"..": enemy.file()}
    for _ in range(5):
        entries = {b"d": enemy.directory(enemy.tree(entries), tree_id(entries))}

    refuse(workspace, enemy.tree(entries), tmp_path)


def test_names_that_are_there_twice_or_out_of_order_are_refused(
    workspace: Workspace, enemy: Enemy, tmp_path: Path
) -> None:
    good = {b"a": enemy.file(), b"b": enemy.file()}
    raw = pack_tree(good)[1]
    refuse(workspace, enemy.chunk(raw.replace(b"\xc4\x01b", b"\xc4\x01a")), tmp_path)
    refuse(workspace, enemy.tree({b"b": enemy.file(), b"a": enemy.file()}), tmp_path)


def test_a_symlink_and_a_file_of_one_name_cannot_be_in_a_tree(
    workspace: Workspace, enemy: Enemy, tmp_path: Path
) -> None:
    """The old trick: a symlink that leads out, and then a directory of the same name."""
    link = Entry(SYMLINK, 0, 0, 4, chunk_id(b"/tmp"), b"/tmp")
    raw = pack([1, b"\x00" * 20, [[b"a", *link[:5], b"/tmp"], [b"a", *link[:5], b"/tmp"]], []])

    refuse(workspace, enemy.chunk(raw), tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"size": 10**15},
        {"size": -1},
        {"size": 2**63},
        {"size": 5},
        {"mtime": 2**63},
        {"mtime": "now"},
        {"mode": "all"},
        {"mode": None},
        {"content": b"\x00" * 20},
        {"content": b""},
        {"kind": 9},
        {"kind": DIRECTORY},
        {"kind": SYMLINK},
        {"location": BlockLocation(b"\x00" * 20, 0)},
        {"location": None},
        {"location": b"\x00" * 20},
    ],
    ids=str,
)
def test_an_entry_that_cannot_be_is_refused(
    changes: dict[str, Any], workspace: Workspace, enemy: Enemy, tmp_path: Path
) -> None:
    raw_entry = enemy.file(**changes)
    try:
        root = enemy.tree({b"file": raw_entry})
    except (TypeError, AttributeError, ValueError):
        rows = [[b"file", *raw_entry[:5], 0, 0]]
        root = enemy.chunk(pack([1, b"\x00" * 20, rows, [ContentLink(enemy.chunk(DATA), True)]]))

    with pytest.raises((CheckpointIntegrityError, WorkspaceError)):
        workspace.restore(snapshot(root))
    with pytest.raises((CheckpointIntegrityError, WorkspaceError)):
        workspace.fork(snapshot(root), tmp_path / "fork")
    assert picture(workspace.path) == {}
    assert not (tmp_path / "fork").exists()


@pytest.mark.parametrize("offset", [-1, 7, 10**9, 2**70, "0"])
def test_a_location_outside_of_its_block_is_refused(
    offset: Any, workspace: Workspace, enemy: Enemy
) -> None:
    entry = enemy.file()
    rows = [[b"file", *entry[:5], 0, offset]]
    identity = tree_id({b"file": entry})
    root = enemy.chunk(pack([1, identity, rows, [ContentLink(enemy.chunk(DATA), True)]]))

    with pytest.raises((CheckpointIntegrityError, WorkspaceError)):
        workspace.restore(snapshot(root))
    assert picture(workspace.path) == {}


def test_special_bits_of_files_are_dropped(workspace: Workspace, enemy: Enemy, root: Path) -> None:
    entry = enemy.file(mode=0o6755)
    rows = [[b"tool", *entry[:5], 0, 0]]
    plain = {b"tool": entry._replace(mode=0o755)}
    chunk = enemy.chunk(pack([1, tree_id(plain), rows, [ContentLink(entry.location.block, True)]]))

    workspace.restore(snapshot(chunk))

    assert (root / "tool").stat().st_mode & 0o7777 == 0o755


def test_a_few_trees_that_claim_a_world_of_files_are_refused(
    workspace: Workspace, enemy: Enemy, tmp_path: Path
) -> None:
    entries = {b"f%03d" % n: enemy.file() for n in range(100)}
    for _ in range(40):
        chunk, identity = enemy.tree(entries), tree_id(entries)
        entries = {b"d%03d" % n: enemy.directory(chunk, identity) for n in range(100)}

    refuse(workspace, enemy.tree(entries), tmp_path)


def test_a_tree_without_an_end_is_refused(
    workspace: Workspace, enemy: Enemy, tmp_path: Path
) -> None:
    entries = {b"f": enemy.file()}
    for _ in range(2100):
        raw = pack_tree(entries)
        entries = {b"d": enemy.directory(enemy.chunk(raw[1]), raw[0])}

    refuse(workspace, enemy.tree(entries), tmp_path)


def test_a_file_of_endless_pieces_is_refused_before_anything_is_written(
    workspace: Workspace, enemy: Enemy, tmp_path: Path
) -> None:
    zeros = enemy.chunk(bytes(2**20))
    count = 2**20
    pieces = enemy.chunk(pack_pieces([(zeros, 2**20)] * count))
    entry = Entry(FILE, 0o644, 0, 2**20 * count, b"\x01" * 20, pieces)
    root = enemy.tree({b"bomb": entry})

    for use in (
        lambda: workspace.restore(snapshot(root)),
        lambda: workspace.fork(snapshot(root), tmp_path / "fork"),
    ):
        with pytest.raises(WorkspaceError, match="nothing was"):
            use()
    assert picture(workspace.path) == {}


def test_a_block_larger_than_any_is_refused(workspace: Workspace, enemy: Enemy) -> None:
    data = bytes(60 * 2**20)
    entry = enemy.file(data, size=10, content=chunk_id(data[:10]))

    with pytest.raises(CheckpointIntegrityError, match="larger"):
        workspace.restore(snapshot(enemy.tree({b"bomb": entry})))


def test_a_tree_that_leads_nowhere_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    refuse(workspace, b"\x00" * 20, tmp_path)


def test_a_symlink_out_is_made_and_not_followed(
    workspace: Workspace, enemy: Enemy, root: Path, tmp_path: Path
) -> None:
    target = os.fsencode(tmp_path)
    link = Entry(SYMLINK, 0, 0, len(target), chunk_id(target), target)
    inner = {b"evil": enemy.file()}
    first = enemy.tree({b"a": link})
    second = enemy.tree({b"a": enemy.directory(enemy.tree(inner), tree_id(inner))})

    workspace.restore(snapshot(first))
    workspace.restore(snapshot(second))

    assert (root / "a" / "evil").read_bytes() == DATA
    assert not (root / "a").is_symlink()
    assert not (tmp_path / "evil").exists()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.binary(max_size=24) | st.text(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=30,
)


@given(VALUES)
def test_any_value_in_place_of_a_tree_is_refused(value: Any) -> None:
    for parse in (parse_tree, lambda raw: parse_pieces(raw, 10)):
        with pytest.raises(CheckpointIntegrityError):
            parse(pack(value))


@given(st.binary(max_size=200))
def test_any_bytes_in_place_of_a_tree_are_refused(raw: bytes) -> None:
    for parse in (parse_tree, lambda raw: parse_pieces(raw, 10)):
        with pytest.raises(CheckpointIntegrityError):
            parse(raw)


GOOD = pack_tree(
    {
        b"a": Entry(FILE, 0o644, 5, 3, chunk_id(b"abc"), BlockLocation(b"b" * 20, 0)),
        b"b": Entry(SYMLINK, 0, 5, 1, chunk_id(b"a"), b"a"),
        b"c": Entry(DIRECTORY, 0o755, 0, 0, b"t" * 20, b"c" * 20),
        b"d": Entry(FILE, 0o644, 5, 900_000, b"h" * 20, b"p" * 20),
    }
)[1]


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_any_flipped_byte_of_a_tree_is_refused_or_harmless(at: int, flip: int) -> None:
    raw = bytearray(GOOD)
    raw[at] ^= flip
    try:
        tree = parse_tree(bytes(raw))
    except CheckpointIntegrityError:
        return
    assert list(tree.entries) == [b"a", b"b", b"c", b"d"]  # only a location can have changed
