"""Trees: what a directory holds, as a value, as a chunk and as an id; pure.

A tree's id is a function of what it holds alone: names, kinds, modes, times, contents. The chunk of
a tree says besides where the bytes are kept, so trees of one id may have different chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ormsgpack

from holdfast.core.chunk_format import ID_BYTES, chunk_id
from holdfast.core.codec import Packer, pack, unpack
from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import CheckpointIntegrityError, HoldfastError

FILE, SYMLINK, DIRECTORY = 0, 1, 2

SMALL = 256 * 1024
"""A file up to this many bytes lies in one block with others; a larger one is cut into pieces."""
MAX_BLOCK = 4 * 2**20
"""No block is larger; those that are made have up to 640 KB."""
MAX_NAME = 255
MAX_TARGET = 4096
MAX_DEPTH = 2048
MAX_ENTRIES = 3_000_000
"""A tree with more of them in all is refused: a few chunks that share each other could claim any
number."""
TEMPORARY = b".holdfast-tmp-"
"""How the names of files begin that a restore has not put under their names yet."""
MAKING = TEMPORARY + b"making"
"""What stands where a restore makes things until all of them are whole."""
HELD = b".holdfast-held-"
"""How the names of directories begin with files that were replaced while somebody wrote to them."""

_FILE_MODE, _DIRECTORY_MODE = 0o777, 0o3777
_TIMES = 2**63
_DOMAIN = b"holdfast tree 1\n"
_VERSION = 1


class Entry(NamedTuple):
    """What stands under a name in a directory."""

    kind: int
    mode: int
    mtime: int
    """In nanoseconds; of a directory always 0, for it changes with what nobody captures."""
    size: int
    content: bytes
    """The hash of a file's bytes or a symlink's target; of a directory the id of its tree."""
    location: Any
    """A BlockLocation, the name of a list of pieces or a subtree's chunk, a symlink's target;
    None for an empty file."""


class BlockLocation(NamedTuple):
    """Where the bytes of a small file begin."""

    block: bytes
    offset: int


@dataclass(frozen=True, slots=True)
class DirectoryTree:
    """A directory: its entries by name, in order."""

    tree_id: bytes
    entries: Mapping[bytes, Entry]


EMPTY_FILE = chunk_id(b"")


def symlink_entry(target: bytes, mtime: int) -> Entry:
    """Return the entry of a symlink."""
    return Entry(SYMLINK, 0, mtime, len(target), chunk_id(target), target)


def file_mode(mode: int) -> int:
    """Return the permission bits of a file that are kept."""
    return mode & _FILE_MODE


def directory_mode(mode: int) -> int:
    """Return the permission bits of a directory that are kept."""
    return mode & _DIRECTORY_MODE


def is_reserved(name: bytes) -> bool:
    """Return whether a name is never captured and never written: git's, Holdfast's own."""
    return name[:1] == b"." and (
        name.lower() in (b".git", b".holdfast") or name.startswith((TEMPORARY, HELD))
    )


def tree_id(entries: Mapping[bytes, Entry]) -> bytes:
    """Return the id of a directory that holds these, given in the order of their names."""
    return _id_of(_rows(entries))


def _rows(entries: Mapping[bytes, Entry]) -> list[list[Any]]:
    """Return what the id is made of: all but where the bytes lie."""
    return [[name, *entry[:5]] for name, entry in entries.items()]


def _id_of(rows: list[list[Any]]) -> bytes:
    return chunk_id(_DOMAIN + ormsgpack.packb(rows))


def pack_tree(entries: Mapping[bytes, Entry]) -> tuple[bytes, bytes]:
    """Return the id and the chunk of a directory."""
    rows = _rows(entries)
    identity = _id_of(rows)
    links: dict[tuple[bytes, bool], int] = {}
    for row, entry in zip(rows, entries.values(), strict=True):
        location = entry.location
        if isinstance(location, BlockLocation):
            row += [links.setdefault((location.block, True), len(links)), location.offset]
        elif entry.kind == SYMLINK:
            row.append(location)
        elif location is not None:
            row.append(links.setdefault((location, False), len(links)))
    value = [_VERSION, identity, rows, [ContentLink(*link) for link in links]]
    return identity, Packer().pack_trusting(value)  # all bytes in it are plain


def parse_tree(raw: bytes) -> DirectoryTree:
    """Return the directory of a chunk, whoever made it; refuse one that could do harm."""
    try:
        version, identity, rows, links = unpack(raw)
        if version != _VERSION:
            raise ValueError(f"a tree of version {version!r}, which this Holdfast cannot read")
        if not all(type(link) is ContentLink for link in links):
            raise ValueError("a tree whose links are none")
        entries = {row[0]: _entry(row, links) for row in rows}
        names = list(entries)
        if len(names) != len(rows) or names != sorted(names):
            raise ValueError("a tree whose names are twice there or out of order")
        if tree_id(entries) != identity:
            raise ValueError("a tree that does not match its id")
    except CheckpointIntegrityError:
        raise
    except (HoldfastError, IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointIntegrityError(None, f"a workspace tree is refused: {error}") from None
    return DirectoryTree(identity, entries)


def _entry(row: list[Any], links: list[ContentLink]) -> Entry:
    name, kind, mode, mtime, size, content, *where = row
    check_name(name)
    if not (type(mode) is int and type(mtime) is int and type(size) is int):
        raise ValueError("an entry of the wrong shape")
    if not (-_TIMES <= mtime < _TIMES and 0 <= size < 2**63):
        raise ValueError("an entry of impossible time or size")
    if type(content) is not bytes or len(content) != ID_BYTES:
        raise ValueError("an entry without a hash")
    if kind == FILE:
        return Entry(
            FILE, file_mode(mode), mtime, size, content, _location(size, content, where, links)
        )
    if kind == SYMLINK:
        (target,) = where
        check_target(target)
        if chunk_id(target) != content or size != len(target):
            raise ValueError("a symlink that does not match its hash")
        return Entry(SYMLINK, 0, mtime, size, content, target)
    if kind == DIRECTORY and not mtime and not size:
        return Entry(DIRECTORY, directory_mode(mode), 0, 0, content, _link(where, links, False))
    raise ValueError(f"an entry of kind {kind!r}")


def _location(size: int, content: bytes, where: list[Any], links: list[ContentLink]) -> Any:
    if not where:
        if size or content != EMPTY_FILE:
            raise ValueError("a file without its bytes")
        return None
    if len(where) == 1:
        return _link(where, links, False)
    *where, offset = where
    if type(offset) is not int or not 0 <= offset <= MAX_BLOCK or size > MAX_BLOCK:
        raise ValueError("a file that lies outside of every block")
    return BlockLocation(_link(where, links, True), offset)


def _link(where: list[Any], links: list[ContentLink], is_leaf: bool) -> bytes:
    (number,) = where
    if type(number) is not int or number < 0:
        raise ValueError("an entry that leads nowhere")
    link = links[number]
    if link.is_leaf is not is_leaf:
        raise ValueError("an entry that leads to something else")
    return link.name


def check_name(name: object) -> None:
    """Refuse a name that no directory could hold, or that leads out of it."""
    if type(name) is not bytes or not 0 < len(name) <= MAX_NAME:
        raise ValueError("a name that is empty, too long or no name at all")
    if name in (b".", b"..") or b"/" in name or b"\x00" in name:
        raise ValueError(f"the name {name!r}, which leads elsewhere")
    if is_reserved(name):
        raise ValueError(f"the name {name!r}, which is never written")


def check_target(target: object) -> None:
    """Refuse what is not the target of a symlink."""
    if type(target) is not bytes or not 0 < len(target) <= MAX_TARGET or b"\x00" in target:
        raise ValueError("a symlink without a proper target")


def pack_pieces(pieces: Sequence[tuple[bytes, int]]) -> bytes:
    """Return the chunk that lists the pieces of a large file, each with its size."""
    blocks = [ContentLink(name, True) for name, _ in pieces]
    return pack([_VERSION, blocks, [size for _, size in pieces]])


def parse_pieces(raw: bytes, size: int) -> list[tuple[bytes, int]]:
    """Return the pieces of a file of that size."""
    try:
        version, blocks, sizes = unpack(raw)
        if version != _VERSION or len(blocks) != len(sizes):
            raise ValueError("of another shape")
        if not all(type(block) is ContentLink and block.is_leaf for block in blocks):
            raise ValueError("which leads to something else")
        if not all(type(part) is int and 0 < part <= MAX_BLOCK for part in sizes):
            raise ValueError("of impossible sizes")
        if sum(sizes) != size:
            raise ValueError("of another size than the file")
        return [(block.name, part) for block, part in zip(blocks, sizes, strict=True)]
    except CheckpointIntegrityError:
        raise
    except (HoldfastError, TypeError, ValueError) as error:
        raise CheckpointIntegrityError(None, f"a list of pieces is refused: {error}") from None
