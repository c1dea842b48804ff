"""Values through LangGraph's own serializer, in pieces that stay equal from step to step.

An encrypted serializer gives other bytes each time, so that nothing would ever be shared. A list
or dict is therefore sealed in pages, and a page whose content was sealed before is used again.
Where a page ends depends on the lengths of its elements alone, which their ciphertext shows anyway.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import xxhash
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph.safe_reading import (
    DEFAULT,
    DICT,
    LIST,
    STRICT,
    WHOLE,
    SealedPath,
    load,
)
from holdfast.core.codec import pack
from holdfast.core.raw import Sealed
from holdfast.errors import SerializationError
from holdfast.system.forks import Locked

_PAGE_ELEMENTS = 32
_PAGE_BYTES = 32_768
_REMEMBERED_BYTES = 64 * 2**20


class Sealer(Locked):
    """Seals and opens values, and remembers the pages it has seen lately."""

    def __init__(self) -> None:
        super().__init__()
        self._salt = secrets.token_bytes(16)
        self._seen: OrderedDict[bytes, Sealed] = OrderedDict()
        self._seen_bytes = 0
        self._sealed_by: object = None

    def seal(self, serde: SerializerProtocol, value: Any) -> tuple[str, Any]:
        """Return the shape of a value, and its sealed pages (or one Sealed for the whole)."""
        if type(value) is list and len(value) > 1:
            shape, elements = LIST, value
        elif type(value) is dict and len(value) > 1:
            shape, elements = DICT, [[key, part] for key, part in value.items()]
        else:
            return WHOLE, self.seal_whole(serde, value)
        return shape, [self._page(serde, page, mark) for page, mark in self._cut(elements)]

    def seal_whole(self, serde: SerializerProtocol, value: Any) -> Sealed:
        """Return a value as the serializer writes it."""
        tag, data = serde.dumps_typed(value)
        sealed = Sealed(tag, bytes(data))
        if serde is DEFAULT:  # what could not be read again is not written
            STRICT.check(sealed.tag, sealed.data, SealedPath("$"))
        return sealed

    def open(self, serde: SerializerProtocol, shape: str, sealed: Any, path: str) -> Any:
        """Return the value that ``seal`` was given, which belongs at this path."""
        if shape == WHOLE:
            return load(serde, sealed.tag, sealed.data, SealedPath(path))
        elements: list[Any] = []
        for page in sealed:
            opened = load(serde, page.tag, page.data, SealedPath(path, shape, len(elements)))
            if not isinstance(opened, list):
                raise SerializationError(path, f"a page of it is a {type(opened).__name__}")
            for part, mark in self._cut(opened):
                if len(part) == len(opened):  # else its serializer gave back other elements
                    self._remember(serde, mark, page)
            elements += opened
        if shape == LIST:
            return elements
        try:
            return dict(elements)
        except (TypeError, ValueError) as error:
            raise SerializationError(
                path, f"its pages hold no items of a dict ({error})"
            ) from error

    def _page(self, serde: SerializerProtocol, page: list[Any], mark: bytes | None) -> Sealed:
        with self._lock:
            if self._sealed_by is not _keeper(serde):
                self._seen.clear()
                self._seen_bytes = 0
                self._sealed_by = _keeper(serde)
            known = self._seen.get(mark) if mark is not None else None
        if known is not None:
            return known
        sealed = self.seal_whole(serde, page)
        self._remember(serde, mark, sealed)
        return sealed

    def _remember(self, serde: SerializerProtocol, mark: bytes | None, sealed: Sealed) -> None:
        if mark is None:
            return
        with self._lock:
            if self._sealed_by is None:
                self._sealed_by = _keeper(serde)
            if self._sealed_by is not _keeper(serde) or mark in self._seen:
                return
            self._seen[mark] = sealed
            self._seen_bytes += len(sealed.data)
            while self._seen_bytes > _REMEMBERED_BYTES:
                self._seen_bytes -= len(self._seen.popitem(last=False)[1].data)

    def _cut(self, elements: list[Any]) -> Iterator[tuple[list[Any], bytes | None]]:
        """Yield pages of elements, each with a mark of its content, if that can be told."""
        page: list[Any] = []
        packed: list[bytes] = []
        size = 0
        for element in elements:
            data = _packed(element)
            page.append(element)
            packed.append(data)
            size += len(data)
            # Multiplied, so that lengths that differ by little do not all cut or all not.
            ends = (len(data) * 0x9E3779B1 >> 16) % 8 == 0
            if ends or len(page) == _PAGE_ELEMENTS or size >= _PAGE_BYTES:
                yield page, self._mark(packed)
                page, packed, size = [], [], 0
        if page:
            yield page, self._mark(packed)

    def _mark(self, packed: list[bytes]) -> bytes | None:
        if not all(packed):
            return None
        digest = xxhash.xxh3_128(self._salt)
        for data in packed:
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
        return digest.digest()


def _keeper(serde: SerializerProtocol) -> object:
    """Return what decides on the bytes: the cipher, which copies of a serializer share."""
    return getattr(serde, "cipher", serde)


def _packed(element: Any) -> bytes:
    """Return bytes that say exactly what an element is; none where that cannot be said."""
    try:
        return pack(element)
    except SerializationError:
        return b""
