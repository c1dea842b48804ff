"""The kind of links: they stand in a state for chunks that are kept with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.core.chunk_format import ID_BYTES, LINK
from holdfast.core.kinds.plain_shapes import PlainShape
from holdfast.core.kinds.table import Kind, Revives, add
from holdfast.errors import CheckpointIntegrityError


@dataclass(frozen=True, slots=True)
class ContentLink:
    """Stands in a state for chunks that are kept with it but read only when they are asked for.

    A checkpoint's workspace is one: restoring the state does not read the files.
    """

    name: bytes
    """The chunk it leads to."""
    is_leaf: bool = False
    """Whether that chunk is mere bytes, and refers to no other."""

    def __repr__(self) -> str:
        return f"ContentLink({self.name.hex()})"


def _reduce_link(link: ContentLink) -> bytes:
    return link.name + b"\x00" if link.is_leaf else link.name


def link_of(plain: bytes) -> ContentLink:
    """Return the link that these bytes of a chunk stand for."""
    name, mark = plain[:ID_BYTES], plain[ID_BYTES:]
    if len(name) != ID_BYTES or mark not in (b"", b"\x00"):
        raise CheckpointIntegrityError(None, f"a link of {len(plain)} bytes")
    return ContentLink(name, bool(mark))


class _LinkShape(PlainShape):
    is_bytes = True

    def chunk_meant(self, plain: Any) -> tuple[bytes, bool] | None:
        link = link_of(plain)
        return link.name, not link.is_leaf


add(
    Kind(LINK, "link", _reduce_link, lambda p, _: link_of(p), Revives.OWN_TYPES, _LinkShape()),
    ContentLink,
)
