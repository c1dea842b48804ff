"""A list, a dict and a blob, each seen as a sequence of elements that can be cut into pages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Protocol

from xxhash import xxh3_64_intdigest, xxh3_128

from holdfast.core.chunk_format import (
    ELEMENT_SPLIT,
    PAGED_DICT,
    PAGED_LIST,
    RECORD_KEYS,
    RECORD_SPLIT,
    WHOLE,
    array_header,
    map_header,
    may_link,
)
from holdfast.core.codec import Packer
from holdfast.core.content_cuts import LONGEST_ELEMENT, element_end
from holdfast.core.packed_size import (
    BLOCK,
    MODERATE,
    is_surely_longer,
    packed_in_parts,
    utf8_blocks,
)
from holdfast.core.page_cutter import Page, fingerprint
from holdfast.core.quick_forms import quick_form
from holdfast.errors import SerializationError

_FEW, _MANY = 8, 256
"""Of few parts each may be most of a state, and so may a part that has many: neither is packed just
to learn how long it is."""
_BLOCKS_SEEN = 32
"""How much of a long text is there as UTF-8."""


@dataclass(slots=True)
class Layout:
    """How one value was cut: its pages if it has any, and the layouts of parts with their own."""

    pages: list[Page] = field(default_factory=list)
    children: dict[Any, Layout] = field(default_factory=dict)
    limit: int = 0
    """Above how many bytes elements were replaced; pages cut under another limit do not count."""


@dataclass(slots=True)
class Shrunk:
    """A value's bytes with its large parts replaced."""

    data: bytes
    size: int
    layout: Layout | None = None
    has_refs: bool = False


class Encoder(Protocol):
    """What a view asks of the encoder."""

    seed: int
    packer: Packer
    is_checked: bool
    """What is being cut was packed as a whole before: it is not large, and nests as it may."""

    def pack(self, value: Any) -> bytes: ...

    def emit(self, raw: bytes) -> bytes: ...

    def shrink(
        self,
        value: Any,
        layout: Layout | None,
        limit: int,
        path: tuple[str, ...],
        packed: bytes | None = b"",
    ) -> Shrunk: ...


class Elements:
    """A list; large elements are replaced by what the encoder shrinks them to."""

    code = PAGED_LIST
    header = staticmethod(array_header)

    def __init__(self, encoder: Encoder, value: Any, layout: Layout, path: tuple[str, ...]) -> None:
        self.encoder = encoder
        self.layout = layout
        self.path = path
        self.parts: list[Any] = value
        self.limit = ELEMENT_SPLIT
        self._pack = encoder.packer.pack
        self._is_checked = encoder.is_checked or bool(layout.pages)
        self.children: dict[Any, Layout] = {}
        self._outside: dict[int, int] = {}  # bytes of replaced elements, by position
        # Shrinking goes down into an element, so it is done once for each, not once for each look.
        self._replaced: dict[int, bytes] = {}
        self._last: tuple[int, bytes] = (-1, b"")

    def __len__(self) -> int:
        return len(self.parts)

    def key_at(self, at: int) -> Any:
        """Return the name of the element in layouts."""
        return at

    def key_bytes(self, at: int) -> bytes:
        """Return the bytes of what stands before the element's value."""
        return b""

    def named(self, at: int, count: int) -> tuple[Sequence[str], Sequence[Any]]:
        """Return that many values, and their names if they have any."""
        return (), self.parts[at : at + count]

    def value_at(self, at: int) -> Any:
        return self.parts[at]

    def path_at(self, at: int) -> tuple[str, ...]:
        return self.path

    def shrunk(self, at: int) -> bytes:
        """Return the bytes of one element's value, at most the limit."""
        if self._last[0] == at:
            return self._last[1]
        if at in self._replaced:
            return self._replaced[at]
        value = self.value_at(at)
        layout = self.layout.children.get(self.key_at(at))
        data: bytes | None = b""
        if layout is None:
            data = self._pack(value) if self._is_checked else self._unless_long(value)
        if data is None or len(data) > self.limit or layout is not None:
            small = self.encoder.shrink(value, layout, self.limit, self.path_at(at), data)
            data = self._replaced[at] = small.data
            if small.has_refs:
                self.children[self.key_at(at)] = small.layout or Layout()
                self._outside[at] = small.size - len(data)
        self._last = (at, data)
        return data

    def _unless_long(self, value: Any) -> bytes | None:
        """Return the bytes of a value; None if it is long, and may be most of the state."""
        cls = type(value)
        if cls is list or cls is dict:
            is_worth_a_look = len(self.parts) <= _FEW or len(value) > _MANY
        else:
            is_worth_a_look = cls is str or cls is bytes
        if is_worth_a_look and is_surely_longer(value, max(self.limit, WHOLE)):
            return None
        data = self.encoder.pack(value)
        return data if len(data) <= MODERATE else None

    def element(self, at: int) -> tuple[bytes, bytes, int]:
        data = self.shrunk(at)
        return data, data, at + 1

    def plain(self, at: int, count: int) -> Any:
        """Return that many positions as a value of their own."""
        return self.parts[at : at + count]

    def span(self, at: int, count: int) -> bytes:
        return self.encoder.packer.pack_trusting(self.plain(at, count))

    def exact_span(self, at: int, count: int) -> tuple[bytes, bool]:
        packer = self.encoder.packer
        packer.saw_bytes = False
        return packer.pack(self.plain(at, count)), packer.saw_bytes

    def quick_span(self, at: int, count: int) -> bytes:
        names, values = self.named(at, count)
        form = quick_form(values)
        if form is None:
            return b""
        try:
            return self.encoder.packer.pack([*names, form])
        except SerializationError:  # what looks at the values themselves says of which it is
            return b""

    def emit(self, at: int, parts: list[bytes], count: int) -> Page:
        raw = self.header(count) + b"".join(parts)
        outside = [self._outside[i] for i in range(at, at + count) if i in self._outside]
        return Page(
            count=count,
            id=self.encoder.emit(raw),
            size=len(raw) + sum(outside),
            body=len(raw) - len(self.header(count)),
            has_refs=bool(outside) or may_link(raw),
            fingerprint=self._fingerprint(at, count, sum(outside), raw),
            first=xxh3_64_intdigest(parts[0]),
        )

    def _fingerprint(self, at: int, count: int, outside: int, raw: bytes) -> bytes:
        """Return that of the exact span, which may be most of a state, and then comes in parts."""
        if outside <= MODERATE:
            span = self.exact_span(at, count)[0] if outside else raw
            return fingerprint(span, self.encoder.seed)
        told = xxh3_128(self.header(count), self.encoder.seed)
        for i in range(at, at + count):
            told.update(self.key_bytes(i))
            value = self.value_at(i)
            if self._outside.get(i, 0) > MODERATE:
                for part in packed_in_parts(value, self._pack):
                    told.update(part)
            else:
                told.update(self._pack(value))
        return told.digest()

    def whole(self) -> Shrunk | None:
        """Return all elements in one piece, or None where they are too large to stand together."""
        parts, size = [], 0
        for at in range(len(self)):
            data = self.element(at)[0]
            parts.append(data)
            size += len(data)
            if size > WHOLE:
                return None
        header = self.header(len(self))
        return Shrunk(
            header + b"".join(parts),
            len(header) + size + sum(self._outside.values()),
            Layout(children=self.children) if self.children else None,
            bool(self._outside),
        )

    def trusted(self) -> int:
        """Return how many first positions of an append-only list may be skipped.

        One page is looked at again all the same.
        """
        closed = [page for page in self.layout.pages if page.closed]
        count = sum(page.count for page in closed)
        if not closed or count > len(self):
            return 0
        chosen = len(self) % len(closed)
        at = sum(page.count for page in closed[:chosen])
        span, _ = self.exact_span(at, closed[chosen].count)
        same = fingerprint(span, self.encoder.seed) == closed[chosen].fingerprint
        return count if same else 0


class Items(Elements):
    """A dict with plain string keys; boundaries hang on the keys, so edits do not move them."""

    code = PAGED_DICT
    header = staticmethod(map_header)

    def __init__(
        self, encoder: Encoder, value: dict[str, Any], layout: Layout, path: tuple[str, ...]
    ) -> None:
        super().__init__(encoder, list(value.items()), layout, path)
        if len(value) <= RECORD_KEYS:
            self.limit = RECORD_SPLIT

    def key_at(self, at: int) -> Any:
        return self.parts[at][0]

    def key_bytes(self, at: int) -> bytes:
        return self._pack(self.parts[at][0])

    def named(self, at: int, count: int) -> tuple[Sequence[str], Sequence[Any]]:
        names, values = zip(*self.parts[at : at + count], strict=True)
        return names, values

    def value_at(self, at: int) -> Any:
        return self.parts[at][1]

    def path_at(self, at: int) -> tuple[str, ...]:
        return (*self.path, self.parts[at][0])

    def element(self, at: int) -> tuple[bytes, bytes, int]:
        key = self.key_bytes(at)
        return key + self.shrunk(at), key, at + 1

    def plain(self, at: int, count: int) -> Any:
        return dict(self.parts[at : at + count])


class Blob:
    """Long bytes, cut after line ends where they have any."""

    def __init__(self, encoder: Encoder, data: bytes) -> None:
        self.encoder = encoder
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def element(self, at: int) -> tuple[bytes, bytes, int]:
        end = element_end(self.data, at)
        if end:
            part = self.data[at:end]
            return part, part, end
        return self.data[at:], b"", len(self.data)

    def span(self, at: int, count: int) -> bytes:
        return self.data[at : at + count]

    def exact_span(self, at: int, count: int) -> tuple[bytes, bool]:
        return self.span(at, count), False

    def quick_span(self, at: int, count: int) -> bytes:
        return b""

    def emit(self, at: int, parts: list[bytes], count: int) -> Page:
        raw = b"".join(parts)
        return Page(
            count=count,
            id=self.encoder.emit(raw),
            size=len(raw),
            body=len(raw),
            has_refs=False,
            fingerprint=fingerprint(raw, self.encoder.seed),
            first=xxh3_64_intdigest(parts[0]),
        )


def text_blob(encoder: Encoder, text: str) -> Blob:
    """Return a text as UTF-8; of a long one only a part is there at a time."""
    if len(text) <= BLOCK * _BLOCKS_SEEN:
        return Blob(encoder, text.encode())
    return _LongText(encoder, text)


class _LongText(Blob):
    def __init__(self, encoder: Encoder, text: str) -> None:
        super().__init__(encoder, b"")  # what is seen of it
        self._text = text
        self._from = self._last = 0
        """Where what is seen begins, and of how many positions the longest element is seen too."""
        self._starts: Sequence[int]
        """Where each block of the text begins in the bytes, and where the last one ends."""
        if text.isascii():
            self._total = len(text)
            self._starts = range(0, len(text) + BLOCK, BLOCK)
        else:
            self._starts = list(accumulate(map(len, utf8_blocks(text)), initial=0))
            self._total = self._starts[-1]

    def __len__(self) -> int:
        return self._total

    def element(self, at: int) -> tuple[bytes, bytes, int]:
        begin = at - self._from
        if not 0 <= begin < self._last:
            begin = self._look(at, LONGEST_ELEMENT)
        end = element_end(self.data, begin)
        if end:
            part = self.data[begin:end]
            return part, part, end + self._from
        return self.data[begin:], b"", self._total

    def span(self, at: int, count: int) -> bytes:
        begin = at - self._from
        if begin < 0 or begin + count > len(self.data):
            begin = self._look(at, count)
        return self.data[begin : begin + count]

    def _look(self, at: int, count: int) -> int:
        """See that many bytes from there, or all that there are; return where they begin now."""
        first = bisect_right(self._starts, at) - 1
        past = first + _BLOCKS_SEEN
        while past < len(self._starts) and self._starts[past] < at + count:
            past += _BLOCKS_SEEN
        self.data = b""  # not two at once
        self.data = self._text[first * BLOCK : past * BLOCK].encode()
        self._from = self._starts[first]
        is_end = self._from + len(self.data) == self._total
        self._last = len(self.data) - (0 if is_end else LONGEST_ELEMENT)
        return at - self._from
