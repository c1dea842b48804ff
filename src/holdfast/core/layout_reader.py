"""How a stored state was cut, learned from its chunks: what encoding its child builds on."""

from __future__ import annotations

from typing import Any

from holdfast.core.chunk_decoder import Chunks, inner_index
from holdfast.core.chunk_encoder import Base
from holdfast.core.chunk_format import (
    ELEMENT_SPLIT,
    PAGED_DICT,
    PAGED_LIST,
    RECORD_KEYS,
    RECORD_SPLIT,
    REF_LEAF,
    REF_NODE,
    array_header,
    map_header,
    unpack_index,
)
from holdfast.core.content_cuts import MAX_PAGE
from holdfast.core.kinds import Ready
from holdfast.core.page_cutter import Page, fingerprint
from holdfast.core.paged_sequences import Layout
from holdfast.core.shallow_reader import Hole, page_entries, shallow
from holdfast.errors import CheckpointIntegrityError


def base_of(root: bytes, chunks: Chunks, seed: int) -> Base:
    """Return what encoding a child of this state may build on, learned from its chunks."""
    try:
        layout = _Layouts(chunks, seed).of(shallow(chunks[root]))
    except KeyError as missing:
        raise CheckpointIntegrityError(None, f"chunk {missing} is missing") from None
    except (OverflowError, RecursionError, TypeError) as error:
        raise CheckpointIntegrityError(None, f"unreadable chunks ({error})") from None
    return Base(layout or Layout(), frozenset(chunks))


class _Layouts:
    def __init__(self, chunks: Chunks, seed: int) -> None:
        self.chunks = chunks
        self.seed = seed

    def of(self, value: Any) -> Layout | None:
        """Return the layout of a shallow value; None where it holds nothing that was cut."""
        if type(value) is Hole:
            if value.code == REF_LEAF:
                return Layout()
            if value.code == REF_NODE:
                return self.of(shallow(self.chunks[value.data])) or Layout()
            return self._paged(value)
        if type(value) is Ready:
            return self.of(value.plain)
        children = self._children(value, 0)
        return Layout(children=children) if children else None

    def _children(self, value: Any, offset: int) -> dict[Any, Layout]:
        if type(value) is dict:
            parts: Any = value.items()
        elif type(value) is list:
            parts = enumerate(value, offset)
        else:
            return {}
        found = ((key, self.of(part)) for key, part in parts)
        return {key: layout for key, layout in found if layout is not None}

    def _paged(self, hole: Hole) -> Layout:
        header = {PAGED_LIST: array_header, PAGED_DICT: map_header}.get(hole.code)
        layout, fresh, at = Layout(), True, 0
        for name, count, natural, has_refs in page_entries(hole.data, self.chunks):
            raw = self.chunks[name]
            size = len(raw)
            body = size - (len(header(count)) if header else 0)
            if has_refs:
                content = shallow(raw)
                layout.children.update(self._children(content, at))
                size += self._outside(content)
            layout.pages.append(
                Page(
                    count=count,
                    id=name,
                    size=size,
                    body=body,
                    has_refs=has_refs,
                    fingerprint=None if has_refs else fingerprint(raw, self.seed),
                    fresh=fresh,
                    natural=natural,
                    closed=natural or body >= MAX_PAGE,
                )
            )
            fresh = natural
            at += count
        is_record = hole.code == PAGED_DICT and at <= RECORD_KEYS
        layout.limit = RECORD_SPLIT if is_record else ELEMENT_SPLIT
        return layout

    def _outside(self, value: Any) -> int:
        """Return bytes of the chunks that a shallow value refers to, and of those they refer to."""
        if type(value) is Ready:
            return self._outside(value.plain)
        if type(value) is dict:
            return sum(map(self._outside, value.values()))
        if type(value) is list:
            return sum(map(self._outside, value))
        if type(value) is not Hole:
            return 0
        if value.code in (REF_LEAF, REF_NODE):
            is_leaf = value.code == REF_LEAF
            inner = 0 if is_leaf else self._outside(shallow(self.chunks[value.data]))
            return len(self.chunks[value.data]) + inner
        return self._index_size(value.data)

    def _index_size(self, index: bytes) -> int:
        level, entries = unpack_index(index)
        size = 0
        for name, _, _, has_refs in entries:
            size += len(self.chunks[name])
            if level:
                size += self._index_size(inner_index(self.chunks[name]))
            elif has_refs:
                size += self._outside(shallow(self.chunks[name]))
        return size
