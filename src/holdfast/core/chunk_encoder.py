"""A state as content-addressed chunks, so that a checkpoint costs what changed.

A chunk is the packed bytes of a value in which large parts are replaced by references to other
chunks, and long lists, dicts, strings and bytes by an index of pages. Which parts are replaced is
a function of the content alone, so equal states give equal chunks, whoever saved them. A *layout*
remembers how the parent was cut; it makes encoding faster and never changes its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

import ormsgpack

from holdfast.core.chunk_format import (
    PAGED_BYTES,
    PAGED_STR,
    REF_LEAF,
    REF_NODE,
    WHOLE,
    check_size,
    chunk_id,
    compress,
    may_link,
    pack_index,
)
from holdfast.core.codec import Packer
from holdfast.core.content_cuts import FANOUT, ends_group
from holdfast.core.kinds import bytes_codes
from holdfast.core.packed_size import MODERATE, Shells, is_plain_dict, is_surely_longer
from holdfast.core.page_cutter import Page, cut
from holdfast.core.paged_sequences import (
    Blob,
    Elements,
    Items,
    Layout,
    Shrunk,
    text_blob,
)
from holdfast.errors import SerializationError

_NO_LAYOUT = Layout()
_SPLIT_LEVELS = 30
"""Parts of parts are split this far down; so a reader need not go deeper from chunk to chunk."""
_ATOMS = (bool, int, float, type(None))
_HELD = 16 * 2**20
"""Bytes of chunks that are held in memory."""

Chunks = MutableMapping[bytes, bytes]
Apart = Callable[[dict[bytes, bytes]], Chunks]
"""Given the chunks there are so far, returns what holds these and all that follow."""


def together(chunks: dict[bytes, bytes]) -> Chunks:
    """Keep all chunks where they are."""
    return chunks


@dataclass(frozen=True, slots=True)
class Base:
    """What is known of a parent state: how it was cut and which chunks the store has of it."""

    layout: Layout
    known: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A state in chunks: the name of its root, the chunks its base lacks, and its size."""

    root: bytes
    chunks: Chunks
    """As bytes, or as they are stored if that was asked for."""
    size: int
    """Bytes of all its chunks, shared or not."""
    base: Base
    """The base for encoding the next state."""


def encode(
    value: Any,
    base: Base | None = None,
    *,
    seed: int = 0,
    allow_pickle: bool = False,
    append_only: Iterable[tuple[str, ...]] = (),
    as_stored: bool = False,
    apart: Apart = together,
) -> Encoded:
    """Turn a state into chunks, given what is known of its parent.

    Paths named ``append_only`` are lists whose saved elements the caller never changes. The seed
    must be the one the base was made with. Chunks ``as_stored`` are compressed one by one as they
    come about. Where these are many, ``apart`` is given those there are and returns what holds them
    and all that follow, so that a large state is never there a second time.

    >>> from holdfast.core.chunk_encoder import encode
    >>> first = encode({"messages": ["hello"] * 9000})
    >>> second = encode({"messages": ["hello"] * 9000 + ["bye"]}, first.base)
    >>> len(second.chunks) < len(first.chunks)
    True
    """
    encoder = _Encoder(Packer(allow_pickle), base, seed, frozenset(append_only), as_stored, apart)
    layout = (
        base.layout if base is not None and (base.layout.pages or base.layout.children) else None
    )
    try:
        shrunk = encoder.shrink(value, layout, 0, ())
    except SerializationError:
        encoder.pack(value)  # parts were packed by themselves: the whole knows the whole path
        raise
    root = encoder.emit(shrunk.data)
    used = frozenset(encoder.used)
    for name in [name for name in encoder.new if name not in used]:
        del encoder.new[name]
    return Encoded(root, encoder.new, shrunk.size, Base(shrunk.layout or Layout(), used))


class _Encoder:
    def __init__(
        self,
        packer: Packer,
        base: Base | None,
        seed: int,
        append_only: frozenset[tuple[str, ...]],
        as_stored: bool,
        apart: Apart,
    ) -> None:
        self.packer = packer
        self._shells = Shells(packer)
        self.seed = seed
        self.append_only = append_only
        self.known = base.known if base is not None else frozenset()
        # In order of use, so that what a discarded attempt used can be taken back.
        self.used: list[bytes] = []
        self._level = 0
        self._around = 0
        """How many lists and dicts are around that were not packed as a whole."""
        self.is_checked = False
        self._as_stored = as_stored
        self._apart = apart
        self._room = _HELD
        self.new: Chunks = {}

    def pack(self, value: Any) -> bytes:
        """Return the bytes of a value, which may nest as deep as what is around it leaves."""
        return self._shells.pack(value, self._around)

    def emit(self, raw: bytes) -> bytes:
        """Name a chunk, and keep it if the base does not have it."""
        check_size(raw)
        name = chunk_id(raw)
        self.used.append(name)
        if name not in self.known and name not in self.new:
            self._keep(name, raw)
        return name

    def _keep(self, name: bytes, raw: bytes) -> None:
        data = compress(raw) if self._as_stored else raw
        if self._room >= 0:
            self._room -= len(data)
            if self._room < 0:
                self.new = self._apart(dict(self.new))
        self.new[name] = data

    def shrink(
        self,
        value: Any,
        layout: Layout | None,
        limit: int,
        path: tuple[str, ...],
        packed: bytes | None = b"",
    ) -> Shrunk:
        """Return a value's bytes, at most ``limit`` of them (0 for the root: however many).

        ``packed`` are all of them if they are at hand, None if they are too many to stand whole.
        """
        if self._level >= _SPLIT_LEVELS:
            data = packed or self.pack(value)
            return Shrunk(data, len(data))
        self._level += 1
        try:
            return self._shrink(value, layout, limit, path, packed)
        finally:
            self._level -= 1

    def _shrink(
        self,
        value: Any,
        layout: Layout | None,
        limit: int,
        path: tuple[str, ...],
        packed: bytes | None,
    ) -> Shrunk:
        mark = len(self.used)
        whole_limit = max(limit, WHOLE)
        shrunk = None if layout is None else self._split(value, layout, path)
        is_checked = self.is_checked
        if shrunk is None:
            is_long = packed is None or (
                not packed and not is_checked and is_surely_longer(value, whole_limit)
            )
        else:
            is_long = shrunk.size > 2 * whole_limit
        if not is_long:
            # What is small stands whole, however it was cut before.
            data = packed or self.pack(value)
            is_checked = len(data) <= MODERATE
            if len(data) <= whole_limit:
                del self.used[mark:]
                shrunk = Shrunk(data, len(data))
            del data  # it may be large, and so are the parts
        if shrunk is None:
            around = 0 if is_checked else self._around + 1
            shrunk = self._split_within(value, _NO_LAYOUT, path, around, is_checked)
        if limit and len(shrunk.data) > limit:
            return self._refer(shrunk)
        return shrunk

    def _split_within(
        self, value: Any, layout: Layout, path: tuple[str, ...], around: int, is_checked: bool
    ) -> Shrunk:
        """Split what has so much around it; it is checked if it was packed as a whole before."""
        outside = self._around, self.is_checked
        self._around, self.is_checked = around, is_checked
        try:
            return self._split(value, layout, path)
        finally:
            self._around, self.is_checked = outside

    def _refer(self, shrunk: Shrunk) -> Shrunk:
        code = REF_NODE if shrunk.has_refs or may_link(shrunk.data) else REF_LEAF
        data = ormsgpack.packb(ormsgpack.Ext(code, self.emit(shrunk.data)))
        return Shrunk(data, shrunk.size + len(data), shrunk.layout or Layout(), True)

    def _split(self, value: Any, layout: Layout, path: tuple[str, ...]) -> Shrunk:
        cls = type(value)
        if cls is list:
            return self._container(Elements, value, layout, path)
        if cls is dict and is_plain_dict(value):
            return self._container(Items, value, layout, path)
        if cls is str or cls is bytes:
            return self._blob(value, layout)
        return self._object(value, layout, path)

    def _object(self, value: Any, layout: Layout, path: tuple[str, ...]) -> Shrunk:
        data = self.pack(value)  # first, because it says what is wrong with what cannot be kept
        if type(value) in _ATOMS or len(data) <= WHOLE:
            return Shrunk(data, len(data))
        code, plain = self.packer.reduce(value)
        if code in bytes_codes or type(plain) not in (list, dict, bytes, str):
            return Shrunk(data, len(data))
        is_checked = len(data) <= MODERATE
        del data  # it may be large, and so are the parts
        inner = self._split_within(plain, layout, path, 0, is_checked)  # nesting begins anew
        if not inner.has_refs:
            data = self.pack(value)
            return Shrunk(data, len(data))
        data = ormsgpack.packb(ormsgpack.Ext(code, inner.data))
        overhead = len(data) - len(inner.data)
        return Shrunk(data, inner.size + overhead, inner.layout, True)

    def _blob(self, value: str | bytes, layout: Layout) -> Shrunk:
        try:
            blob = text_blob(self, value) if isinstance(value, str) else Blob(self, value)
        except UnicodeEncodeError:
            blob = Blob(self, b"")
        if len(blob) <= WHOLE:
            data = self.pack(value)
            return Shrunk(data, len(data))
        pages = cut(blob, layout.pages, self.seed)
        return self._paged(
            PAGED_STR if isinstance(value, str) else PAGED_BYTES, pages, Layout(pages)
        )

    def _container(
        self, kind: type[Elements], value: Any, layout: Layout, path: tuple[str, ...]
    ) -> Shrunk:
        view = kind(self, value, layout, path)
        if layout.pages and layout.limit != view.limit:
            layout = view.layout = Layout(children=layout.children)
        if not layout.pages:
            whole = view.whole()
            if whole is not None:
                return whole
        mark = len(self.used)
        trusted = view.trusted() if path in self.append_only else 0
        pages = cut(view, layout.pages, self.seed, trusted)
        if layout.pages and sum(page.body for page in pages) <= WHOLE:
            del self.used[mark:]
            return self._container(kind, value, Layout(children=layout.children), path)
        return self._paged(view.code, pages, Layout(pages, view.children, view.limit))

    def _paged(self, code: int, pages: list[Page], layout: Layout) -> Shrunk:
        self.used.extend([page.id for page in pages])
        size = sum([page.size for page in pages])
        entries = [(page.id, page.count, page.natural, page.has_refs) for page in pages]
        level = 0
        while len(entries) > FANOUT:
            above = []
            for group in _groups(entries):
                raw = ormsgpack.packb(ormsgpack.Ext(code, pack_index(level, group)))
                size += len(raw)
                above.append((self.emit(raw), sum(entry[1] for entry in group), False, True))
            entries, level = above, level + 1
        data = ormsgpack.packb(ormsgpack.Ext(code, pack_index(level, entries)))
        return Shrunk(data, size + len(data), layout, True)


Entry = tuple[bytes, int, bool, bool]


def _groups(entries: list[Entry]) -> Iterable[list[Entry]]:
    """Cut index entries as pages are cut: after a name that says so, so that edits stay local."""
    group: list[Entry] = []
    for entry in entries:
        group.append(entry)
        if ends_group(entry[0], len(group)):
            yield group
            group = []
    if group:
        yield group
